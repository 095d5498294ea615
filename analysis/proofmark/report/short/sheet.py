"""The parts of the summary of two pages, as plain texts. HTML and PDF show the same parts."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.common.text import one_line
from proofmark.common.translation import translated
from proofmark.report.words import visible


@dataclass(frozen=True)
class SheetColumn:
    """A column of a table.

    Attributes:
        title: of the column; empty for none.
        share: its part of the width of the page, in per cent.
        kind: ``word`` (one of the verdicts), ``number`` (aligned right), ``code`` or empty.
    """

    title: str
    share: int
    kind: str = ""


@dataclass(frozen=True)
class SheetCell:
    """A cell of a table.

    Attributes:
        text: in a column of the kind ``word`` the English word, which decides on the colour.
    """

    column: SheetColumn
    text: str

    @property
    def shown(self) -> str:
        """The text in the language of the page."""
        return translated(self.text) if self.column.kind == "word" else self.text


@dataclass(frozen=True)
class SheetPart:
    """A titled part of the summary: a table with notes.

    Attributes:
        id: its name in HTML.
        notes: sentences above the table.
        rest: sentences below the table: the number of rows that are left out, and their place.
    """

    id: str
    title: str
    columns: tuple[SheetColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    @property
    def heads(self) -> tuple[tuple[SheetColumn, ...], ...]:
        """The row of titles; nothing if no column has one."""
        return (self.columns,) if any(column.title for column in self.columns) else ()

    @property
    def cells(self) -> tuple[tuple[SheetCell, ...], ...]:
        """The cells of each row."""
        return tuple(
            tuple(SheetCell(column, text) for column, text in zip(self.columns, row, strict=True))
            for row in self.rows
        )


@dataclass(frozen=True)
class SheetCount:
    """One of the four verdicts, and the number of figures with it."""

    word: str
    count: str


@dataclass(frozen=True)
class Party:
    """A party that signs: its name, and the labels of the lines that it fills in."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """The summary.

    Attributes:
        kit: the line above the title.
        word: the verdict of the run, one of the four words.
        sentence: the reason for the verdict.
        facts: names and values: the machine, the run.
        declaration: the sentence above the signatures.
        footer: the line at the foot of each page.
    """

    kit: str
    title: str
    word: str
    sentence: str
    tallies: tuple[SheetCount, ...]
    facts: tuple[tuple[str, str], ...]
    parts: tuple[SheetPart, ...]
    signature: str
    declaration: str
    parties: tuple[Party, ...]
    footer: str

    def texts(self) -> str:
        """Return all texts: the characters for which a font is needed."""
        parts = (
            "".join((*part.notes, *part.rest, *(cell for row in part.rows for cell in row)))
            + "".join((part.title, *(column.title for column in part.columns)))
            for part in self.parts
        )
        facts = (name + value for name, value in self.facts)
        parties = (party.name + "".join(party.lines) for party in self.parties)
        tallies = (tally.word + tally.count for tally in self.tallies)
        heads = (self.kit, self.title, self.word, self.sentence, self.signature, self.footer)
        return "".join((*heads, self.declaration, *facts, *parts, *parties, *tallies))


@dataclass(frozen=True)
class Allowance:
    """The largest number of rows of the parts that can be long.

    Attributes:
        limits: rows of limits.
        exceptions: rows of exceptions.
        nodes: rows of bad nodes.
        characters: the longest text of a cell.
    """

    limits: int
    exceptions: int
    nodes: int
    characters: int


ALLOWANCES = (
    Allowance(24, 12, 16, 160),
    Allowance(20, 10, 12, 130),
    Allowance(16, 8, 10, 110),
    Allowance(12, 7, 8, 90),
    Allowance(8, 5, 5, 70),
    Allowance(4, 3, 3, 50),
)
"""From the largest to the smallest. The first one with which the pages suffice is used."""


def clipped(text: str, most: int) -> str:
    """Return `text` as one visible line of at most `most` characters."""
    line = visible(one_line(text))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
