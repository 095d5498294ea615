"""The parts of a page, as plain lists. The template loops over them without conditions.

An optional part is a list that may be empty. Texts are plain and may be foreign: the template
escapes them, invisible characters included. Only `Picture.svg` is markup, made by this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from proofmark.common.translation import _
from proofmark.report.words import count, grouped

TITLED = "titled"
"""Kind of a table whose caption repeats the title above it: only screen readers get it."""

LONGEST_LIST = 20
"""The largest number of items that a list shows before a click."""

LONGEST_TABLE = 1000
"""The largest number of rows of a table; a note below counts the rows that are left out."""


@dataclass(frozen=True)
class PageLink:
    """A file of the run, by its path relative to the report."""

    path: str
    text: str

    @property
    def href(self) -> str:
        """Return the path as a relative URL."""
        return quote(self.path)


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        kind: CSS classes: ``number``, ``word PASS``, ``code``.
        details: lines below the text, in a smaller font.
    """

    text: str
    kind: str = ""
    details: tuple[str, ...] = ()
    links: tuple[PageLink, ...] = ()


Cells = tuple[Cell | str, ...]
"""The cells of a row."""


@dataclass(frozen=True)
class Column:
    """A column of a table; cells of `kind` ``number`` are aligned right."""

    title: str
    kind: str = ""


@dataclass(frozen=True)
class LabelledCell:
    """A cell with the title of its column, for narrow screens."""

    label: str
    cell: Cell


@dataclass(frozen=True)
class Row:
    """A row of a table; `head` names its subject."""

    head: LabelledCell
    cells: tuple[LabelledCell, ...]


@dataclass(frozen=True)
class Table:
    """A table; `kind` is a CSS class."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Picture:
    """A plot with its caption and files; `kind` is a CSS class, ``wide`` for several panels."""

    title: str
    text: str
    svg: str
    links: tuple[PageLink, ...]
    kind: str = ""


@dataclass(frozen=True)
class Block:
    """A piece of a section."""

    titles: tuple[str, ...] = ()
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    links: tuple[PageLink, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    codes: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()

    @property
    def lists(self) -> tuple[tuple[str, ...], ...]:
        """Return the items as one list; nothing if there are none."""
        return (self.items,) if self.items else ()

    @property
    def link_lists(self) -> tuple[tuple[PageLink, ...], ...]:
        """Return the links as one list; nothing if there are none."""
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
    """Return a table of at most `LONGEST_TABLE` rows.

    Args:
        caption: shown above the table, or read by screen readers only (`TITLED`).
        rest: added to the note about rows that are left out: where these are.
        total: number of rows. With it, `rows` is read only as far as rows are shown.
    """
    heads = tuple(column if isinstance(column, Column) else Column(column) for column in columns)
    lines = list(rows if total is None else islice(rows, LONGEST_TABLE))
    built = []
    for line in lines[:LONGEST_TABLE]:
        cells = [
            LabelledCell(column.title, cell if isinstance(cell, Cell) else Cell(cell, column.kind))
            for column, cell in zip(heads, line, strict=True)
        ]
        built.append(Row(cells[0], tuple(cells[1:])))
    more = (len(lines) if total is None else total) - len(built)
    notes = (
        (
            _("{rows} not shown here. {place}")
            .format(rows=count(more, "more row"), place=rest)
            .strip(),
        )
        if more > 0
        else ()
    )
    return Table(caption, heads, tuple(built), notes, kind)


def titled(
    caption: str,
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[Cell | str]],
    *,
    rest: str = "",
    total: int | None = None,
) -> Table:
    """Return a `table` whose caption repeats the title above it (`TITLED`)."""
    return table(caption, columns, rows, kind=TITLED, rest=rest, total=total)


def tabled(
    caption: str,
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[Cell | str]],
    *why: str,
    rest: str = "",
) -> Block:
    """Return a block with a title, the paragraphs `why`, and a `titled` table."""
    shown = titled(caption, columns, rows, rest=rest)
    return Block(titles=(caption,), paragraphs=why, tables=(shown,))


def numeric(title: str) -> Column:
    """Return a column of numbers, which are aligned right."""
    return Column(title, "number")


def listed(title: str, items: Iterable[str], *why: str) -> Block:
    """Return a block with a title, the paragraphs `why`, and a list.

    Of more than `LONGEST_LIST` items the first are shown, and all others open at a click.
    """
    every = tuple(items)
    rest = every[LONGEST_LIST:]
    more = _("Show {count} more").format(count=grouped(len(rest)))
    folds = (Fold(more, Block(items=rest)),) if rest else ()
    return Block(titles=(title,), paragraphs=why, items=every[:LONGEST_LIST], folds=folds)


def facts(caption: str, rows: Iterable[tuple[str, str]], *, kind: str = "") -> Table:
    """Return a table of two columns: name and value."""
    return table(caption, (_("Property"), _("Value")), rows, kind=f"facts {kind}".strip())
