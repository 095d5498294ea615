"""The reader of one table: the titles of the header define the words of a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from proofmark.cases.reader.builder import Notes, UnreadLines
from proofmark.cases.reader.rules import CACHED, Layout, TableRule
from proofmark.cases.reader.values import Parameter, measured, shorten
from proofmark.common.message import Message


class OpenTable:
    """A table whose rows are being read; `above` is its last line.

    A line that is not a row makes an INVALID reading if it may be one (`is_rowlike`). Another one
    is a note if a row follows it. After the last row it is a line around the table.

    Args:
        notes: the readings are added to it.
    """

    def __init__(self, rule: TableRule, titles: str, notes: Notes) -> None:
        self.rule = rule
        self._titles = titles
        self._notes = notes
        self._empty = True
        self.above = titles
        self._unread = UnreadLines()
        self._waiting: list[str] = []  # lines of other programs, if a row follows
        self._layout = rule.layout(titles)
        for problem in self._layout.problems:
            notes.unread(rule.first_metric, problem)

    def take(self, line: str) -> None:
        """Read a line inside the table."""
        words = line.split()
        if not words or (self.rule.skip and self.rule.skip.fullmatch(line)):
            return
        start = len(self._notes.run.builders)
        if self._given_up(line) or self._row(words):
            self.above = line
            added = len(self._notes.run.builders) - start
            self._foreign()
            self._notes.row_read(len(self._notes.run.builders) - added)
            self._unread.end()
            self._empty = False
        else:
            self.broken(line, Message("reader-not-row", line=shorten(line)))

    def is_whole(self, line: str) -> bool:
        """Return whether a row without a line end is whole.

        It is if a blank ends its last word, as in the line before it, or if it ends where the line
        before it ends and has as many decimals. Programs align the numbers of such a column. The
        first row is compared with the titles.
        """
        if len(line.split()) != self._layout.width:
            return False
        aligned = len(line) == len(self.above) and "  " in line
        ended = line.endswith(" ") and self.above.endswith(" ")
        return ended or (aligned and (self._empty or _decimals(line) == _decimals(self.above)))

    def take_stray(self, line: str, problem: Message) -> bool:
        """Read a row after the end of the table as INVALID; return whether it is one."""
        return self._row(line.split(), [problem])

    def broken(self, line: str, problem: Message) -> None:
        """Record a line that is not a row of the table, and why."""
        if self.rule.skip and self.rule.skip.fullmatch(line):
            return
        if not is_rowlike(words := line.split(), self._layout):
            self._waiting.append(shorten(line))
            return
        self._foreign()
        named = self._layout.names
        metric = self.rule.metric_of(words) if named else self._layout.metrics[0]
        self._unread.line(problem, partial(self._notes.unread, metric), metric)
        self._empty = False

    def close(self) -> None:
        """End the table. A table without rows gives an INVALID reading."""
        if self._empty:
            problem = Message("reader-no-rows", titles=shorten(self._titles))
            self._notes.unread(self._layout.metrics[0], problem)

    def _foreign(self) -> None:
        """Note the lines that wait: a row of the table follows them."""
        if self._waiting:
            first, lines = self._waiting[0], len(self._waiting)
            note = Message("reader-foreign-lines", line=first, lines=lines)
            self._notes.run.notes.append(note)
            self._waiting.clear()

    def _given_up(self, line: str) -> bool:
        """Read a row of `gives_up`; return False if the line is not one."""
        match = self.rule.gives_up and self.rule.gives_up.fullmatch(line)
        if not match:
            return False
        names = {name for _, name in self._layout.parameters}
        groups = {name: word for name, word in match.groupdict().items() if name in names}
        parameters = self._notes.typed(groups, [])
        for metric in self._layout.metrics:
            problem = Message("reader-gave-up", message=match["reason"])
            self._notes.unread(metric, problem, parameters)
        return True

    def _row(self, words: list[str], problems: Sequence[Message] = ()) -> bool:
        """Add the readings of a row; return False if the words are not a row."""
        layout, measure, named = self._layout, self._notes.measure, ""
        if len(words) != layout.width:
            return False
        if not layout.parameters and not any(map(_NUMBER_BEGINS.match, words)):
            return False  # a line after a table without sizes: no word of it is a number
        for place, names in layout.names:
            named = names.get(words[place], "")
        parameters = self._parameters(words)
        if parameters is None or not (layout.plain or (named and layout.values)):
            return False
        every = problems
        if layout.accepted:
            refused = [
                Message("reader-instead", found=shorten(words[place], 40), word=repr(word))
                for place, word in layout.accepted
                if words[place] != word
            ]
            every = [*problems, *refused]
        for place, metric, power in layout.values:
            measure(metric or named, words[place], parameters, every, power)
        return True

    def _parameters(self, words: list[str]) -> dict[str, Parameter] | None:
        """Return the parameters of a row; None if its words cannot be parameters."""
        layout = self._layout
        key = tuple([words[place] for place, _ in layout.parameters])
        parameters = layout.known.get(key)
        if parameters is None:
            problems: list[Message] = []
            groups = dict(zip((name for _, name in layout.parameters), key, strict=True))
            typed = self._notes.typed(groups, problems)
            if problems:
                return None
            if self._notes.exact:
                return typed  # they may depend on the command line of this output
            if len(layout.known) >= CACHED:
                layout.known.clear()
            layout.known[key] = parameters = typed
        return parameters


# Whether a line that cannot be read may be a damaged row of a table.
#
# Job scripts print lines around a table. Only their words distinguish them from rows.

_NUMBER_BEGINS = re.compile(r"[+-]?\.?\d", re.ASCII)
_NUMBER_ENDS = re.compile(r"(?<=[A-Za-z])(\d+)$", re.ASCII)
# A date, a time, the time of a message of Flux (0.512s:), progress (0%).
_NO_ROW = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\d+\.\d+s:|\d+%", re.ASCII)
_OF_LIBRARY = re.compile(r"\b(?:NCCL|RCCL|UCX|UCC|PMIX|libfabric)\b")


def _decimals(line: str) -> int:
    """Return the number of decimals of the last number of a row."""
    return len(line.rpartition(" ")[2].partition(".")[2])


def is_rowlike(words: Sequence[str], layout: Layout) -> bool:
    """Return whether a line may be a row that is cut or damaged, or hidden behind other words.

    It is if it begins like a row, that is with a number or with (the beginning of) a name, or if
    as many successive words as the table has columns fit the columns. Text before a row may lack
    its line end: then the first of these words only ends like the first column.

    Args:
        words: the words of the line, at least one.
    """
    names: list[str] = []
    for _, known in layout.names:
        names += known
    if any(name.startswith(words[0]) or name in words for name in names):
        return True
    if any(
        _NUMBER_BEGINS.match(after)
        for word, after in pairwise(words)
        if word.endswith(tuple(names))
    ):
        return True
    if not names and _NUMBER_BEGINS.match(words[0]) and not _NO_ROW.match(words[0]):
        return True
    numbers = [
        *(place for place, _ in layout.parameters),
        *(place for place, _, _ in layout.values),
    ]
    width = layout.width
    windows = [words[start : start + width] for start in range(len(words) - width + 1)]
    if width == 1 or not windows:
        return False
    if _OF_LIBRARY.search(" ".join(words)):  # its numbers are its own, if no fraction is at the end
        windows = [each for each in windows[-1:] if any("." in each[place] for place in numbers)]
    last = words[-width]
    if _NUMBER_ENDS.search(last):  # text before the row lacks its line end
        windows.append([_NUMBER_ENDS.split(last)[1], *words[len(words) - width + 1 :]])
    return any(all(measured(each[place])[0] is not None for place in numbers) for each in windows)
