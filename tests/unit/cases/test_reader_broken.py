"""Damaged samples: real outputs that are cut or garbled, or whose program was killed."""

from __future__ import annotations

import json

import pytest
from tests.fixtures.outputs import readings_of
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import BENCHMARKS

SAMPLES = BENCHMARKS / "samples"

HPL = "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt"
OSU = "osu-7.4_latency_n2.txt"
# Sample, and the line that marks it as complete. OMB has no such line.
MARKED = {
    HPL: "End of Tests.",
    "hpcc-1.5.0_N4000_n2.txt": "End of HPC Challenge tests.",
    "stream-5.10_N64000000_t2.txt": "Solution Validates",
    # The row of the last requested operation.
    "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt": "read  ",
    "imb-2021.7_PingPong_n2.txt": "# All processes entering MPI_Finalize",
    "npb-3.4.3_bt.A_full_n4.txt": " Verification    =",
}
DOCUMENTS = ("fio-3.33_4m_2m_n2_shared.json", "ior-4.0.0_mpiio_b4m_t1m_n2_shared.json")


def sample(name: str) -> tuple[str, str]:
    """Return the case and the text of a sample."""
    expected = (SAMPLES / name).with_suffix(".expected.json").read_text(encoding="utf-8")
    return json.loads(expected)[0]["case"], (SAMPLES / name).read_text(encoding="utf-8")


@pytest.mark.fault("output-truncated")
@pytest.mark.parametrize("name", MARKED)
def test_output_cut_at_any_line_before_its_end_marker_is_invalid(name: str) -> None:
    case, text = sample(name)
    whole = readings_of(case, text)
    assert all(reading.valid for reading in whole)  # the control
    printed = {(reading.metric, reading.value) for reading in whole}
    lines = text.splitlines(keepends=True)
    end = next(index for index, line in enumerate(lines) if line.startswith(MARKED[name]))
    kept = 0
    for cut in range(end + 1):
        readings = readings_of(case, "".join(lines[:cut]))
        assert readings
        assert not any(reading.valid for reading in readings)
        values = {(reading.metric, reading.value) for reading in readings if reading.value}
        assert values <= printed
        kept = max(kept, len(values))
    assert kept
    marker = "Finished" if case == "ior" else MARKED[name].split()[-1].strip("=.:")
    assert marker in readings[0].reason


@pytest.mark.fault("output-truncated")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_cut_anywhere_is_invalid(name: str) -> None:
    case, text = sample(name)
    assert all(reading.valid for reading in readings_of(case, text))  # the control
    for cut in range(1, len(text.rstrip()) - 1, 97):
        [reading] = readings_of(case, text[:cut])
        assert (reading.value, reading.valid) == (None, False)


@pytest.mark.fault("output-truncated")
def test_a_row_without_its_line_end_is_not_read() -> None:
    case, text = sample(OSU)
    body = text[: text.index("# exit")].replace("# cmd", "# no command")
    whole = readings_of(case, body)
    assert all(reading.valid for reading in whole)  # the control
    assert (
        readings_of(case, body.removesuffix("\n")) == whole
    )  # it ends where the rows before it end
    for cut in range(2, 30):
        readings = readings_of(case, body[:-cut])
        lost = body[-cut:].count("\n")
        assert readings[: len(whole) - lost] == whole[: len(whole) - lost]
        for reading in readings[len(whole) - lost :]:
            assert (reading.value, reading.valid) == (None, False)
            assert "cut" in reading.reason


@pytest.mark.fault("output-truncated")
@pytest.mark.parametrize(
    ("name", "line", "metrics"),
    [
        (HPL, "WR11C2R4        6144   192     1     2               4.50", {"rmax", "time"}),
        (HPL, "WR11C2R4        6144   192     1     2       4.50    3.4390e+01", {"rmax", "time"}),
        ("hpcc-1.5.0_N4000_n2.txt", "StarSTREAM_Triad=27.8", {"stream_star_triad"}),
        ("npb-3.4.3_bt.A_full_n4.txt", " Mop/s total     =                 102", {"mops"}),
    ],
)
def test_a_result_on_a_cut_last_line_is_reported_and_not_read(
    name: str, line: str, metrics: set[str]
) -> None:
    case, text = sample(name)
    assert all(reading.valid for reading in readings_of(case, text))  # the control
    readings = readings_of(case, text + line)
    changed = [reading for reading in readings if "the last line is cut" in reading.reason]
    assert {reading.metric for reading in changed} == metrics
    assert all(reading.value is None and not reading.valid for reading in changed)


@pytest.mark.fault("output-nan")
@pytest.mark.parametrize("word", ["nan", "********", "-1.5", "1e999", "1_0"])
@pytest.mark.parametrize(
    ("name", "number"),
    [
        (HPL, "2.6177e+01"),
        ("hpcc-1.5.0_N4000_n2.txt", "6.27904"),
        ("stream-5.10_N64000000_t2.txt", "17451.7"),
        ("ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt", "1374.74"),
        ("imb-2021.7_PingPong_n2.txt", "4611.69"),
        (OSU, "48.09"),
        ("npb-3.4.3_bt.A_full_n4.txt", "683.09"),
    ],
)
def test_a_value_that_is_not_a_number_is_invalid_and_quoted(
    name: str, number: str, word: str
) -> None:
    case, text = sample(name)
    whole = readings_of(case, text)
    readings = readings_of(case, text.replace(number, word, 1))
    assert all(reading.valid for reading in whole)  # the control
    changed = [new for old, new in zip(whole, readings, strict=True) if old != new]
    assert [(reading.value, reading.valid) for reading in changed] == [(None, False)]
    assert repr(word) in changed[0].reason


@pytest.mark.fault("output-garbage")
@pytest.mark.parametrize("case", sorted(shipped_benchmarks().cases))
def test_text_that_is_not_an_output_gives_one_invalid_reading(case: str) -> None:
    garbage = bytes(range(256)).decode("latin-1") * 50
    for text in ("", "\n\n", "Illegal instruction\n", "{", "{}", "[1, 2]\n", garbage, "\x00" * 999):
        [reading] = readings_of(case, text)
        assert (reading.case, reading.value, reading.valid) == (case, None, False)
        assert reading.reason
        assert reading.unit == shipped_benchmarks().case(case).metrics[reading.metric].unit


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_empty_output_is_reported_as_empty(text: str) -> None:
    [reading] = readings_of("hpl", text)
    assert reading.reason == "no HPL result row found; the output is empty"


def test_a_row_with_a_missing_or_additional_word_is_not_read() -> None:
    case, text = sample("osu-7.4_allreduce_n2.txt")
    row = "256                     0.68              0.68              0.69         200\n"
    assert row in text
    for broken in (row.replace("200", ""), row.replace("200", "200 1"), row.replace("256", "256B")):
        readings = readings_of(case, text.replace(row, broken))
        [reading] = [reading for reading in readings if not reading.valid]
        assert "not a row of its table" in reading.reason
        assert len(readings) == len(readings_of(case, text)) - 2


def test_a_run_that_its_launcher_ended_is_invalid() -> None:
    case, text = sample(OSU)
    message = (
        "mpirun noticed that process rank 1 with PID 0 on node n7 exited on signal 9 (Killed).\n"
    )
    readings = readings_of(case, text + "\n" + message)
    assert not any(reading.valid for reading in readings)
    assert all("noticed that process rank" in reading.reason for reading in readings)


def test_long_lines_are_shortened_at_both_ends() -> None:
    case, text = sample(OSU)
    readings = readings_of(case, text.replace("\n256 ", "\n3begin" + "x" * 10**6 + "end\n256 "))
    [reading] = [reading for reading in readings if not reading.valid]
    assert len(reading.reason) < 150
    assert "begin" in reading.reason
    assert "end" in reading.reason
