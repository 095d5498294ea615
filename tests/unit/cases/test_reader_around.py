"""Lines around tables, and rank tags before lines."""

from __future__ import annotations

import pytest
from tests.fixtures.outputs import output_sample, read_of_others, readings_of, valid

ALLTOALL = "osu_alltoall_job-script-lines.txt"
BARRIER = "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n            12.77\n"
TAGS = {
    "srun": lambda rank: f"{rank:>2}: ",
    "srun-narrow": lambda rank: f"{rank}: ",
    "openmpi-4": lambda rank: f"[1,{rank}]<stdout>:",
    "openmpi-5": lambda rank: f"[prterun-n1-1234@1,{rank}]<stdout>: ",
    "mpich": lambda rank: f"[{rank}] ",
}
SAMPLES = [
    ("osu-latency", "osu-7.4_latency_n2.txt"),
    ("stream", "stream-5.10_N64000000_t2.txt"),
    ("hpl", "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt"),
    ("ior", "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt"),
    ("fio-cache", "fio-3.33_4m_2m_n2_shared.json"),
]


@pytest.mark.parametrize(
    "line",
    [
        "=====",
        " Completed : Wed Apr  1 18:18:11 UTC 2026",
        "+ rm -rf x",
        "2026-04-01 done",
        "12:00:01 end",
    ],
)
def test_lines_around_a_table_are_not_rows(line: str) -> None:
    text = output_sample(ALLTOALL)
    plain = readings_of("osu-collectives", text)
    assert len(plain) == 21
    assert all(reading.valid for reading in plain)
    assert readings_of("osu-collectives", f"{line}\n{text}{line}\n") == plain
    assert readings_of("osu-collectives", f"{text}{line}") == plain  # cut in the middle of the line


@pytest.mark.fault("lines-around-table")
@pytest.mark.parametrize(
    "line",
    ["2097152B  1400.1", "2097152", "20", "2097152  1400.1 x", "x 2097152  1400.1", "-1 y z"],
)
def test_a_line_that_may_be_a_row_is_invalid(line: str) -> None:
    text = output_sample(ALLTOALL)
    for damaged in (f"{text}{line}\n", text.replace("1048576 ", f"{line}\n1048576 "), text + line):
        readings = readings_of("osu-collectives", damaged)
        assert len(valid(readings)) == 21
        assert [r.value for r in readings if not r.valid] == [None]


@pytest.mark.fault("lines-around-table")
@pytest.mark.parametrize(
    "line",
    [
        "message\nmore",
        "[1764140000.123456] [n001:1234 :0]    ucp_context.c:1234 UCX  WARN  network device x",
        "n001:4711:4711 [0] NCCL INFO Bootstrap : Using ib0:10.0.0.1<0>",
        "0.512s: flux-job: task exited",
        "== CALIPER: (0): Available services: adiak,aggregate",
    ],
)
def test_a_foreign_line_between_rows_changes_no_figure(line: str) -> None:
    text = output_sample(ALLTOALL)
    readings = readings_of("osu-collectives", text.replace("\n64 ", f"\n{line}\n64 "))
    assert readings == readings_of("osu-collectives", text)


def test_a_table_with_only_foreign_lines_has_no_row() -> None:
    text = output_sample(ALLTOALL)
    head = text[: text.index("\n1   ")]
    readings = readings_of("osu-collectives", f"{head}\nnothing here\n=====\n")
    assert [(r.value, r.valid) for r in readings] == [(None, False)]
    assert "no row under" in readings[0].reason


def test_one_column_is_a_row_only_at_its_begin() -> None:
    assert [r.valid for r in readings_of("osu-collectives", BARRIER + "took 12.5\n")] == [True]
    assert [r.valid for r in readings_of("osu-collectives", BARRIER + "12.5 s\n")] == [True, False]


@pytest.mark.fault("lines-around-table")
@pytest.mark.parametrize("cut", ["Tri", "Triad:  223", "x Triad: y"])
def test_the_beginning_of_a_name_may_be_a_row(cut: str) -> None:
    text = output_sample("stream-5.10_N2000000_t2.txt")
    lines = text.splitlines(keepends=True)
    place = next(index for index, line in enumerate(lines) if line.startswith("Triad:"))
    lines[place] = f"{cut}\n"
    readings = readings_of("stream", "".join(lines))
    assert [r.metric for r in readings if r.valid] == ["copy", "scale", "add"]
    assert any(cut.split()[0] in r.reason for r in readings if not r.valid)


@pytest.mark.fault("lines-around-table")
@pytest.mark.parametrize(
    "line",
    [
        "[n1:12] *** Process received signal ***",
        "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0",
        "mpirun noticed that process rank 1 exited on signal 9 (Killed).",
        "Fatal error in PMPI_Alltoall: Other MPI error",
        "Bus error (core dumped)",
    ],
)
def test_a_run_that_did_not_end_by_itself_is_invalid(line: str) -> None:
    readings = readings_of("osu-collectives", f"{output_sample(ALLTOALL)}{line}\n")
    assert len(readings) == 21
    assert valid(readings) == []


def tagged(text: str, form: str) -> str:
    lines = text.split("\n")
    return "\n".join(TAGS[form](0) + line for line in lines[:-1]) + "\n"


@pytest.mark.parametrize("form", TAGS)
@pytest.mark.parametrize(("case", "name"), SAMPLES)
def test_rank_tags_of_every_line_are_removed(case: str, name: str, form: str) -> None:
    text = output_sample(name).rstrip("\n") + "\n"
    assert read_of_others(case, tagged(text, form)) == readings_of(case, text)


@pytest.mark.parametrize("form", TAGS)
def test_ranks_may_differ(form: str) -> None:
    text = output_sample("osu-7.4_latency_n2.txt")
    lines = text.rstrip("\n").split("\n")
    ranks = "\n".join(TAGS[form](index % 12) + line for index, line in enumerate(lines))
    assert valid(read_of_others("osu-latency", ranks + "\n")) == valid(
        readings_of("osu-latency", text)
    )


@pytest.mark.fault("rank-tags")
@pytest.mark.parametrize("form", TAGS)
@pytest.mark.parametrize("place", [5, -1])
def test_a_single_line_without_a_tag_leaves_the_output_as_it_is(form: str, place: int) -> None:
    lines = tagged(output_sample("osu-7.4_latency_n2.txt"), form).rstrip("\n").split("\n")
    lines[place] = "a line of another program"
    readings = read_of_others("osu-latency", "\n".join(lines) + "\n")
    assert [(r.value, r.valid) for r in readings] == [(None, False)]


def test_tags_of_different_forms_are_no_tags() -> None:
    lines = output_sample("osu-7.4_latency_n2.txt").rstrip("\n").split("\n")
    both = [TAGS["srun" if index % 2 else "mpich"](0) + line for index, line in enumerate(lines)]
    assert valid(read_of_others("osu-latency", "\n".join(both) + "\n")) == []


@pytest.mark.parametrize("header", ["Size  Avg Latency(us)", "  Size      Bandwidth (MB/s)"])
def test_a_header_without_its_sign(header: str) -> None:
    [reading] = readings_of("osu-latency", f"# OSU MPI Latency Test v5.7\n{header}\n8   1.5\n")
    assert (reading.value, reading.valid) == (1.5, True)


@pytest.mark.parametrize("header", ["Size of the job", "Latency test", "Size 8 Latency"])
def test_a_sentence_is_not_a_header(header: str) -> None:
    readings = readings_of("osu-latency", f"# OSU MPI Latency Test v5.7\n{header}\n8   1.5\n")
    assert valid(readings) == []
