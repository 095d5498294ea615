"""The reader of one table: the titles of the header define the words of a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise

from proofmark.cases.reader.builder import ProgramRun, UnreadLines
from proofmark.cases.reader.values import measured, shorten
from proofmark.cases.vocabulary import Parameters
from proofmark.common.grouping import flat
from proofmark.common.message import Message

CACHED = 4096
"""Size of the cache of the parameters of rows. Outputs of all nodes share some hundred."""


@dataclass(frozen=True, eq=False)
class Table:
    """The titles of the columns of a table. A row has one word for each title of its header.

    Attributes:
        metrics: title → metric.
        parameters: title → parameter.
        names: of columns with the name of the row's metric: title → printed word → metric.
        named: of columns with the value of the metric that the row names: title → power of ten from
            the printed unit to that of the metric.
        words: title → the required word. With another word the row is INVALID.
        unread: titles of columns that are not read.
        others: titles of further columns that are not read. Any other title is INVALID.
        skip: lines inside the table that are not rows. Blank lines are always skipped.
        gives_up: a row without numbers, which the program prints if it could not measure. It has
            the group `reason`, and groups for parameters.
        stray: the pattern of a row. Outside a table such a line is INVALID, not ignored.
    """

    metrics: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    named: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    others: re.Pattern[str] | None = None
    skip: re.Pattern[str] | None = None
    gives_up: re.Pattern[str] | None = None
    stray: re.Pattern[str] | None = None

    @cached_property
    def layout(self) -> Callable[[str], Layout]:
        """A function that returns the layout for the titles of a header, with a cache."""
        return lru_cache(maxsize=64)(self._layout)

    def _layout(self, titles: str) -> Layout:
        layout = Layout()
        place = 0
        while match := self._title.match(titles, place):
            place, column, title = match.end(), layout.width, match["known"]
            layout.width += 1
            if title in self.metrics:
                layout.values.append((column, self.metrics[title], 0))
            elif title in self.named:
                layout.values.append((column, "", self.named[title]))
            elif title in self.parameters:
                layout.parameters.append((column, self.parameters[title]))
            elif title in self.names:
                layout.names.append((column, self.names[title]))
            elif title in self.words:
                layout.words.append((column, self.words[title]))
            elif not (title or (self.others and self.others.fullmatch(match["unknown"]))):
                unknown = shorten(match["unknown"], 40)
                layout.problems.append(Message("reader-title", title=unknown))
        layout.metrics = [metric for _, metric, _ in layout.values if metric] or [self.first_metric]
        return layout

    @cached_property
    def _title(self) -> re.Pattern[str]:
        """A pattern of one known title, or else of the words up to the next two blanks."""
        titles = [*self.metrics, *self.parameters, *self.names, *self.named, *self.words]
        known = sorted([*titles, *self.unread], key=len, reverse=True)
        alternatives = "|".join(re.escape(title) for title in known)
        return re.compile(rf"\s*(?:(?P<known>{alternatives})(?!\S)|(?P<unknown>\S+(?: \S+)*))")

    @cached_property
    def first_metric(self) -> str:
        """The metric of a reading whose line cannot be read."""
        named = flat(names.values() for names in self.names.values())
        return [*self.metrics.values(), *named][0]

    def metric_of(self, words: Sequence[str]) -> str:
        """Return the metric that a row names, or else the first one."""
        named = (known[word] for known in self.names.values() for word in words if word in known)
        return next(named, self.first_metric)


@dataclass
class Layout:
    """The columns of one header, by their places in a row.

    Attributes:
        width: number of words of a row.
        values: place, metric and power of ten; no metric if the row names it.
        names: place and metrics by printed word.
        words: place and required word.
        metrics: of a row; the first is also that of a row that cannot be read.
        problems: one for each unknown title.
        known: a cache of the parameters of rows, by their words.
    """

    width: int = 0
    values: list[tuple[int, str, int]] = field(default_factory=list)
    parameters: list[tuple[int, str]] = field(default_factory=list)
    names: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    words: list[tuple[int, str]] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    problems: list[Message] = field(default_factory=list)
    known: dict[tuple[str, ...], Parameters] = field(default_factory=dict)

    @cached_property
    def plain(self) -> bool:
        """Whether no value depends on a name in the row."""
        return bool(self.values) and all(metric for _, metric, _ in self.values)


class OpenTable:
    """A table whose rows are being read; `above` is its last line.

    A line that is not a row makes an INVALID reading if it may be one (`is_rowlike`). Another one
    is a note if a row follows it. After the last row it is a line around the table.

    Args:
        run: the readings are added to it.
    """

    def __init__(self, table: Table, titles: str, run: ProgramRun) -> None:
        self.table = table
        self._titles = titles
        self._run = run
        self._empty = True
        self.above = titles
        self._unread = UnreadLines()
        self._waiting: list[str] = []  # lines of other programs, if a row follows
        self._layout = table.layout(titles)
        for problem in self._layout.problems:
            run.unread(table.first_metric, problem)

    def take(self, line: str) -> None:
        """Read a line inside the table."""
        words = line.split()
        if not words or (self.table.skip and self.table.skip.fullmatch(line)):
            return
        start = len(self._run.builders)
        if self._given_up(line) or self._row(words):
            self.above = line
            self._foreign()
            self._run.row_read(start)
            self._unread.builder = None
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
        if self.table.skip and self.table.skip.fullmatch(line):
            return
        if not is_rowlike(words := line.split(), self._layout):
            self._waiting.append(shorten(line))
            return
        self._foreign()
        named = self._layout.names
        metric = self.table.metric_of(words) if named else self._layout.metrics[0]
        self._unread.line(problem, self._run.unread, metric)
        self._empty = False

    def close(self) -> None:
        """End the table. A table without rows gives an INVALID reading."""
        if self._empty:
            problem = Message("reader-no-rows", titles=shorten(self._titles))
            self._run.unread(self._layout.metrics[0], problem)

    def _foreign(self) -> None:
        """Note the lines that wait: a row of the table follows them."""
        if self._waiting:
            first, lines = self._waiting[0], len(self._waiting)
            note = Message("reader-foreign-lines", line=first, lines=lines)
            self._run.notes.append(note)
            self._waiting.clear()

    def _given_up(self, line: str) -> bool:
        """Read a row of `gives_up`; return False if the line is not one."""
        match = self.table.gives_up and self.table.gives_up.fullmatch(line)
        if not match:
            return False
        names = {name for _, name in self._layout.parameters}
        groups = {name: word for name, word in match.groupdict().items() if name in names}
        parameters = self._run.typed(groups, [])
        for metric in self._layout.metrics:
            problem = Message("reader-gave-up", message=match["reason"])
            self._run.unread(metric, problem, parameters)
        return True

    def _row(self, words: list[str], problems: Sequence[Message] = ()) -> bool:
        """Add the readings of a row; return False if the words are not a row."""
        layout, measure, named = self._layout, self._run.measure, ""
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
        if layout.words:
            refused = [
                Message("reader-instead", found=shorten(words[place], 40), word=repr(word))
                for place, word in layout.words
                if words[place] != word
            ]
            every = [*problems, *refused]
        for place, metric, power in layout.values:
            measure(metric or named, words[place], parameters, every, power)
        return True

    def _parameters(self, words: list[str]) -> Parameters | None:
        """Return the parameters of a row; None if its words cannot be parameters."""
        layout = self._layout
        key = tuple([words[place] for place, _ in layout.parameters])
        parameters = layout.known.get(key)
        if parameters is None:
            problems: list[Message] = []
            groups = dict(zip((name for _, name in layout.parameters), key, strict=True))
            typed = self._run.typed(groups, problems)
            if problems:
                return None
            if self._run.exact:
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
    names = flat(known for _, known in layout.names)
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
