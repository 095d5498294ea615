"""The reader of one table: the titles of the header define the words of a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from proofmark.cases.reader.builder import Notes, UnreadLines
from proofmark.cases.reader.spec_table import Table
from proofmark.cases.reader.spec_types import CACHED
from proofmark.cases.reader.values import Parameter, shorten


class OpenTable:
    """A table whose rows are being read.

    Args:
        rule: the rule of the table.
        titles: the titles of the header.
        notes: the readings are added to it.
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
        """Read a line inside the table."""
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
        """Add an INVALID reading for a line that is not a row of the table."""
        if not (self._rule.skip and self._rule.skip.fullmatch(line)):
            self._unread.line(problem, partial(self._notes.unread, self._layout.metrics[0]))
            self._empty = False

    def close(self) -> None:
        """End the table. A table without rows gives an INVALID reading."""
        if self._empty:
            self._notes.unread(self._layout.metrics[0], f"no row under {shorten(self._titles)}")

    def _given_up(self, line: str) -> bool:
        """Read a row of `gives_up`; return False if the line is not one."""
        match = self._rule.gives_up and self._rule.gives_up.fullmatch(line)
        if not match:
            return False
        names = {name for _, name in self._layout.parameters}
        groups = {name: word for name, word in match.groupdict().items() if name in names}
        parameters = self._notes.typed(groups, [])
        for metric in self._layout.metrics:
            self._notes.unread(metric, f"the program gave up: {match['reason']}", parameters)
        return True

    def _row(self, words: list[str]) -> bool:
        """Add the readings of a row; return False if the words are not a row."""
        layout, measure, named = self._layout, self._notes.measure, ""
        for place, names in layout.names:
            named = names.get(words[place], "")
        parameters = self._parameters(words)
        if parameters is None or not (layout.plain or (named and layout.values)):
            return False
        problems: Sequence[str] = ()
        if layout.accepted:
            problems = [
                f"{shorten(words[place], 40)} instead of {word!r}"
                for place, word in layout.accepted
                if words[place] != word
            ]
        for place, metric in layout.values:
            measure(metric or named, words[place], parameters, problems)
        return True

    def _parameters(self, words: list[str]) -> dict[str, Parameter] | None:
        """Return the parameters of a row; None if its words cannot be parameters."""
        layout = self._layout
        key = tuple([words[place] for place, _ in layout.parameters])
        parameters = layout.known.get(key)
        if parameters is None:
            problems: list[str] = []
            groups = dict(zip((name for _, name in layout.parameters), key, strict=True))
            typed = self._notes.typed(groups, problems)
            if problems:
                return None
            if len(layout.known) >= CACHED:
                layout.known.clear()
            layout.known[key] = parameters = typed
        return parameters
