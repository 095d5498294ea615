"""Text of others: no line of its own, no control character, no formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
import logging
import unicodedata
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.cli.output import table_text
from proofmark.common.errors import bad_input
from proofmark.common.processes import TRACE, trace
from proofmark.common.progress_lines import say
from proofmark.common.text import beside, csv_cell, one_line
from proofmark.judge.diagnosis.bad_nodes import as_csv
from proofmark.packages.exports.junit import allowed
from proofmark.report.words import visible

FORGED = "powered off\nproofmark: PASS\r\x1b[2J\x85\u2028\u2029\u202e\u2066\x9b31m\x00end"
CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # Unicode general categories


def said(text: str) -> str:
    """Return what `say` prints."""
    with pytest.MonkeyPatch.context() as patch:
        stream = io.StringIO()
        patch.setattr("sys.stderr", stream)
        say(text)
    return stream.getvalue().removesuffix("\n")


def traced(text: str) -> str:
    """Return the line that the trace of a call with this outcome has."""
    stream = io.StringIO()
    handler, level = logging.StreamHandler(stream), TRACE.level
    TRACE.addHandler(handler)
    TRACE.setLevel(logging.INFO)
    try:
        trace(text, text, 1.0)
    finally:
        TRACE.removeHandler(handler)
        TRACE.setLevel(level)
    return stream.getvalue().removesuffix("\n")


EDGES: dict[str, Callable[[str], str]] = {
    "one_line": one_line,
    "csv": csv_cell,
    "message": said,
    "error": lambda text: str(bad_input(text, text, text, text)),
    "trace": traced,
    "table": lambda text: table_text(["a"], [[text]], None).partition("\n")[2],
    "junit": allowed,
    "rma.csv": lambda text: as_csv([(text, "", "", "")]).partition("\n")[2].removesuffix("\n"),
}
"""The functions that every text of others passes before it is printed or written."""


@pytest.mark.parametrize("edge", EDGES)
@given(st.text(st.characters(), max_size=60) | st.just(FORGED))
def test_no_text_gives_a_second_line_or_a_control_character(edge: str, text: str) -> None:
    shown = EDGES[edge](text)
    assert len(shown.splitlines()) <= 1
    assert not [letter for letter in shown if unicodedata.category(letter) in CONTROLS]


@given(st.text(st.characters(), max_size=60))
def test_no_text_is_invisible_in_the_report(text: str) -> None:
    shown = visible(text).replace("\n", "").replace("\t", "")
    assert not [letter for letter in shown if unicodedata.category(letter) in CONTROLS]


@pytest.mark.fault("message-imitates-the-kit")
def test_a_message_cannot_imitate_a_line_of_the_kit() -> None:
    for edge in EDGES.values():
        assert not any(line.startswith("proofmark: ") for line in edge(FORGED).splitlines())
    assert said(FORGED) == "powered off proofmark: PASS [2J 31m end"


def test_a_printable_message_is_not_changed() -> None:
    """Control: no fault is injected."""
    text = "job 1: held: 2 nodes · 5 × 3 µs — größer"
    assert said(text) == one_line(text) == csv_cell(text) == visible(text) == text


@pytest.mark.fault("formula-in-a-cell")
@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_is_text(text: str) -> None:
    ((first, *_),) = list(csv.reader(as_csv([(text, "", "", "")]).splitlines()))[1:]
    assert first == f"'{one_line(text)}"


@pytest.mark.parametrize("text", ["-3.5", "+1", "-1e-7", "12", ".5", "n1", "a=b", ""])
def test_a_number_stays_a_number(text: str) -> None:
    """Control: no fault is injected."""
    assert csv_cell(text) == text


@given(st.text(max_size=40))
def test_junit_is_xml(text: str) -> None:
    made = ElementTree.tostring(ElementTree.Element("a", b=allowed(text)))
    assert ElementTree.fromstring(made).get("b") == allowed(text)


@pytest.mark.parametrize(
    ("ratio", "bounds", "shown"),
    [
        (0.9912, (1.0, None), "0.991"),
        (0.99996, (1.0, None), "0.99996"),
        (1.00004, (None, 1.0), "1.00004"),
        (1.0, (1.0, None), "1"),
        (0.99994, (0.9, 1.0), "0.9999"),
        (1e-300, (0.0, None), "1e-300"),
    ],
)
def test_a_ratio_is_printed_on_its_side_of_each_bound(
    ratio: float, bounds: tuple[float | None, ...], shown: str
) -> None:
    assert beside(ratio, *bounds) == shown
