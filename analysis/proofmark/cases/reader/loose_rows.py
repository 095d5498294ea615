"""Rows outside of tables, and the lines elsewhere that confirm or refuse them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofmark.cases.reader.builder import Notes, ReadingBuilder
from proofmark.cases.reader.spec_text import Row
from proofmark.cases.reader.values import Parameter, shorten
from proofmark.common.message import Message

Match = re.Match[str]


@dataclass
class Rows:
    """The rows of one rule in one run.

    Attributes:
        waiting: the readings of the last row, until its check is read.
        parameters: of the last row.
        confirmed: whether the check of the last row was read.
        seen: number of rows.
        counted: number of rows that the program reports.
    """

    rule: Row
    notes: Notes
    waiting: list[ReadingBuilder] = field(default_factory=list)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    confirmed: bool = False
    seen: int = 0
    counted: int | None = None

    def broken(self, problem: Message) -> None:
        """Add INVALID readings for a row that cannot be read."""
        for metric in self.rule.metrics:
            self.notes.unread(metric, problem)

    def finish(self) -> None:
        """Check the rows after the last line of the run."""
        self._settle()
        problems = self.notes.run.problems
        if self.rule.count and self.counted is None:
            problems.append(Message("reader-no-count"))
        elif self.counted not in (None, self.seen):
            counted = f"{self.counted}"
            problems.append(Message("reader-other-count", rows=self.seen, counted=counted))

    def _settle(self) -> None:
        """Add a problem to the last row if its check is missing."""
        if self.rule.confirm and not self.confirmed:
            for builder in self.waiting:
                builder.problems.append(Message("reader-unconfirmed"))
        self.waiting, self.confirmed = [], False

    def row(self, begins: Match) -> None:
        """Read a line that `begins` matches."""
        self._settle()
        self.seen += 1
        match = self.rule.match.fullmatch(begins.string)
        problems: list[Message] = []
        parameters = self.notes.typed(match.groupdict(), problems) if match else {}
        if not match or problems:
            self.broken(Message("reader-broken-line", line=shorten(begins.string)))
            return
        self.parameters = parameters
        for metric in self.rule.metrics:
            self.waiting.append(self.notes.measure(metric, match[metric], parameters, ()))

    def confirm(self, match: Match) -> None:
        """Record that the last row is confirmed; read the metrics of its first such line."""
        for metric in self.rule.confirmed if self.waiting and not self.confirmed else ():
            check = self.notes.measure(metric, match[metric], self.parameters, ())
            problem = Message("reader-check", metric=metric, word=shorten(match[metric]))
            for builder in self.waiting if check.problems else ():
                builder.problems.append(problem)
            self.waiting.append(check)
        self.confirmed = True

    def refuse(self, match: Match) -> None:
        """Make the last row INVALID."""
        self.confirmed = True  # its check was read; the result is no
        for builder in self.waiting:
            builder.problems.append(Message("reader-contains", words=shorten(match.string)))

    def count(self, match: Match) -> None:
        """Read a line with the number of rows."""
        # A longer number is cut to nine digits; no number of rows is equal to it.
        self.counted = int(match["count"][:9])
