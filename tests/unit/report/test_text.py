"""Numbers and texts of the report: readable, and harmless with any content."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.judge.results import WORDS
from proofmark.report.page import LONGEST_TABLE, table
from proofmark.report.summary import MEANINGS
from proofmark.report.words import (
    LONGEST,
    count,
    number,
    size_4_digits,
    visible,
)

INVISIBLE = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")


@given(st.text(st.characters()))
def test_visible_text_has_no_invisible_character(text: str) -> None:
    shown = visible(text)
    assert all(
        unicodedata.category(character) not in INVISIBLE or character in "\n\t"
        for character in shown
    )
    shown.encode("utf-8")


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=LONGEST))
def test_visible_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


def test_a_long_text_is_cut_and_the_rest_is_counted() -> None:
    assert visible("x" * (LONGEST + 7)) == "x" * LONGEST + " … (7 more characters)"
    assert visible("\x1b" * LONGEST) == "\\x1b" * LONGEST
    assert visible("\xff\u0100\u202e\ue000\t") == "\xff\u0100\\u202e\\ue000\t"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0"),
        (2.0, "2"),
        (0.24, "0.2400"),
        (9.60209, "9.602"),
        (173.4321, "173.4"),
        (5749.87, "5750"),
        (1170285.0, "1\u202f170\u202f285"),
        (0.00001234567, "1.235e-05"),
        (-12345.6, "-12\u202f346"),
        (float("inf"), "inf"),
        (3e22, "3e+22"),
        (1e15, "1e+15"),
        (-9.99e14, "-999\u202f000\u202f000\u202f000\u202f000"),
        (9999.0, "9999"),
        (10000.0, "10\u202f000"),
        (1000.4, "1000"),
        (999.4, "999.4"),
        (1e-4, "0.0001000"),
        (-9.9e-5, "-9.9e-05"),
    ],
)
def test_numbers_are_rounded_and_grouped(value: float | None, shown: str) -> None:
    assert number(value) == shown


@given(st.floats(-1e300, 1e300), st.integers(1, 8))
def test_a_number_is_rounded_to_its_digits(value: float, digits: int) -> None:
    shown = float(number(value, digits).replace("\u202f", ""))
    assert shown == pytest.approx(value, rel=0.51 * 10 ** (1 - digits), abs=1e-323)


@pytest.mark.parametrize(
    ("bytes_", "shown"),
    [
        (None, "–"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (64 << 20, "64 MiB"),
        (3 << 39, "1.5 TiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_sizes_have_binary_units_and_up_to_four_digits(bytes_: int | None, shown: str) -> None:
    assert size_4_digits(bytes_) == shown


def test_plurals() -> None:
    assert [count(1, "step"), count(2, "step"), count(0, "entry", "entries")] == [
        "1 step",
        "2 steps",
        "0 entries",
    ]


def test_a_long_table_is_cut_and_the_rest_is_counted() -> None:
    rows = [(f"row {index}", "value") for index in range(LONGEST_TABLE + 3)]
    cut = table("Many", ("Name", "Value"), rows, rest="See records.parquet.")
    assert len(cut.rows) == LONGEST_TABLE
    assert cut.notes == ("3 more rows not shown here. See records.parquet.",)
    assert table("Few", ("Name", "Value"), rows[:2]).notes == ()


@pytest.mark.lint
def test_the_readme_has_the_meanings_of_the_verdicts_of_the_report() -> None:
    readme = (ROOT / "README.md").read_text()
    lines = [f"| {word} | {meaning} |" for word, meaning in MEANINGS.items()]
    assert "\n".join(lines) in readme.split("## ")[0]
    assert tuple(MEANINGS) == WORDS
