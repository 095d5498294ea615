"""Conversion of printed words."""

from __future__ import annotations

import pytest

from proofmark.cases.reader import values
from proofmark.cases.reader.values import measured, scaled, shorten


@pytest.fixture(autouse=True)
def _fresh() -> None:
    values.parameter.cache_clear()


@pytest.mark.parametrize(
    ("kind", "word", "value"),
    [
        ("int", " 12 ", 12),
        ("real", "1.5", 1.5),
        ("word", " a b ", "a b"),
        ("lower", "AbC", "abc"),
        ("size", "1.50 GiB", 1536 << 20),
        ("size", "7", 7),
        ("size", "7 bytes", 7),
        ("size", "7 B", 7),
        ("size", "7 KiB", 7 * 1024),
        ("size", "7MiB", 7 * 1024**2),
        ("size", "0.5 GiB", 1024**3 // 2),
        ("size", "7 TiB", 7 * 1024**4),
        ("suffixed", "4", 4),
        ("suffixed", "4Kb", 4096),
        ("suffixed", "4b", 4),
        ("suffixed", "3m", 3 * 1024**2),
        ("suffixed", "3G", 3 * 1024**3),
        ("suffixed", "2t", 2 << 40),
        ("suffixed", "1p", 1 << 50),
        # fio 3.33 wrote 1,000,000 bytes for size=1MiB and 1,048,576 for size=1M.
        ("suffixed", "1MiB", 10**6),
        ("suffixed", "64Ki", 64000),
    ],
)
def test_a_word_of_its_type(kind: str, word: str, value: object) -> None:
    assert values.parameter(kind, word) == value


LONG = "x" * 41
QUOTED = f"'{'x' * 20}…{'x' * 19}'"


@pytest.mark.parametrize(
    ("kind", "word", "message"),
    [
        ("int", LONG, f"{QUOTED} is not a whole number"),
        ("int", "1.5", "'1.5' is not a whole number"),
        ("real", LONG, f"{QUOTED} is not a number"),
        ("real", f"{-1}", "negative value '-1'"),
        ("word", "", "'' is not a word"),
        ("word", "a\x00", "'a�' is not a word"),
        ("word", "x" * 40 + "\x00", f"'{'x' * 20}…{'x' * 18}�'" + " is not a word"),
        ("word", LONG + "\x00", f"'{'x' * 20}…{'x' * 18}�' is not a word"),
        ("lower", "", "'' is not a word"),
        ("size", LONG, f"{QUOTED} is not a size"),
        ("size", "1.000000001 B", "'1.000000001 B' is not a whole number of bytes"),
        ("suffixed", LONG, f"{QUOTED} is not a size with the suffix k, m, g, t or p"),
    ],
)
def test_a_word_of_another_type(kind: str, word: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        values.parameter(kind, word)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        (LONG, f"{QUOTED} is not a number"),
        ("-" + "1" * 40, f"negative value '-{'1' * 19}…{'1' * 19}'"),
        ("1" * 36 + "e9999", f"'{'1' * 20}…{'1' * 14}e9999' is too large for a number"),
        ("-" + "1" * 41, f"negative value '-{'1' * 19}…{'1' * 19}'"),
        ("1" * 400, f"'{'1' * 20}…{'1' * 19}' is too large for a number"),
    ],
)
def test_a_value_that_is_not_measured(word: str, problem: str) -> None:
    assert measured(word) == (None, problem)
    assert scaled(word, 3) == (None, problem)


def test_a_number_without_a_power_is_as_printed() -> None:
    assert scaled("1.5", 0) == (1.5, "")
    # The middle of two numbers. Rounded to fewer digits it is nearer to the larger one.
    middle = "1.00000000000000011102230246251565404236316680908203125"
    assert scaled(middle, 0) == (float(middle), "") == (1.0, "")
    assert measured("0") == (0, "")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a  b\tc", "'a b c'"),
        ("x" * 10, f"'{'x' * 10}'"),
        ("x" * 11, f"'{'x' * 5}…{'x' * 4}'"),
        ("a" + " " * 90 + "b", "'a … b'"),
        ("a" + " " * 78 + "b", "'a b'"),
        ("ab" * 40 + "!", "'ababa…bab!'"),
        ("a" + " " * 80 + "b", "'a … b'"),
        ("a" + " " * 40 + "b" + " " * 200 + "c" + " " * 40 + "d", "'a … d'"),
    ],
)
def test_a_long_line_is_shortened(line: str, text: str) -> None:
    assert shorten(line, 10) == text


def test_the_usual_width_of_a_quoted_line() -> None:
    assert shorten("x" * 72) == f"'{'x' * 72}'"
    assert shorten("x" * 73) == f"'{'x' * 36}…{'x' * 35}'"
