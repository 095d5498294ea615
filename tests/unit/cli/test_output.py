"""The tables of the commands fit the terminal, and no word is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofmark.cli.output import table_text

HEADERS = ("step", "reason")
WORD = st.from_regex(r"[A-Za-z0-9.,-]{1,50}", fullmatch=True)
TEXT = st.lists(WORD, min_size=1, max_size=20).map(" ".join)
ROWS = st.lists(st.tuples(WORD, TEXT), min_size=1, max_size=8)
WIDTHS = st.sampled_from([40, 80, 132, None])


@given(ROWS, WIDTHS)
def test_every_word_is_printed_whole(rows: list[tuple[str, str]], width: int | None) -> None:
    words = table_text(HEADERS, rows, width).split()
    assert {word for row in rows for text in row for word in text.split()} <= set(words)


@given(ROWS, st.sampled_from([40, 80, 132]))
def test_no_line_of_several_words_is_wider_than_the_terminal(
    rows: list[tuple[str, str]], width: int
) -> None:
    for line in table_text(HEADERS, rows, width).splitlines():
        assert len(line) <= width or len(line.split()) == 1


@given(ROWS)
def test_without_a_width_each_row_is_one_line(rows: list[tuple[str, str]]) -> None:
    lines = table_text(HEADERS, rows, None).splitlines()
    assert [line.split() for line in lines[1:]] == [" ".join(row).split() for row in rows]


def test_a_long_text_is_broken_between_words_in_its_column() -> None:
    rows = [("0001-stream", "the rank was bound to other CPUs than the plan asks for")]
    assert table_text(HEADERS, rows, 45).splitlines() == [
        "step         reason",
        "0001-stream  the rank was bound to other CPUs",
        "             than the plan asks for",
    ]


def test_the_widest_column_keeps_its_longest_word() -> None:
    rows = [("0" * 19, "0 0 0 0 0 0 0 0 0000")]
    assert table_text(HEADERS, rows, 40).splitlines()[1:] == [
        f"{'0' * 19}  0 0 0 0 0 0 0 0",
        f"{' ' * 21}0000",
    ]


def test_a_row_is_a_block_if_its_words_do_not_fit_side_by_side() -> None:
    step, path = f"0001-{'x' * 30}", f"/scratch/{'y' * 20}"
    assert table_text(HEADERS, [(step, f"in {path}")], 45).splitlines() == [
        f"step: {step}",
        f"reason: in {path}",
    ]
