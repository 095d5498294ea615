"""Outputs of several copies in one file: after each other, and mixed line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples
from tests.fixtures.outputs import output_sample, readings_of

from proofmark.cases.reader.engine import Reading

STREAM = output_sample("stream-5.10_N2000000_t2.txt")
TITLE = "# OSU MPI Latency Test v7.4\n# Size  Avg Latency(us)\n"
OSU = TITLE + "".join(f"{1 << power}  {power + 0.5}\n" for power in range(4))
HPL = output_sample("hpl-1.0a_two-variants.txt")
IOR = output_sample("ior_io500_mistral_ior-easy-read.txt")
OUTPUTS = {"stream": STREAM, "osu-latency": OSU, "hpl": HPL, "ior": f"{IOR.rstrip()}\n"}
ROWS = {"stream": 4, "osu-latency": 4, "hpl": 4, "ior": 1}
"""Figures of rows."""
BESIDE_ROWS = {"residual"}
"""Figures of other lines."""
ENDS = {"stream": "Solution Validates", "hpl": "End of Tests", "ior": "Finished"}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs_after_each_other_are_valid(case: str) -> None:
    text = OUTPUTS[case]
    once = readings_of(case, text)
    assert len(in_rows(once)) == ROWS[case]
    assert all(reading.valid for reading in once)
    assert readings_of(case, text * 3) == once * 3


def in_rows(readings: Sequence[Reading]) -> list[Reading]:
    return [reading for reading in readings if reading.metric not in BESIDE_ROWS]


@st.composite
def interleaved(draw: st.DrawFn, case: str) -> str:
    """Return two equal outputs that are mixed line by line."""
    lines = OUTPUTS[case].splitlines(keepends=True)
    mixed: list[str] = []
    first, second = list(lines), list(lines)
    while first and second:
        count = draw(st.integers(1, len(first)))
        mixed += first[:count]
        del first[:count]
        first, second = second, first
    mixed += first or second
    return "".join(mixed)


def starts(case: str) -> str:
    return {"stream": "STREAM version", "osu-latency": "# OSU", "hpl": "HPLinpack", "ior": "IOR-"}[
        case
    ]


@pytest.mark.fault("outputs-mixed")
@pytest.mark.parametrize("case", OUTPUTS)
@examples(2)
@given(data=st.data())
def test_mixed_outputs_lose_no_row_and_are_not_all_valid(case: str, data: st.DataObject) -> None:
    text = data.draw(interleaved(case))
    readings = readings_of(case, text)
    once = Counter((r.metric, r.value) for r in in_rows(readings_of(case, OUTPUTS[case])))
    found = Counter((r.metric, r.value) for r in in_rows(readings) if r.value is not None)
    quoted = sum(r.value is None for r in readings)
    assert sum(found.values()) + quoted >= 2 * sum(once.values())
    assert found <= once + once
    lines = text.splitlines()
    begin = [place for place, line in enumerate(lines) if line.startswith(starts(case))]
    marker = ENDS.get(case)
    if marker:
        end = next(place for place, line in enumerate(lines) if line.startswith(marker))
        apart = begin[1] > end
    else:
        rows = [place for place, line in enumerate(lines) if line[0].isdigit()]
        apart = begin[1] > rows[3]
    if not apart:
        assert not all(reading.valid for reading in readings)


@pytest.mark.fault("outputs-mixed")
@pytest.mark.parametrize("case", ["stream", "osu-latency", "hpl"])
def test_lines_in_turn_are_all_invalid(case: str) -> None:
    lines = OUTPUTS[case].splitlines(keepends=True)
    readings = readings_of(case, "".join(line * 2 for line in lines))
    assert not any(reading.valid for reading in readings)
    assert sum(reading.value is not None for reading in in_rows(readings)) == 2 * ROWS[case]
    assert any("several outputs are mixed" in reading.reason for reading in readings)


@pytest.mark.fault("outputs-mixed")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OSU + "# Size  Avg Latency(us)\n16  3.5\n", "two headers"),
        (OSU + "1  0.75\n", "two values of latency"),
        (OSU.replace("# Size  Avg Latency(us)\n", ""), "a row is outside of any table"),
    ],
)
def test_what_shows_that_osu_outputs_are_mixed(text: str, reason: str) -> None:
    readings = readings_of("osu-latency", OSU + text)
    assert not any(reading.valid for reading in readings)
    assert all("several outputs are mixed: " in r.reason and reason in r.reason for r in readings)


def test_a_failed_run_before_a_sound_one_is_not_mixed() -> None:
    error = "HPLinpack 2.3\nHPL ERROR from process # 0\n"
    readings = readings_of("hpl", error + HPL)
    assert [reading.valid for reading in in_rows(readings)] == [False, True, True, True, True]


def test_equal_rows_of_hpl_are_not_mixed() -> None:
    readings = readings_of("hpl", HPL.replace("WR00L2L4", "WR00L2L2"))
    assert [reading.valid for reading in in_rows(readings)] == [True] * 4


@pytest.mark.fault("outputs-mixed")
def test_a_confirmation_of_another_copy_does_not_count() -> None:
    lines = HPL.splitlines(keepends=True)
    failed = HPL.replace("PASSED", "FAILED").splitlines(keepends=True)
    readings = readings_of("hpl", "".join(a + b for a, b in zip(lines, failed, strict=True)))
    assert not any(reading.valid for reading in readings)


@pytest.mark.fault("outputs-mixed")
def test_each_row_of_stream_after_its_table_has_its_name() -> None:
    text = STREAM.replace("Copy:", "---\nCopy:")
    readings = readings_of("stream", text)
    assert [r.metric for r in readings if r.value is not None] == ["copy", "scale", "add", "triad"]
    assert not any(reading.valid for reading in readings)


@pytest.mark.parametrize("name", ["Scale", "Triad"])
def test_a_row_of_stream_without_a_table_has_its_name(name: str) -> None:
    text = f"STREAM version\n{name}:  1.0 2.0 3.0 4.0\nSolution Validates\n"
    reading = readings_of("stream", text)[0]
    assert (reading.metric, reading.value, reading.valid) == (name.lower(), None, False)


def test_runs_without_a_title_end_with_their_validation() -> None:
    text = output_sample("stream_rate-in-GBs.txt")
    readings = readings_of("stream", text)
    assert len(readings) == 8
    second = text.replace("68.7752", "nan")
    assert [r.valid for r in readings_of("stream", second)] == [True] * 4 + [False] + [True] * 3
    failed = text.replace("Solution Validates", "x", 1)
    assert not any(r.valid for r in readings_of("stream", failed))


def test_the_thread_number_of_one_run_is_not_that_of_the_next() -> None:
    first, _, second = output_sample("stream_rate-in-GBs.txt").partition("Solution Validates\n")
    text = first + "Solution Validates\n" + second.replace("requested = 16", "requested = 8")
    assert [r.parameters["threads"] for r in readings_of("stream", text)] == [16] * 4 + [8] * 4
