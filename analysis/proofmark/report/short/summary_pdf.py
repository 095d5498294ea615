"""Draws the summary as PDF: A4, embedded fonts, the same bytes for the same summary and time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from fpdf import FPDF
from fpdf.enums import TableBordersLayout, TableHeadingsDisplay
from fpdf.fonts import FontFace, TTFFont

from proofmark.common.translation import translated
from proofmark.judge.headline import SANITY
from proofmark.report.short.fonts import Font, has_hangul, korean, latin, monospaced
from proofmark.report.short.sheet import Sheet, SheetPart
from proofmark.report.unbroken import SHORT

INK, SOFT, LINE = (22, 25, 29), (86, 94, 104), (190, 197, 204)
COLOURS = {
    "PASS": (0, 97, 74),
    SANITY: (60, 60, 60),
    "FAIL": (163, 51, 11),
    "INVALID": (122, 42, 99),
    "UNJUDGED": (74, 85, 96),
}
"""The colour of each verdict. The word is always printed, so that no colour is needed."""
DASHES = {
    "PASS": (0.0, 0.0),
    SANITY: (0.0, 0.0),
    "FAIL": (0.0, 0.0),
    "INVALID": (3.0, 1.5),
    "UNJUDGED": (0.7, 1.2),
}
"""Length of the dashes and of the gaps of the frame of each verdict, mm. FAIL has two lines."""
MARGIN, TOP, BOTTOM = 14.0, 12.0, 13.0
TEXT, SMALL, LARGE = 7.8, 7.0, 17.0
"""Sizes of letters, points."""
LEADING = 3.7
"""Distance of two lines of text, mm."""
LEAST = 26.0
"""Least height that a part needs below its title, mm: its title stays with its first rows."""
GAP = 2.2
"""Distance of two columns of a table, mm."""
PARTY = 48.0
"""Height of the signatures, mm."""


class _Document(FPDF):
    """A document with a line at the foot of each page."""

    def __init__(self, sheet: Sheet, written: datetime) -> None:
        super().__init__(format="A4")
        self._foot = sheet.footer
        self.set_margins(MARGIN, TOP)
        self.set_auto_page_break(True, BOTTOM)
        self.set_title(f"{translated(sheet.word)} – {sheet.title}")
        self.set_producer("Proofmark")
        self.set_creation_date(written)
        # Names of nodes can have letters that no font has: a box is printed for them.
        logging.getLogger("fpdf").setLevel(logging.ERROR)
        logging.getLogger("fontTools").setLevel(logging.ERROR)
        hangul = has_hangul(sheet.texts())
        self._add(main := korean() if hangul else latin(), "text")
        self._add(monospaced(), "code")
        if hangul:
            self._add(latin(), "more")
            self.set_fallback_fonts(["more"])
            for font in (self.fonts["text"], self.fonts["textB"]):
                assert isinstance(font, TTFFont)  # of a file
                font.cmap.pop(ord("\\"), None)  # NanumGothic has a won sign in its place
        self.main = main
        self.set_draw_color(*LINE)
        self.set_text_color(*INK)

    def _add(self, font: Font, name: str) -> None:
        self.add_font(name, "", font.regular)
        self.add_font(name, "B", font.bold)

    def footer(self) -> None:
        """Draw the foot of a page."""
        self.set_y(-BOTTOM + 3)
        self.set_font("text", "", SMALL)
        self.set_text_color(*SOFT)
        self.cell(self.epw / 2, 4, self._foot)
        self.cell(self.epw / 2, 4, f"{self.page_no()} / {{nb}}", align="R")
        self.set_text_color(*INK)


def pdf(sheet: Sheet, written: datetime) -> tuple[bytes, int]:
    """Return the summary as PDF, and its number of pages.

    Args:
        sheet: the summary.
        written: its time, which is in the file.

    Raises:
        BadInput: a font is missing.
    """
    document = _Document(sheet, written)
    document.c_margin = 0
    document.add_page()
    _head(document, sheet)
    _facts(document, sheet)
    for part in sheet.parts:
        _part(document, part)
    _signatures(document, sheet)
    pages = document.page_no()
    return bytes(document.output()), pages


def _head(document: _Document, sheet: Sheet) -> None:
    document.set_font("text", "", SMALL)
    document.set_text_color(*SOFT)
    document.cell(0, 4, f"Proofmark – {sheet.kit}", new_x="LMARGIN", new_y="NEXT")
    document.set_text_color(*INK)
    document.set_font("text", "B", LARGE)
    document.multi_cell(0, 8, sheet.title, align="L", new_x="LMARGIN", new_y="NEXT")
    document.ln(1.5)
    _verdict(document, sheet)
    _tallies(document, sheet)


def _verdict(document: _Document, sheet: Sheet) -> None:
    """Draw the verdict of the run in its frame, with its sentence."""
    colour = COLOURS[sheet.word]
    document.set_font("text", "B", 20)
    shown = translated(sheet.word)
    word = document.get_string_width(shown) + 6
    document.set_font("text", "", 9)
    width = document.epw - word - 8
    lines = document.multi_cell(width, 4.4, sheet.sentence, dry_run=True, output="LINES")
    assert isinstance(lines, list)  # the type depends on `output`
    height = max(14.0, 4.4 * len(lines) + 5)
    x, y = document.l_margin, document.get_y()
    document.set_draw_color(*colour)
    document.set_line_width(0.6)
    dash, gap = DASHES[sheet.word]
    document.set_dash_pattern(dash, gap)
    document.rect(x, y, document.epw, height)
    if sheet.word == "FAIL":
        document.set_line_width(0.3)
        document.rect(x + 1, y + 1, document.epw - 2, height - 2)
    document.set_dash_pattern()
    document.set_text_color(*colour)
    document.set_font("text", "B", 20)
    document.set_xy(x + 3, y)
    document.cell(word, height, shown)
    document.set_text_color(*INK)
    document.set_font("text", "", 9)
    document.set_xy(x + word + 4, y + (height - 4.4 * len(lines)) / 2)
    document.multi_cell(width, 4.4, sheet.sentence, align="L")
    document.set_xy(x, y + height + 2.5)


def _tallies(document: _Document, sheet: Sheet) -> None:
    """Draw the numbers of figures by verdict beside each other."""
    width, y = document.epw / len(sheet.tallies), document.get_y()
    for number, tally in enumerate(sheet.tallies):
        x = document.l_margin + number * width
        document.set_fill_color(*COLOURS[tally.word])
        document.rect(x, y + 0.5, 0.9, 5.6, style="F")
        document.set_text_color(*COLOURS[tally.word])
        document.set_xy(x + 2, y)
        document.set_font("text", "B", 12)
        document.cell(document.get_string_width(tally.count) + 2.5, 6.4, tally.count)
        document.set_font("text", "B", TEXT)
        document.cell(30, 6.9, translated(tally.word))
    document.set_fill_color(255)  # a table fills its cells with the last colour
    document.set_text_color(*INK)
    document.set_draw_color(*LINE)
    document.set_xy(document.l_margin, y + 8.5)


def _facts(document: _Document, sheet: Sheet) -> None:
    """Draw the facts in two columns, row by row."""
    gap, label = 5.0, 18.0
    width = (document.epw - gap) / 2
    document.set_font("text", "", TEXT)
    for first in range(0, len(sheet.facts), 2):
        y, below = document.get_y(), 0.0
        for side, (name, value) in enumerate(sheet.facts[first : first + 2]):
            document.set_xy(document.l_margin + side * (width + gap), y)
            document.set_text_color(*SOFT)
            document.cell(label, LEADING, name)
            document.set_text_color(*INK)
            document.multi_cell(width - label, LEADING, value, align="L")
            below = max(below, document.get_y())
        document.set_xy(document.l_margin, below + 0.4)


def _part(document: _Document, part: SheetPart) -> None:
    """Draw a part; its title stays with its first rows."""
    if document.will_page_break(LEAST):
        document.add_page()
    _title(document, part.title)
    _paragraphs(document, part.notes, "")
    if part.rows:
        _table(document, part)
    _paragraphs(document, part.rest, "B")


def _title(document: _Document, title: str) -> None:
    document.ln(2.6)
    document.set_draw_color(*INK)
    document.set_line_width(0.45)
    y = document.get_y()
    document.line(document.l_margin, y, document.l_margin + document.epw, y)
    document.set_draw_color(*LINE)
    document.set_font("text", "B", 9.4)
    document.set_y(y + 0.9)
    document.cell(0, 5, title, new_x="LMARGIN", new_y="NEXT")


def _paragraphs(document: _Document, texts: tuple[str, ...], style: str) -> None:
    document.set_text_color(*SOFT)
    document.set_font("text", style, SMALL)
    for text in texts:
        document.multi_cell(0, 3.5, text, align="L", new_x="LMARGIN", new_y="NEXT")
        document.ln(0.5)
    document.set_text_color(*INK)


def _table(document: _Document, part: SheetPart) -> None:
    widths = _widths(document, part)
    document.set_font("text", "", TEXT)
    document.set_line_width(0.15)
    with document.table(
        col_widths=widths,
        text_align=tuple("RIGHT" if each.kind == "number" else "LEFT" for each in part.columns),
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
        line_height=LEADING,
        padding=(0.45, GAP, 0.45, 0),
        v_align="TOP",
        first_row_as_headings=bool(part.heads),
        repeat_headings=TableHeadingsDisplay.ON_TOP_OF_EVERY_PAGE,
        headings_style=FontFace(emphasis="BOLD", color=SOFT, size_pt=SMALL),
        num_heading_rows=len(part.heads),
        gutter_height=0,
    ) as table:
        for columns in part.heads:
            table.row([column.title for column in columns])
        for cells in part.cells:
            row = table.row()
            for cell in cells:
                row.cell(cell.shown, style=_style(cell.column.kind, cell.text))


def _widths(document: _Document, part: SheetPart) -> tuple[float, ...]:
    """Return the widths of the columns in mm; each has room for its longest short word."""
    least = [0.0] * len(part.columns)
    for cells in part.cells:
        for number, cell in enumerate(cells):
            kind = cell.column.kind
            family = ("code", "") if kind == "code" else ("text", "B" if kind == "word" else "")
            document.set_font(*family, SMALL - 0.3 if kind == "code" else TEXT)
            words = (word for word in cell.shown.split() if len(word) <= SHORT)
            widest = max(map(document.get_string_width, words), default=0.0)
            least[number] = max(least[number], widest + GAP + 0.2)
    return column_widths([column.share for column in part.columns], least, document.epw)


def _style(kind: str, text: str) -> FontFace | None:
    if kind == "word":
        return FontFace(emphasis="BOLD", color=COLOURS.get(text, SOFT))
    return FontFace(family="code", size_pt=SMALL - 0.3) if kind == "code" else None


def _signatures(document: _Document, sheet: Sheet) -> None:
    """Draw the fields of the signatures; they stay on one page."""
    if document.will_page_break(PARTY + 14):
        document.add_page()
    _title(document, sheet.signature)
    _paragraphs(document, (sheet.declaration,), "")
    gap, y = 10.0, document.get_y() + 1
    width = (document.epw - gap * (len(sheet.parties) - 1)) / max(1, len(sheet.parties))
    for number, party in enumerate(sheet.parties):
        x = document.l_margin + number * (width + gap)
        document.set_xy(x, y)
        document.set_font("text", "B", 8.4)
        document.cell(width, 5, party.name)
        document.set_font("text", "", SMALL)
        document.set_text_color(*SOFT)
        document.set_draw_color(*INK)
        document.set_line_width(0.2)
        for place, line in enumerate(party.lines, start=1):
            foot = y + 5 + place * (PARTY - 5) / len(party.lines)
            document.set_xy(x, foot - 4)
            document.cell(width, 4, line)
            document.line(x + 22, foot, x + width, foot)
        document.set_text_color(*INK)


def column_widths(
    shares: Sequence[float], least: Sequence[float], width: float
) -> tuple[float, ...]:
    """Return widths of the `shares` of `width`, each at least that in `least`, in mm.

    fpdf2 breaks a word that is wider than its column, also the name of a node. The room that a
    column needs is taken from the others, in proportion to what they can give. If all of them
    together need more than `width`, the widths are those of the shares.
    """
    wanted = [share / sum(shares) * width for share in shares]
    missing = sum(max(0.0, need - want) for need, want in zip(least, wanted, strict=True))
    spare = sum(max(0.0, want - need) for need, want in zip(least, wanted, strict=True))
    if missing > spare:
        return tuple(wanted)
    given = missing / spare if spare else 0.0
    return tuple(
        need if want < need else want - (want - need) * given
        for need, want in zip(least, wanted, strict=True)
    )
