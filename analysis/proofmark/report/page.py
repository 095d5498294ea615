"""The parts of a page, as plain lists: the template loops over them and decides nothing.

What may be missing is a list that may be empty. Texts are plain and foreign; the template makes
them visible and escapes them. Only `Picture.svg` is markup, of this package's own making.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from proofmark.report.text import count

TITLED = "titled"
"""Kind of a table whose caption repeats the title above it: it is read out, not shown."""

LONGEST_TABLE = 1000
"""Rows of one table of a page; what is left out is said."""


@dataclass(frozen=True)
class Link:
    """A file of the run, by its path relative to the report."""

    path: str
    text: str

    @property
    def href(self) -> str:
        """Return the path as a relative address."""
        return quote(self.path)


@dataclass(frozen=True)
class Cell:
    """A cell; `kind` is a CSS class: ``number``, ``word PASS``, ``code``, ….

    `details` stand below its text, smaller.
    """

    text: str
    kind: str = ""
    details: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column; cells of `kind` ``number`` stand to the right."""

    title: str
    kind: str = ""


@dataclass(frozen=True)
class LabelledCell:
    """A cell with the title of its column, for narrow screens."""

    label: str
    cell: Cell


@dataclass(frozen=True)
class Row:
    """A row; its head is what the row is about."""

    head: LabelledCell
    cells: tuple[LabelledCell, ...]


@dataclass(frozen=True)
class Table:
    """A table; `kind` is a CSS class."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure with its caption and its files; `kind` is a CSS class, ``wide`` for two panels."""

    title: str
    text: str
    svg: str
    links: tuple[Link, ...]
    kind: str = ""


@dataclass(frozen=True)
class Block:
    """A piece of a section."""

    titles: tuple[str, ...] = ()
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    codes: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()

    @property
    def lists(self) -> tuple[tuple[str, ...], ...]:
        """Return the items as one list, or none: an empty list is nothing to read out."""
        return (self.items,) if self.items else ()

    @property
    def link_lists(self) -> tuple[tuple[Link, ...], ...]:
        """Return the links as `lists` does the items."""
        return (self.links,) if self.links else ()


@dataclass(frozen=True)
class Fold:
    """A block that opens at a click."""

    summary: str
    block: Block
    kind: str = ""


@dataclass(frozen=True)
class Section:
    """A landmark of the page."""

    id: str
    title: str
    blocks: tuple[Block, ...]


def table(
    caption: str,
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[Cell | str]],
    *,
    kind: str = "",
    rest: str = "",
    total: int | None = None,
) -> Table:
    """Build a table from rows of cells; the first cell of a row is its head.

    No table is longer than `LONGEST_TABLE`; `rest` says where the other rows are. With `total`, how
    many there are, rows that are not shown are not made.
    """
    heads = tuple(each if isinstance(each, Column) else Column(each) for each in columns)
    lines = list(rows if total is None else islice(rows, LONGEST_TABLE))
    built = []
    for line in lines[:LONGEST_TABLE]:
        cells = [
            LabelledCell(
                column.title, given if isinstance(given, Cell) else Cell(given, column.kind)
            )
            for column, given in zip(heads, line, strict=True)
        ]
        built.append(Row(cells[0], tuple(cells[1:])))
    more = (len(lines) if total is None else total) - len(built)
    notes = (f"{count(more, 'more row')} not shown here. {rest}".strip(),) if more > 0 else ()
    return Table(caption, heads, tuple(built), notes, kind)


def facts(caption: str, rows: Iterable[tuple[str, str]], *, kind: str = "") -> Table:
    """Build a table of two columns from what is known: name and value."""
    return table(caption, ("What", "Value"), rows, kind=f"facts {kind}".strip())
