"""One table of an output: the header's titles say what the words of a row are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from proofmark.cases.reader.builder import Notes, UnreadLines
from proofmark.cases.reader.spec_table import Table
from proofmark.cases.reader.spec_types import REMEMBERED
from proofmark.cases.reader.values import Parameter, shorten


class OpenTable:
    """A table whose rows are being read.

    Args:
        rule: its rule.
        titles: the header's titles.
        notes: where drafts go.
    """

    def __init__(self, rule: Table, titles: str, notes: Notes) -> None:
        self._rule = rule
        self._titles = titles
        self._notes = notes
        self._empty = True
        self._unread = UnreadLines()
        self._layout = rule.layout(titles)
        for problem in self._layout.problems:
            notes.unread(rule.first_metric, problem)

    def take(self, line: str) -> None:
        """Take a line inside the table."""
        rule = self._rule
        words = line.split()
        if not words or (rule.skip and rule.skip.fullmatch(line)):
            return
        if self._given_up(line) or (len(words) == self._layout.width and self._row(words)):
            self._unread.end()
            self._empty = False
        else:
            self.broken(line, f"not a row of its table: {shorten(line)}")

    def broken(self, line: str, problem: str) -> None:
        """Take a line that stands where a row should, with what is wrong with it."""
        if not (self._rule.skip and self._rule.skip.fullmatch(line)):
            self._unread.line(problem, partial(self._notes.unread, self._layout.metrics[0]))
            self._empty = False

    def close(self) -> None:
        """End the table; one without rows is a result that is missing."""
        if self._empty:
            self._notes.unread(self._layout.metrics[0], f"no row under {shorten(self._titles)}")

    def _given_up(self, line: str) -> bool:
        match = self._rule.gives_up and self._rule.gives_up.fullmatch(line)
        if not match:
            return False
        own = {name for _, name in self._layout.parameters}
        groups = {name: word for name, word in match.groupdict().items() if name in own}
        parameters = self._notes.typed(groups, [])
        for metric in self._layout.metrics:
            self._notes.unread(metric, f"the program gave up: {match['reason']}", parameters)
        return True

    def _row(self, words: list[str]) -> bool:
        """Note the words of a row; False if they cannot be one."""
        layout, measure, named = self._layout, self._notes.measure, ""
        for place, names in layout.names:
            named = names.get(words[place], "")
        parameters = self._parameters(words)
        if parameters is None or not (layout.plain or (named and layout.values)):
            return False
        problems: Sequence[str] = ()
        if layout.accepted:
            problems = [
                f"{shorten(words[place], 40)} where {word!r} should stand"
                for place, word in layout.accepted
                if words[place] != word
            ]
        for place, metric in layout.values:
            measure(metric or named, words[place], parameters, problems)
        return True

    def _parameters(self, words: list[str]) -> dict[str, Parameter] | None:
        """Return the parameters of a row; None if its words cannot be such."""
        layout = self._layout
        key = tuple([words[place] for place, _ in layout.parameters])
        parameters = layout.known.get(key)
        if parameters is None:
            broken: list[str] = []
            groups = dict(zip((name for _, name in layout.parameters), key, strict=True))
            found = self._notes.typed(groups, broken)
            if broken:
                return None
            if len(layout.known) >= REMEMBERED:
                layout.known.clear()
            layout.known[key] = parameters = found
        return parameters
