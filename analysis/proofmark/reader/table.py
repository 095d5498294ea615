"""One table of an output: the header's titles say what the words of a row are."""

from __future__ import annotations

from functools import partial

from proofmark.reader.draft import Notes, UnreadLines
from proofmark.reader.spec_text import Column, Table
from proofmark.reader.values import shorten


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
        self._columns = self._layout()
        found = [column.metric for column in self._columns if column.metric]
        self._metrics = found or [rule.first_metric]

    def _layout(self) -> list[Column]:
        columns, place = [], 0
        while match := self._rule.title.match(self._titles, place):
            place = match.end()
            if match["known"]:
                columns.append(self._rule.columns[match["known"]])
            else:
                columns.append(Column())
                problem = f"unknown column title {shorten(match['unknown'], 40)}"
                self._notes.unread(self._rule.first_metric, problem)
        return columns

    def take(self, line: str) -> None:
        """Take a line inside the table."""
        rule = self._rule
        if not line or line.isspace() or (rule.skip and rule.skip.fullmatch(line)):
            return
        words = line.split()
        if self._given_up(line) or (len(words) == len(self._columns) and self._row(words)):
            self._unread.end()
            self._empty = False
        else:
            self.broken(line, f"not a row of its table: {shorten(line)}")

    def broken(self, line: str, problem: str) -> None:
        """Take a line that stands where a row should, with what is wrong with it."""
        if not (self._rule.skip and self._rule.skip.fullmatch(line)):
            self._unread.line(problem, partial(self._notes.unread, self._metrics[0]))
            self._empty = False

    def close(self) -> None:
        """End the table; one without rows is a result that is missing."""
        if self._empty:
            self._notes.unread(self._metrics[0], f"no row under {shorten(self._titles)}")

    def _given_up(self, line: str) -> bool:
        match = self._rule.gives_up and self._rule.gives_up.fullmatch(line)
        if not match:
            return False
        own = {column.parameter for column in self._columns}
        groups = {name: word for name, word in match.groupdict().items() if name in own}
        parameters = self._notes.typed(groups, [])
        for metric in self._metrics:
            self._notes.unread(metric, f"the program gave up: {match['reason']}", parameters)
        return True

    def _row(self, words: list[str]) -> bool:
        """Note the words of a row; False if they cannot be one."""
        groups: dict[str, str | None] = {}
        printed: list[tuple[str | None, str]] = []
        problems: list[str] = []
        named = None
        for column, word in zip(self._columns, words, strict=True):
            if column.parameter:
                groups[column.parameter] = word
            elif column.names:
                named = column.names.get(word)
            elif column.unit:
                printed.append((column.metric, word))
            elif column.accept and word != column.accept:
                problems.append(f"{shorten(word, 40)} where {column.accept!r} should stand")
        broken: list[str] = []
        parameters = self._notes.typed(groups, broken)
        if broken or not printed:
            return False
        for metric, word in printed:
            if not (metric or named):
                return False
            self._notes.measure(metric or named or "", word, parameters, problems)
        return True
