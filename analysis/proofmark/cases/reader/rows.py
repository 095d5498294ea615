"""Rows that stand alone, and the lines elsewhere that vouch for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from proofmark.cases.reader.builder import Notes, ReadingBuilder
from proofmark.cases.reader.spec_text import Row
from proofmark.cases.reader.values import shorten

Match = re.Match[str]


@dataclass
class Rows:
    """The rows of one rule in one run: the last, which waits for its check, and their number."""

    rule: Row
    notes: Notes
    waiting: list[ReadingBuilder] = field(default_factory=list)
    confirmed: bool = False
    seen: int = 0
    counted: int | None = None

    def broken(self, problem: str) -> None:
        """Note that a row cannot be read."""
        for metric in self.rule.metrics:
            self.notes.unread(metric, problem)

    def finish(self) -> None:
        """Judge the rows after the last line of the run."""
        self._settle()
        problems = self.notes.run.problems
        if self.rule.count and self.counted is None:
            problems.append("no line says how many rows there should be")
        elif self.counted not in (None, self.seen):
            problems.append(f"{self.seen} rows, but the program counted {self.counted}")

    def _settle(self) -> None:
        """End the wait of the last row for its check."""
        if self.rule.confirm and not self.confirmed:
            for draft in self.waiting:
                draft.problems.append("the line that confirms it is missing")
        self.waiting, self.confirmed = [], False

    def row(self, begins: Match) -> None:
        """Take a line that looks like a row."""
        self._settle()
        self.seen += 1
        match = self.rule.match.fullmatch(begins.string)
        problems: list[str] = []
        parameters = self.notes.typed(match.groupdict(), problems) if match else {}
        if not match or problems:
            self.broken(f"broken line {shorten(begins.string)}")
            return
        for metric in self.rule.metrics:
            self.waiting.append(self.notes.measure(metric, match[metric], parameters, ()))

    def confirm(self) -> None:
        """Take the line that vouches for the last row."""
        self.confirmed = True

    def refuse(self, match: Match) -> None:
        """Take a line that speaks against the last row."""
        self.confirmed = True  # its check is there, and says no
        for draft in self.waiting:
            draft.problems.append(f"the output says {shorten(match.string)}")

    def count(self, match: Match) -> None:
        """Take a line that says how many rows there are."""
        # A count of more than nine digits is no count; nothing will equal it.
        self.counted = (self.counted or 0) + int(match["count"][:9])
