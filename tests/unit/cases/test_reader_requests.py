"""What the command line proves (message sizes, the rows of IOR, exact sizes), and rules of readers.

Some rules need lines that no real output in the samples has.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples
from tests.fixtures.outputs import output_sample, readings_of, valid
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.engine import program_runs
from proofmark.cases.reader.programs.ior import exact_sizes, has_requested_rows
from proofmark.cases.reader.programs.osu import missing_sizes
from proofmark.cases.reader.settings import StartedCommand
from proofmark.cases.reader.values import rounds_to, scaled
from proofmark.common.message import Message
from proofmark.packages.foreign.output_text import without_tags

ALLTOALL = output_sample("osu_alltoall_job-script-lines.txt")

IOR = output_sample("ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt")

IO500 = output_sample("ior_io500_altair_ior-hard-write.txt")

FRONTERA = output_sample("ior_io500_frontera_ior-easy-read.txt")

ATOMIC, BARRIER = "MPI Fetch_and_op latency", "Any other"
"""A benchmark whose largest size is 8 by default, and one whose largest size is 1 MiB."""

DEFAULT = "(by default): truncated"

COMPLAINT = "WARNING: inconsistent file size by different tasks."


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
    readings = readings_of("osu-latency", osu(*sizes, **names), arguments)
    assert [reading.reason for reading in readings] == [""] * len(sizes)


@pytest.mark.fault("rows-missing")
@pytest.mark.parametrize(("arguments", "sizes", "names"), ACCEPTED)
def test_a_missing_last_size_is_invalid(
    arguments: str, sizes: list[int], names: dict[str, str]
) -> None:
    for left in range(1, len(sizes)):
        readings = readings_of("osu-latency", osu(*sizes[:left], **names), arguments)
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
    readings = readings_of("osu-latency", osu(*sizes), arguments)
    assert {(reading.valid, reading.reason) for reading in readings} == {(False, reason)}


def test_a_row_that_cannot_be_read_is_not_missing() -> None:
    readings = readings_of("osu-latency", osu(1, 2, 4, 8).replace("4  3.5", "4  3.5 x"), "-m 1:8")
    assert [reading.valid for reading in readings] == [True, True, False, True]


def test_many_ranks_have_smaller_sizes_in_the_same_memory() -> None:
    names = {"title": "Alltoall Latency Test", "header": "Avg Latency(us)"}
    text = osu(*doubled(1, 1 << 18), **names)
    assert valid(readings_of("osu-latency", text, "", ranks=2048))
    assert not valid(readings_of("osu-latency", text, "", ranks=1024))
    assert not valid(readings_of("osu-latency", text, "-M 1g", ranks=2048))


def test_a_benchmark_without_sizes_has_no_missing_ones() -> None:
    text = "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n   12.5\n"
    assert valid(readings_of("osu-latency", text, "-m 1:8")) == [("latency", 12.5)]


@pytest.mark.parametrize(
    "line",
    ["# cmd: mpirun -np 2 /x/osu_bw -m 1:4", "+ osu_bw -m 1:4", "++ srun osu_bw -m 1:4 -i 2"],
)
def test_a_printed_command_line_counts(line: str) -> None:
    assert valid(readings_of("osu-latency", f"{line}\n{osu(1, 2, 4)}"))
    assert not valid(readings_of("osu-latency", f"{line}\n{osu(1, 2)}"))
    both = f"{line}\n{osu(1, 2, 4)}{line.replace('1:4', '1:2')}\n{osu(1, 2)}{osu(1)}"
    assert len(valid(readings_of("osu-latency", both))) == 6  # the last has no command line
    assert valid(
        readings_of("osu-latency", f"{line}\n{osu(1, 2)}", "-m 1:2")
    )  # the step states the sizes


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
    request = None if arguments is None else StartedCommand(arguments.split())
    runs = program_runs(shipped_benchmarks().case("osu-latency").reader(), text, request)
    assert [run.unproven for run in runs] == unproven


@pytest.mark.fault("rows-missing")
@examples(20)
@given(st.data())
def test_an_osu_output_cut_anywhere_is_never_smaller_and_valid(data: st.DataObject) -> None:
    arguments, sizes, names = data.draw(st.sampled_from(ACCEPTED))
    text = osu(*sizes, **names)
    cut = data.draw(st.integers(0, len(text) - 2))
    readings = readings_of("osu-latency", text[:cut], arguments)
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
    text = output_sample(name)
    whole = readings_of(case, text, arguments)
    assert all(reading.valid for reading in whole)  # the control
    lines = text.splitlines(keepends=True)
    accepted = 0
    for cut in range(len(lines)):
        readings = readings_of(case, "".join(lines[:cut]), arguments)
        if all(reading.valid for reading in readings):
            accepted += 1
            # A second run that has not begun is not missing.
            assert readings == whole or (name == "stream_rate-in-GBs.txt" and len(readings) == 4)
    assert accepted < len(lines) / 2


@pytest.mark.parametrize("name", ["altair_ior-hard-write", "oakforest-pacs_ior-hard-write"])
def test_requested_rows_prove_the_end(name: str) -> None:
    text = output_sample(f"ior_io500_{name}.txt")
    row = next(line for line in text.splitlines() if line.startswith("write  "))
    head = text[: text.index(row) + len(row)] + "\n"
    assert valid(readings_of("ior", head)) == valid(readings_of("ior", text)) != []


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
    assert valid(readings_of("ior", IO500)) == [("write", 2847.31)]
    assert old in IO500
    readings = readings_of("ior", IO500.replace(old, new, 1))
    assert valid(readings) == []
    assert any("no line 'Finished'" in reading.reason for reading in readings)


def test_the_rows_of_all_repetitions_are_needed() -> None:
    lines = IOR.splitlines(keepends=True)
    last = max(
        index
        for index, line in enumerate(lines)
        if line.startswith("read  ") and line.rstrip().endswith(" 1")
    )
    assert len(valid(readings_of("ior", "".join(lines[: last + 1])))) == 4
    for left in range(last + 1):
        assert valid(readings_of("ior", "".join(lines[:left]))) == []
    gap = [line for line in lines[: last + 1] if not line.startswith("write     1358")]
    assert valid(readings_of("ior", "".join(gap))) == []


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
    [reading] = readings_of("ior", text.replace("aggregate filesize  : 400.54 TiB\n", ""))
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
    [reading] = readings_of("ior", FRONTERA.replace(old, new))
    assert (reading.value, reading.valid) == (72350, False)
    assert "block_bytes" in reading.reason


def test_the_last_option_counts_for_the_exact_size() -> None:
    text = FRONTERA.replace("-b 1000000m", "-b 7 -b 1000000m")
    assert valid(readings_of("ior", text)) == [("read", 72350)]


def rows(*sizes: int, benchmark: str | None = ATOMIC) -> list[ReadingBuilder]:
    return [ReadingBuilder("rate", 1.0, {"bytes": size}, [], benchmark) for size in sizes]


def missing(words: str, builders: Sequence[ReadingBuilder], ranks: int | None = None) -> str:
    return missing_sizes(StartedCommand(words.split(), ranks), builders)


@pytest.mark.parametrize(
    ("words", "builders", "problem"),
    [
        ("", [], ""),
        ("", rows(1, 2, 4, 8), ""),  # the first benchmark that fits
        ("", rows(1, 2, 4), "the last row has 4 of 8 bytes (by default): truncated"),
        *(
            ("", rows(4, 8, benchmark=name), f"the last row has 8 of {size} bytes {DEFAULT}")
            for name, size in (("Bandwidth", 4 << 20), (BARRIER, 1 << 20), (None, 1 << 20))
        ),
        ("-m 0:1", rows(0), "the last row has 0 of 1 bytes (-m 0:1): truncated"),
        ("-m 0:1", rows(0, 1), ""),
        ("-m 0:0", rows(0), ""),
        ("-m 0", rows(0), ""),
        ("-m 1:4", rows(8), ""),  # elements of eight bytes
        ("-m 1:9", rows(9), "the first row has 9 bytes: rows from 1 on are missing"),
        ("-m 1:16", rows(16), "the first row has 16 bytes: rows from 1 on are missing"),
        ("-m", rows(1, 2), "the last row has 2 of 8 bytes (by default): truncated"),
    ],
)
def test_missing_sizes(words: str, builders: list[ReadingBuilder], problem: str) -> None:
    assert missing(words, builders) == problem


def test_memory_limits_sizes_for_known_ranks_only() -> None:
    assert missing("-m 1:4 -M 8", rows(1, 2), ranks=4) == ""
    assert missing("-m 1:4 -M 8", rows(1, 2), ranks=2) != ""
    assert missing("-m 1:4 -M 4", rows(1, 2)) != ""
    assert missing("-m 1:4 -M x", rows(1, 2), ranks=1 << 27) != ""
    assert missing("-m 1:4 -M x", rows(1, 2), ranks=1 << 28) == ""


def test_a_size_is_a_number() -> None:
    builders = [ReadingBuilder("rate", 1.0, {"bytes": "4"}, [], "A")]
    assert missing("-m 1:8", builders) == ""


def requested(words: str, *found: tuple[str, int], problems: Sequence[Message] = ()) -> bool:
    builders = [ReadingBuilder(name, 1.0, {"iteration": at}, [*problems]) for name, at in found]
    return has_requested_rows(StartedCommand(words.split()), builders)


@pytest.mark.parametrize(
    ("words", "found", "whole"),
    [
        ("-w", [("write", 0)], True),
        ("-w", [("read", 0)], False),
        ("-w", [], False),
        ("-w -r", [("write", 0)], False),
        ("", [("write", 0), ("read", 0)], True),
        ("", [("write", 0)], False),
        ("-w -i 2", [("write", 0)], False),
        ("-w -i 2", [("write", 0), ("write", 1)], True),
        ("-w -i 2", [("write", 1), ("write", 2)], False),
        ("-w -i two", [("write", 0)], False),
        ("-w -i 1", [("write", 0)], True),
        ("-w -i", [("write", 0)], True),
        ("-w -f x", [("write", 0)], False),
    ],
)
def test_requested_rows(words: str, found: list[tuple[str, int]], whole: bool) -> None:
    assert requested(words, *found) is whole
    assert not requested(words, *found, problems=[Message("reader-empty")])


def test_exact_sizes_are_those_that_can_be_read() -> None:
    assert exact_sizes(StartedCommand(["-b", "4k", "-t", "x"])) == {"block_bytes": 4096}


@pytest.mark.parametrize(
    ("word", "exact", "same"),
    [
        ("976.56 GiB", 1000000 << 20, True),
        ("1.5 KiB", 1536, True),
        ("1.5 KiB", 1587, True),  # 1.5498
        ("1.5 KiB", 1588, False),  # 1.5508
        ("1.5 KiB", 1485, True),  # 1.4502
        ("1.5 KiB", 1484, False),
        ("2 KiB", 2560, True),
        ("2 KiB", 2561, False),
        ("100 bytes", 100, True),
        ("100", 101, False),
        ("much", 100, False),
    ],
)
def test_a_rounded_size(word: str, exact: int, same: bool) -> None:
    assert rounds_to(word, exact) is same


@pytest.mark.parametrize(
    ("word", "power", "value"),
    [
        ("22.5158", 3, 22515.8),
        ("0.1", 3, 100.0),
        ("1.1", 0, 1.1),
        ("2.3", -3, 0.0023),
        ("x", 3, 0),
    ],
)
def test_a_scaled_number_is_rounded_once(word: str, power: int, value: float) -> None:
    number, problem = scaled(word, power)
    assert (number or 0, bool(problem)) == (value, word == "x")


@pytest.mark.parametrize("text", ["", "\n", "no tag", "0: a\nb\n", "0: a\nb", "a\n0: b\n0: c\n"])
def test_text_without_tags_is_unchanged(text: str) -> None:
    assert without_tags(text) == text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0: a\n1: b\n", "a\nb\n"),
        ("0: a\n1: b", "a\nb"),
        ("0:\n0: 0: x\n", "\n0: x\n"),
        ("10: a\n 9: b\n", "a\nb\n"),
        ("[0] a\n[1]\n", "a\n\n"),
    ],
)
def test_one_tag_of_each_line_is_removed(text: str, plain: str) -> None:
    assert without_tags(text) == plain


def ior(*lines: str) -> str:
    text = output_sample("ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt")
    rows = [line for line in text.splitlines() if line.startswith(("write   ", "read   "))][:4]
    head, tail = text.split(rows[0])[0], text.split(rows[3])[1]
    return (
        head + "\n".join(line if line.strip("0123") else rows[int(line)] for line in lines) + tail
    )


@pytest.mark.parametrize(
    ("lines", "doubted"),
    [
        (("0", "1", "2", "3"), []),
        ((COMPLAINT, "0", "1", "2", "3"), [0]),
        (("0", COMPLAINT, COMPLAINT, "1", "2", "3"), [1]),
        (("0", COMPLAINT, "1", COMPLAINT, "2", "3"), [1, 2]),
        (("0", "1", "2", "3", COMPLAINT), [3]),
    ],
)
def test_a_complaint_concerns_one_row(lines: tuple[str, ...], doubted: list[int]) -> None:
    readings = readings_of("ior", ior(*lines))
    assert [place for place, each in enumerate(readings) if not each.valid] == doubted
    assert all(each.reason.count("inconsistent") == 1 for each in readings if not each.valid)


def test_a_complaint_without_any_row_is_in_the_reason() -> None:
    text = "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n" + COMPLAINT + "\n"
    [reading] = readings_of("ior", text)
    assert "inconsistent file size" in reading.reason


def test_rows_of_two_names_that_cannot_be_read_are_two_readings() -> None:
    text = output_sample("stream-5.10_N2000000_t2.txt")
    for name in ("Copy:", "Scale:"):
        text = text.replace(name, f"{name} x", 1)
    readings = [r for r in readings_of("stream", text) if not r.valid]
    assert [(r.metric, "more lines" in r.reason) for r in readings] == [
        ("copy", False),
        ("scale", False),
    ]


def test_foreign_lines_at_two_places_are_two_notes() -> None:
    text = output_sample("osu_alltoall_job-script-lines.txt")
    text = text.replace("\n64 ", "\nfirst\n64 ").replace("\n512 ", "\nsecond\n512 ")
    [run] = program_runs(shipped_benchmarks().case("osu-collectives").reader(), text)
    assert len(run.builders) == 21
    assert ["'first'" in note for note in run.notes] == [True, False]


@pytest.mark.parametrize(
    ("options", "direct", "fsync"),
    [
        ("-e", None, "-e"),
        ("-o /scratch/x-e -O summaryFormat=JSON", None, None),
        ("-B -O summaryFormat=JSON", "-B", None),
        ("-e -O summaryFormat=JSON,useO_DIRECT=1", "useO_DIRECT=1", "-e"),
        ("--posix.odirect", "--posix.odirect", None),
    ],
)
def test_the_words_of_a_command_line_of_ior_are_its_options(
    options: str, direct: str | None, fsync: str | None
) -> None:
    """An option can be the last word, and a path can end like one."""
    text = output_sample("ior-3.3.0_posix_b4m_t1m_n2_fpp.json")
    changed = text.replace("-o /scratch/iortest -O summaryFormat=JSON", options)
    assert changed != text
    for reading in readings_of("ior", changed):
        assert (reading.parameters.get("direct"), reading.parameters.get("fsync")) == (
            direct,
            fsync,
        )
