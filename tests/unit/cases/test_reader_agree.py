"""Numbers of one output that determine each other are compared, to their printed digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fixtures.outputs import output_sample, readings_of
from tests.folders import BENCHMARKS, ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.reader.engine import Reading
from proofmark.cases.reader.values import Printed

CASES = load_benchmarks(BENCHMARKS).cases
READERS = {
    "fio": "fio-cache",
    "hpcc": "hpcc",
    "hpl": "hpl",
    "imb": "imb-pingpong",
    "ior": "ior",
    "npb": "npb-btio",
    "osu": "osu-latency",
    "stream": "stream",
}
OUTPUTS = sorted(
    path
    for folder in (BENCHMARKS / "samples", ROOT / "tests" / "data" / "wild")
    for path in folder.iterdir()
    if ".expected." not in path.name and path.name.partition("-")[0].partition("_")[0] in READERS
)


def contradictions(readings: list[Reading]) -> set[str]:
    return {each.metric for each in readings if "reader-contradiction" in each.reason.codes}


@pytest.mark.fault("edited-figure-of-others")
@pytest.mark.parametrize(
    ("case", "name", "old", "new"),
    [
        ("osu-latency", "osu-7.4_barrier_n4_full.txt", "12.77 ", "19.77 "),
        ("osu-latency", "osu-7.4_init_n2.txt", "avg: 241", "avg: 341"),
        ("ior", "ior-3.3.0_posix_b47008_n4_stonewall.txt", "", ""),
    ],
)
def test_a_mean_and_a_rate_beyond_their_row_contradict_it(
    case: str, name: str, old: str, new: str
) -> None:
    text = output_sample(name)
    if case == "ior":
        rate = next(line for line in text.split("\n") if line.startswith("write "))
        words = rate.split()
        old, new = rate, rate.replace(words[1], f"{115 * float(words[1]):.2f}", 1)
    assert old in text
    assert contradictions(readings_of(case, text.replace(old, new)))


@pytest.mark.fault("edited-figure-of-others")
def test_swapped_columns_of_hpl_are_no_row() -> None:
    text = output_sample("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt")
    row = next(line for line in text.split("\n") if line.startswith("WR"))
    time, rate = row.split()[-2:]
    swapped = row.replace(time, "@").replace(rate, time).replace("@", rate)
    readings = readings_of("hpl", text.replace(row, swapped))
    assert sum(reading.valid for reading in readings) == sum(
        reading.valid for reading in readings_of("hpl", text)
    ) - len({"rmax", "time", "residual"})


@pytest.mark.fault("numbers-disagree")
@pytest.mark.parametrize(("least", "most"), [("min", "avg"), ("avg", "max")])
@pytest.mark.parametrize("what", ["Latency_usec", "Bandwidth_GBytes"])
def test_a_mean_lies_between_the_least_and_the_greatest(what: str, least: str, most: str) -> None:
    """Without the section of the test, whose numbers the summary would contradict."""
    before, section = output_sample(HPCC).split("Begin of LatencyBandwidth section.")
    _, summary = section.split("End of LatencyBandwidth section.")
    metric = f"pingpong_{what.partition('_')[0].lower()}"
    assert not contradictions(readings_of("hpcc", before + summary))
    swapped = summary
    for one, other in ((least, "other"), (most, least), ("other", most)):
        swapped = swapped.replace(f"{one.title()}PingPong{what}", f"{other.title()}PingPong{what}")
    assert f"{metric}_{least}" in contradictions(readings_of("hpcc", before + swapped))


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_no_sample_contradicts_itself(path: Path) -> None:
    """The control: outputs of real programs of many versions."""
    case = READERS[path.name.partition("-")[0].partition("_")[0]]
    assert contradictions(readings_of(case, path.read_text(encoding="utf-8"))) == set()


def word(line: str, place: int, change: Callable[[str], str]) -> Callable[[str], str]:
    """Return an edit of the word at `place` of each line that begins with `line`."""

    def edited(text: str) -> str:
        lines = text.split("\n")
        for at, each in enumerate(lines):
            if each.lstrip().startswith(line):
                words = each.split()
                words[place] = change(words[place])
                lines[at] = " ".join(words)
        return "\n".join(lines)

    return edited


def times(factor: float, digits: int) -> Callable[[str], str]:
    return lambda text: f"{float(text) * factor:.{digits}f}"


def of_fio(text: str) -> str:
    document = json.loads(text)
    for job in document["jobs"]:
        job["write"]["bw"] *= 2
    return json.dumps(document)


def of_json(text: str) -> str:
    document = json.loads(text)
    for test in document["tests"]:
        for result in test["Results"]:
            for each in result if isinstance(result, list) else [result]:
                if "bwMiB" in each:
                    each["bwMiB"] *= 1.5
    return json.dumps(document)


HPCC = "hpcc-1.5.0_N4000_n2.txt"
IOR = "ior-4.0.0_posix_wr_b16m_t1m_n2_fpp.txt"
STREAM = "stream-5.10_N64000000_t2.txt"
FIO = "fio-3.33_4m_2m_n2_shared.json"
EDITS = [
    ("stream-5.10_N64000000_t2.txt", word("Triad:", 1, times(1.2, 1)), {"triad"}),
    ("stream-5.10_N64000000_t2.txt", word("Copy:", 1, times(1.01, 1)), {"copy"}),
    ("stream-5.10_N64000000_t2.txt", word("Add:", 3, times(0.9, 6)), {"add"}),
    ("imb-2021.7_PingPong_n2.txt", word("1048576", 3, times(2, 2)), {"t_avg", "bandwidth"}),
    ("imb-2021.7_PingPong_n2.txt", word("65536", 2, times(0.8, 2)), {"t_avg", "bandwidth"}),
    ("ior-4.0.0_posix_wr_b16m_t1m_n2_fpp.txt", word("write ", 1, times(1.1, 2)), {"write"}),
    ("ior-3.3.0_posix_b4m_t1m_n2_fpp.json", of_json, {"write", "read"}),
    ("fio-3.33_4m_2m_n2_fpp.json", of_fio, {"write"}),
    ("npb-3.4.3_bt.A_full_n4.txt", word("Mop/s total", 3, times(1.1, 2)), {"time", "mops"}),
    ("npb-3.4.3_bt.A_full_n4.txt", word("Time in", 4, times(0.9, 2)), {"time", "mops"}),
    ("hpcc-1.5.0_N4000_n2.txt", word("WR11", 6, times(1.1, 3)), {"hpl_rmax"}),
    (
        "hpcc-1.5.0_N4000_n2.txt",
        word("MPIRandomAccess_time", 0, lambda _: "MPIRandomAccess_time=20"),
        {"randomaccess_mpi"},
    ),
    ("osu-7.4_mbw_mr_n2.txt", word("4096 ", 1, times(1.1, 2)), {"bandwidth", "rate"}),
    # What is printed twice.
    (HPCC, word("HPL_time", 0, lambda _: "HPL_time=6.4"), {"hpl_rmax"}),
    (HPCC, word("HPL_Tflops", 0, lambda _: "HPL_Tflops=0.0196"), {"hpl_rmax"}),
    (HPCC, word("StarDGEMM", 0, lambda _: "StarDGEMM_Gflops=7.27904"), {"dgemm_star"}),
    (HPCC, word("Single DGEMM", 3, times(1.1, 6)), {"dgemm_single"}),
    (HPCC, word("Average Triad", 3, times(1.1, 6)), {"stream_star_triad"}),
    (HPCC, word("Single STREAM Triad", 4, times(1.1, 6)), {"stream_single_triad"}),
    (HPCC, word("PTRANS_residual", 0, lambda _: "PTRANS_residual=99"), {"ptrans"}),
    (HPCC, word("WR11", 3, lambda _: "4"), {"hpl_rmax"}),
    (HPCC, word("AvgPingPongLat", 0, lambda word: f"{word}e1"), {"pingpong_latency_avg"}),
    (HPCC, word("MaxPingPongLat", 0, lambda word: f"{word}e1"), {"pingpong_latency_max"}),
    (HPCC, word("MinPingPongBand", 0, lambda word: f"{word}e-1"), {"pingpong_bandwidth_min"}),
    (HPCC, word("Latency   min", 6, lambda _: "0.000333"), {"pingpong_latency_min"}),
    (HPCC, word("Bandwidth min", 10, times(1.1, 3)), {"pingpong_bandwidth_max"}),
    (HPCC, word("On naturally", 5, times(2, 6)), {"ring_latency_natural"}),
    (HPCC, word("RandomlyOrderedRingBand", 0, lambda word: f"{word}e1"), {"ring_bandwidth_random"}),
    ("npb-3.4.3_bt.A_full_n4.txt", word("Mop/s/process", 2, times(1.1, 2)), {"time", "mops"}),
    ("imb-2021.7_PingPong_n2.txt", word("1048576", 1, lambda _: "0"), {"t_avg", "bandwidth"}),
    ("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt", word("WR11", 6, times(1.003, 4)), {"time"}),
    (IOR, word("tasks", 2, lambda _: "4"), {"write", "read"}),
    (IOR, word("segments", 2, lambda _: "2"), {"write", "read"}),
    (IOR, word("blocksize", 2, lambda _: "32"), {"write", "read"}),
    (IOR, word("nodes", 2, lambda _: "2"), {"write", "read"}),
    (IOR, word("clients", 4, lambda _: "4"), {"write", "read"}),
    (STREAM, word("Triad:", 2, times(0.5, 6)), {"triad"}),
    (STREAM, word("Triad:", 4, times(0.5, 6)), {"triad"}),
    (FIO, word('"io_kbytes"', 2, lambda _: "9192,"), {"write"}),
    (FIO, word('"io_bytes"', 2, lambda _: "9388608,"), {"write"}),
    (FIO, word('"total_ios"', 2, lambda _: "9,"), {"write"}),
    (FIO, word('"iops"', 2, lambda _: "900.0,"), {"write"}),
    (FIO, word('"bw_bytes"', 2, lambda _: "9988,"), {"write"}),
    (FIO, word('"bs"', 2, lambda _: '"1m",'), {"write"}),
]


@pytest.mark.fault("numbers-disagree")
@pytest.mark.parametrize(("name", "edit", "metrics"), EDITS)
def test_an_edited_number_contradicts_the_others(
    name: str, edit: Callable[[str], str], metrics: set[str]
) -> None:
    case, text = READERS[name.partition("-")[0]], output_sample(name)
    changed = edit(text)
    assert changed != text
    readings = readings_of(case, changed)
    assert contradictions(readings) >= metrics
    assert not any(each.valid for each in readings if "reader-contradiction" in each.reason.codes)


@pytest.mark.fault("numbers-disagree")
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt", "128     1     2 ", "128     2     1 "),
        ("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt", "192     1     2 ", "191     1     2 "),
        (HPCC, "Running on 2 processors", "Running on 4 processors"),
        (HPCC, "CommWorldProcs=2", "CommWorldProcs=4"),
        (HPCC, "0.403 sec\n", "0.403 sec\nExecution time (wall clock) = 1 sec on 4 processes\n"),
        (
            "npb-3.4.3_bt.A_full_n4.txt",
            "number of processes:      4",
            "number of processes:      9",
        ),
    ],
)
def test_two_values_of_one_thing_are_invalid(name: str, old: str, new: str) -> None:
    case, text = READERS[name.partition("-")[0]], output_sample(name)
    assert old in text
    readings = readings_of(case, text.replace(old, new))
    found = [each for each in readings if "reader-two-values" in each.reason.codes]
    assert found and not any(each.valid for each in found)


def test_a_stonewalled_run_moves_another_amount() -> None:
    text = output_sample("ior-4.0.0_posix_b4g_t1m_n2_stonewall.txt")
    assert contradictions(readings_of("ior", text)) == set()


def test_numbers_that_are_only_compared_are_no_parameters() -> None:
    readings = readings_of("stream", output_sample("stream-5.10_N64000000_t2.txt"))
    assert {name for each in readings for name in each.parameters} == {"threads", "array"}
    rows = readings_of("ior", output_sample("ior-3.3.0_posix_b4m_t1m_n2_fpp.json"))
    assert all("total_s" not in each.parameters for each in rows)


@pytest.mark.parametrize(
    ("text", "half"), [("0.039510", 5e-7), ("0.0395", 5e-5), ("12", 0.5), ("1.5e-3", 5e-5)]
)
def test_half_of_the_last_digit(text: str, half: float) -> None:
    assert Printed(text).half == pytest.approx(half)


def test_a_short_time_that_is_printed_as_zero_is_not_compared() -> None:
    assert contradictions(readings_of("hpcc", output_sample("hpcc-1.5.0_N200-400_n1.txt"))) == set()
    assert Printed("-") != Printed("-")
