"""What the command line proves: message sizes, the rows of IOR, exact sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples
from tests.fixtures.outputs import benchmarks, read, text_of, valid

from proofmark.cases.reader.command_line import Request
from proofmark.cases.reader.engine import program_runs

ALLTOALL = text_of("osu_alltoall_job-script-lines.txt")
IOR = text_of("ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt")
IO500 = text_of("ior_io500_altair_ior-hard-write.txt")
FRONTERA = text_of("ior_io500_frontera_ior-easy-read.txt")


def osu(*sizes: int, title: str = "Bandwidth Test", header: str = "Bandwidth (MB/s)") -> str:
    rows = "".join(f"{size}  {index + 1.5}\n" for index, size in enumerate(sizes))
    return f"# OSU MPI {title} v7.4\n# Size  {header}\n{rows}"


def doubled(least: int, most: int) -> list[int]:
    sizes = [0] if least == 0 else []
    size = max(least, 1)
    while size <= most:
        sizes.append(size)
        size *= 2
    return sizes


ACCEPTED = [
    ("-m 1:4", [1, 2, 4], {}),
    ("-m 1:7", [1, 2, 4], {}),
    ("-m 0:4", [0, 1, 2, 4], {}),
    ("-m 0:4", [1, 2, 4], {}),
    ("-m 4", [1, 2, 4], {}),
    ("-m=4", [1, 2, 4], {}),
    ("-m 4k:4k", [4096], {}),
    ("-m 3:24", [3, 6, 12, 24], {}),
    ("-m 1024: -i 3", doubled(1024, 4 << 20), {}),
    ("-x 20 -m 4 -m 8", [1, 2, 4, 8], {}),
    ("-i 20", doubled(1, 4 << 20), {}),
    ("", doubled(1, 4 << 20), {}),
    ("", doubled(1, 1 << 20), {"title": "Allgather Latency Test", "header": "Avg Latency(us)"}),
    ("", doubled(4, 1 << 20), {"title": "Allreduce Latency Test", "header": "Avg Latency(us)"}),
    ("", doubled(1, 4 << 20), {"title": "Multi Latency Test", "header": "Avg Latency(us)"}),
    ("", [8], {"title": "Fetch_and_op latency Test", "header": "Latency (us)"}),
    ("-M 4k", doubled(1, 2048), {"title": "Gather Latency Test", "header": "Avg Latency(us)"}),
    ("-M 4k -m 64:64", [64], {}),
]


@pytest.mark.parametrize(("arguments", "sizes", "names"), ACCEPTED)
def test_all_requested_sizes_are_accepted(
    arguments: str, sizes: list[int], names: dict[str, str]
) -> None:
    readings = read("osu-latency", osu(*sizes, **names), arguments)
    assert [reading.reason for reading in readings] == [""] * len(sizes)


@pytest.mark.fault("rows-missing")
@pytest.mark.parametrize(("arguments", "sizes", "names"), ACCEPTED)
def test_a_missing_last_size_is_invalid(
    arguments: str, sizes: list[int], names: dict[str, str]
) -> None:
    for left in range(1, len(sizes)):
        readings = read("osu-latency", osu(*sizes[:left], **names), arguments)
        assert valid(readings) == []
        assert f"the last row has {sizes[left - 1]} of " in readings[0].reason


@pytest.mark.fault("rows-missing")
@pytest.mark.parametrize(
    ("arguments", "sizes", "reason"),
    [
        ("-m 1:8", [1, 2, 8], "no row between 2 and 8 bytes"),
        ("-m 1:8", [1, 4, 8], "no row between 1 and 4 bytes"),
        ("-m 1:64", [16, 32, 64], "the first row has 16 bytes: rows from 1 on are missing"),
        ("-m 16:64", [32, 64], "the first row has 32 bytes: rows from 16 on are missing"),
        ("-m 1:4", [1, 2], "the last row has 2 of 4 bytes (-m 1:4): truncated"),
        ("", [1, 2, 4], "the last row has 4 of 4194304 bytes (by default): truncated"),
        ("-m x:4", [1, 2, 4], "-m x:4: not a size"),
        ("-m 4:x", [4], "-m 4:x: not a size"),
    ],
)
def test_the_reason_names_the_missing_size(arguments: str, sizes: list[int], reason: str) -> None:
    for reading in read("osu-latency", osu(*sizes), arguments):
        assert (reading.valid, reading.reason) == (False, reason)


def test_a_row_that_cannot_be_read_is_not_missing() -> None:
    readings = read("osu-latency", osu(1, 2, 4, 8).replace("4  3.5", "4  3.5 x"), "-m 1:8")
    assert [reading.valid for reading in readings] == [True, True, False, True]


def test_many_ranks_have_smaller_sizes_in_the_same_memory() -> None:
    names = {"title": "Alltoall Latency Test", "header": "Avg Latency(us)"}
    text = osu(*doubled(1, 1 << 18), **names)
    assert valid(read("osu-latency", text, "", ranks=2048))
    assert not valid(read("osu-latency", text, "", ranks=1024))
    assert not valid(read("osu-latency", text, "-M 1g", ranks=2048))


def test_a_benchmark_without_sizes_has_no_missing_ones() -> None:
    text = "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n   12.5\n"
    assert valid(read("osu-latency", text, "-m 1:8")) == [("latency", 12.5)]


@pytest.mark.parametrize(
    "line",
    ["# cmd: mpirun -np 2 /x/osu_bw -m 1:4", "+ osu_bw -m 1:4", "++ srun osu_bw -m 1:4 -i 2"],
)
def test_a_printed_command_line_counts(line: str) -> None:
    assert valid(read("osu-latency", f"{line}\n{osu(1, 2, 4)}"))
    assert not valid(read("osu-latency", f"{line}\n{osu(1, 2)}"))
    both = f"{line}\n{osu(1, 2, 4)}{line.replace('1:4', '1:2')}\n{osu(1, 2)}{osu(1)}"
    assert len(valid(read("osu-latency", both))) == 6  # the last has no command line
    assert valid(read("osu-latency", f"{line}\n{osu(1, 2)}", "-m 1:2"))  # the step states the sizes


@pytest.mark.parametrize(
    ("text", "arguments", "unproven"),
    [
        (osu(1, 2), None, [True]),
        (osu(1, 2), "-m 1:2", [False]),
        ("+ osu_bw -m 1:2\n" + osu(1, 2) + osu(1, 2), None, [False, True]),
        ("# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n   12.5\n", None, [False]),
    ],
)
def test_whether_rows_may_be_missing_is_known(
    text: str, arguments: str | None, unproven: list[bool]
) -> None:
    request = None if arguments is None else Request(arguments.split())
    runs = program_runs(benchmarks().case("osu-latency").reader(), text, request)
    assert [run.unproven for run in runs] == unproven


@pytest.mark.fault("rows-missing")
@examples(20)
@given(st.data())
def test_an_osu_output_cut_anywhere_is_never_smaller_and_valid(data: st.DataObject) -> None:
    arguments, sizes, names = data.draw(st.sampled_from(ACCEPTED))
    text = osu(*sizes, **names)
    cut = data.draw(st.integers(0, len(text) - 1))
    readings = read("osu-latency", text[:cut], arguments)
    assert not all(reading.valid for reading in readings)


@pytest.mark.fault("rows-missing")
@pytest.mark.parametrize(
    ("arguments", "case", "name"),
    [
        (None, "osu-latency", "osu-7.4_latency_n2.txt"),
        ("-m 1:64", "osu-latency", "osu-7.4_put_latency_n2.txt"),
        ("", "osu-collectives", "osu_alltoall_job-script-lines.txt"),
        ("", "osu-collectives", "osu-5.7.1_ibarrier.txt"),
        (None, "stream", "stream-5.10_N2000000_t2.txt"),
        (None, "stream", "stream_rate-in-GBs.txt"),
        (None, "hpl", "hpl-amd-zen_a.txt"),
        (None, "hpl", "hpl-1.0a_two-variants.txt"),
        (None, "ior", "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt"),
        (None, "ior", "ior_io500_altair_ior-hard-write.txt"),
        (None, "ior", "ior_io500_frontera_ior-easy-read.txt"),
        (None, "ior", "ior_io500_read-only.txt"),
        (None, "ior", "ior_io500_oakforest-pacs_ior-hard-write.txt"),
        (None, "fio-cache", "fio_time-based_rand_read.json"),
    ],
)
def test_an_accepted_output_cut_at_any_line_is_invalid_or_whole(
    arguments: str | None, case: str, name: str
) -> None:
    text = text_of(name)
    whole = read(case, text, arguments)
    assert all(reading.valid for reading in whole)  # the control
    lines = text.splitlines(keepends=True)
    accepted = 0
    for cut in range(len(lines)):
        readings = read(case, "".join(lines[:cut]), arguments)
        if all(reading.valid for reading in readings):
            accepted += 1
            # A second run that has not begun is not missing.
            assert readings == whole or (name == "stream_rate-in-GBs.txt" and len(readings) == 4)
    assert accepted < len(lines) / 2


@pytest.mark.parametrize("name", ["altair_ior-hard-write", "oakforest-pacs_ior-hard-write"])
def test_requested_rows_prove_the_end(name: str) -> None:
    text = text_of(f"ior_io500_{name}.txt")
    row = next(line for line in text.splitlines() if line.startswith("write  "))
    head = text[: text.index(row) + len(row)] + "\n"
    assert valid(read("ior", head)) == valid(read("ior", text)) != []


@pytest.mark.fault("end-not-printed")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" -w ", " -w -r "),
        (" -w ", " -w -R "),
        (" -w ", " "),
        (" -w ", " -w -i 2 "),
        (" -w ", " -w -i x "),
        (" -w ", " -w -f script "),
        (" -w ", " -r "),
        ("Command line ", "Something else "),
        ("\nwrite ", "\nWARNING: inconsistent file size by different tasks.\nwrite "),
        ("2847.31", "nan"),
    ],
)
def test_rows_that_are_not_all_requested_ones_prove_no_end(old: str, new: str) -> None:
    assert valid(read("ior", IO500)) == [("write", 2847.31)]
    assert old in IO500
    readings = read("ior", IO500.replace(old, new, 1))
    assert valid(readings) == []
    assert any("no line 'Finished'" in reading.reason for reading in readings)


def test_the_rows_of_all_repetitions_are_needed() -> None:
    lines = IOR.splitlines(keepends=True)
    last = max(
        index
        for index, line in enumerate(lines)
        if line.startswith("read  ") and line.rstrip().endswith(" 1")
    )
    assert len(valid(read("ior", "".join(lines[: last + 1])))) == 4
    for left in range(last + 1):
        assert valid(read("ior", "".join(lines[:left]))) == []
    gap = [line for line in lines[: last + 1] if not line.startswith("write     1358")]
    assert valid(read("ior", "".join(gap))) == []


@pytest.mark.parametrize(
    ("mebibytes", "printed"),
    [
        (1000000, "976.56 GiB"),
        (9920000, "9.46 TiB"),
        (1788, "1.75 GiB"),  # 1.75 GiB is a whole number of bytes, too
        (1792, "1.75 GiB"),
        (1792, "1 GiB"),  # without decimals the size is exact
    ],
)
def test_the_exact_size_is_in_the_command_line(mebibytes: int, printed: str) -> None:
    text = FRONTERA.replace("-b 1000000m", f"-b {mebibytes}m").replace("976.56 GiB", printed)
    [reading] = read("ior", text)
    expected = 1 << 30 if printed == "1 GiB" else mebibytes << 20
    assert (reading.valid, reading.parameters["block_bytes"]) == (True, expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-b 1000000m", "-b 1000100m"),  # 976.66 GiB
        ("-b 1000000m", "-b 999990m"),  # 976.55 GiB
        ("-b 1000000m", "-b"),
        ("-b 1000000m", "-b much"),
        ("-b 1000000m", ""),
        ("976.56 GiB", "976.56 XiB"),
        ("976.56 GiB", "976.57 GiB"),
    ],
)
def test_a_rounded_size_without_its_exact_value_is_invalid(old: str, new: str) -> None:
    [reading] = read("ior", FRONTERA.replace(old, new))
    assert (reading.value, reading.valid) == (72350, False)
    assert "block_bytes" in reading.reason


def test_the_last_option_counts_for_the_exact_size() -> None:
    text = FRONTERA.replace("-b 1000000m", "-b 7 -b 1000000m")
    assert valid(read("ior", text)) == [("read", 72350)]
