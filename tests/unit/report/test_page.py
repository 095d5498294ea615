"""The parts of a page, with the numbers at which a part changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from proofmark.common.message import English
from proofmark.common.translation import in_language
from proofmark.report.page import Block, Column, facts, listed, numeric, table, tabled, titled
from proofmark.report.render import _unbroken, _visible, unbroken
from proofmark.report.sections.issues import _some
from proofmark.report.words import visible

COLUMNS = ("Name", numeric("Value"))
ROWS = [(f"row {number}", f"{number}") for number in range(1, 1004)]


def of_block(*given: Any) -> Any:
    (shown,) = tabled(*given).tables
    return shown


@pytest.mark.parametrize(("make", "kind"), [(table, ""), (titled, "titled"), (of_block, "titled")])
def test_a_table_counts_the_rows_after_the_thousandth(make: Callable[..., Any], kind: str) -> None:
    for rows, notes in (
        (1000, ()),
        (1001, ("1 more row not shown here.",)),
        (1003, ("3 more rows not shown here.",)),
    ):
        made = make("Many", COLUMNS, ROWS[:rows])
        assert (made.caption, made.kind, made.notes) == ("Many", kind, notes)
        assert [row.head.cell.text for row in made.rows] == [name for name, _ in ROWS[:1000]]
    (row, *_) = made.rows
    (value,) = row.cells
    assert (row.head.label, row.head.cell.kind) == ("Name", "")
    assert (value.label, value.cell.text, value.cell.kind) == ("Value", "1", "number")
    assert made.columns == (Column("Name"), Column("Value", "number"))


def test_a_table_with_a_total_reads_no_row_that_it_does_not_show() -> None:
    read = []

    def rows() -> Iterator[tuple[str, str]]:
        for row in ROWS:
            read.append(row)
            yield row

    made = titled("Many", COLUMNS, rows(), rest="See there.", total=2000)
    assert made.notes == ("1000 more rows not shown here. See there.",)
    assert len(read) == 1000
    assert table("All", COLUMNS, ROWS[:3], total=3).notes == ()


def test_a_list_shows_twenty_items_before_a_click() -> None:
    names = [f"{number}" for number in range(21)]
    assert listed("title", names[:20], "why") == Block(
        titles=("title",), paragraphs=("why",), items=(*names[:20],)
    )
    (fold,) = listed("title", names).folds
    assert (fold.summary, fold.block, fold.kind) == ("Show 1 more", Block(items=("20",)), "")
    assert (Block().lists, Block().link_lists) == ((), ())


@pytest.mark.parametrize(("kind", "shown"), [("", "facts"), ("dense", "facts dense")])
def test_facts_are_a_table_of_names_and_values(kind: str, shown: str) -> None:
    made = facts("Facts", [("a", "1")], kind=kind)
    assert (made.kind, [column.title for column in made.columns]) == (shown, ["Property", "Value"])


@pytest.mark.parametrize(
    ("word", "html"),
    [
        ("x" * 24, "x" * 24),
        ("x" * 23 + "-", f'<span class="w">{"x" * 23}-</span>'),
        ("x" * 25, f'<span class="w long"><span class="any">{"x" * 25}</span></span>'),
        ("/" + "x" * 24, f'<span class="w long">{{}}<wbr><span class="w">{"x" * 24}</span></span>'),
        ("x" * 48, f'<span class="w long"><span class="any">{"x" * 48}</span></span>'),
        ("x" * 49, f'<span class="any"><span class="any">{"x" * 49}</span></span>'),
    ],
)
def test_a_word_breaks_when_it_is_too_long_for_a_screen(word: str, html: str) -> None:
    assert unbroken(word) == html.replace("{}", '<span class="w">/</span>')


def test_an_english_text_of_another_page_is_marked() -> None:
    """In a cell and elsewhere; its special characters stay texts."""
    marked = '<span lang="en">a &lt; b</span>'
    with in_language("ko"):
        assert f"{_visible(English('a < b'))}" == f"{_unbroken(English('a < b'))}" == marked
        assert _visible("a < b") == "a < b"
        assert f"{_unbroken('a < b')}" == "a &lt; b"


def test_a_text_of_2000_characters_is_shown_whole() -> None:
    assert visible("x" * 2000) == "x" * 2000
    assert visible("x" * 2001) == "x" * 2000 + " … (1 more characters)"
    assert visible("\x1b" + "x" * 1999) == "\\x1b" + "x" * 1999


@pytest.mark.parametrize(
    ("names", "shown"),
    [(1, "0"), (8, "0, 1, 2, 3, 4, 5, 6, 7"), (9, "0, 1, 2, 3, 4, 5, 6, 7 and 1 more")],
)
def test_eight_names_are_named(names: int, shown: str) -> None:
    assert _some([f"{number}" for number in range(names)]) == shown
