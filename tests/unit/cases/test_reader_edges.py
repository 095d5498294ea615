"""Tests rules of readers with lines that no real output in the samples has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.fixtures.outputs import benchmarks, read, text_of

from proofmark.cases.reader.aborted import without_tags
from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.command_line import (
    Request,
    exact_sizes,
    has_requested_rows,
    missing_sizes,
)
from proofmark.cases.reader.engine import program_runs
from proofmark.cases.reader.spec_command import CommandLine, Doubling, Largest, Operations
from proofmark.cases.reader.values import rounds_to, scaled
from proofmark.common.message import Message

DOUBLING = Doubling(
    parameter="bytes",
    option="-m",
    largest=(Largest(benchmark="A", size=4), Largest(benchmark="[AB]", size=8)),
    memory_option="-M",
    memory=1 << 20,
)
ANY_NAME = {"benchmark": ".+", "size": 2}
OPERATIONS = Operations(
    proves="end",
    options={"-w": "write", "-r": "read"},
    otherwise=("write", "read"),
    repeats="-i",
    numbered="iteration",
    unless=("-f", "-g"),
)
COMPLAINT = "WARNING: inconsistent file size by different tasks."


def rows(*sizes: int, benchmark: str | None = "A") -> list[ReadingBuilder]:
    return [ReadingBuilder("rate", 1.0, {"bytes": size}, [], benchmark) for size in sizes]


def missing(words: str, builders: Sequence[ReadingBuilder], ranks: int | None = None) -> str:
    return missing_sizes(DOUBLING, Request(words.split(), ranks), builders)


@pytest.mark.parametrize(
    ("words", "builders", "problem"),
    [
        ("", [], ""),
        ("", rows(1, 2, 4), ""),  # the first benchmark that fits
        ("", rows(1, 2, 4, benchmark="B"), "the last row has 4 of 8 bytes (by default): truncated"),
        ("", rows(1, 2, 4, benchmark="C"), "-m None: not a size"),
        ("", rows(1, 2, 4, benchmark=None), "-m None: not a size"),
        ("-m 0:1", rows(0), "the last row has 0 of 1 bytes (-m 0:1): truncated"),
        ("-m 0:1", rows(0, 1), ""),
        ("-m 0:0", rows(0), ""),
        ("-m 0", rows(0), ""),
        ("-m 1:4", rows(8), ""),  # elements of eight bytes
        ("-m 1:9", rows(9), "the first row has 9 bytes: rows from 1 on are missing"),
        ("-m 1:16", rows(16), "the first row has 16 bytes: rows from 1 on are missing"),
        ("-m", rows(1, 2), "the last row has 2 of 4 bytes (by default): truncated"),
    ],
)
def test_missing_sizes(words: str, builders: list[ReadingBuilder], problem: str) -> None:
    assert missing(words, builders) == problem


def test_a_rule_for_named_benchmarks_needs_a_name() -> None:
    rule = DOUBLING.model_copy(update={"largest": (Largest.model_validate(ANY_NAME),)})
    assert missing_sizes(rule, Request([]), rows(1, 2, benchmark="C")) == ""
    assert missing_sizes(rule, Request([]), rows(1, 2, benchmark=None)) != ""


def test_memory_limits_sizes_for_known_ranks_only() -> None:
    assert missing("-m 1:4 -M 8", rows(1, 2), ranks=4) == ""
    assert missing("-m 1:4 -M 8", rows(1, 2), ranks=2) != ""
    assert missing("-m 1:4 -M 4", rows(1, 2)) != ""
    assert missing("-m 1:4 -M x", rows(1, 2), ranks=1 << 18) != ""
    assert missing("-m 1:4 -M x", rows(1, 2), ranks=1 << 19) == ""


def test_a_size_is_a_number() -> None:
    builders = [ReadingBuilder("rate", 1.0, {"bytes": "4"}, [], "A")]
    assert missing("-m 1:8", builders) == ""


def requested(words: str, *found: tuple[str, int], problems: Sequence[Message] = ()) -> bool:
    builders = [ReadingBuilder(name, 1.0, {"iteration": at}, [*problems]) for name, at in found]
    return has_requested_rows(OPERATIONS, Request(words.split()), builders)


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
        ("-w -g", [("write", 0)], False),
    ],
)
def test_requested_rows(words: str, found: list[tuple[str, int]], whole: bool) -> None:
    assert requested(words, *found) is whole
    assert not requested(words, *found, problems=[Message("reader-empty")])


def test_exact_sizes_are_those_that_can_be_read() -> None:
    rule = CommandLine.model_validate(
        {"match": "(?P<command>.*)", "exact": {"block": "-b", "transfer": "-t", "other": "-o"}}
    )
    assert exact_sizes(rule, Request(["-b", "4k", "-t", "x"])) == {"block": 4096}


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
    text = text_of("ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt")
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
    readings = read("ior", ior(*lines))
    assert [place for place, each in enumerate(readings) if not each.valid] == doubted
    assert all(each.reason.count("inconsistent") == 1 for each in readings if not each.valid)


def test_a_complaint_without_any_row_is_in_the_reason() -> None:
    text = "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n" + COMPLAINT + "\n"
    [reading] = read("ior", text)
    assert "inconsistent file size" in reading.reason


def test_rows_of_two_names_that_cannot_be_read_are_two_readings() -> None:
    text = text_of("stream-5.10_N2000000_t2.txt")
    for name in ("Copy:", "Scale:"):
        text = text.replace(name, f"{name} x", 1)
    readings = [r for r in read("stream", text) if not r.valid]
    assert [(r.metric, "more lines" in r.reason) for r in readings] == [
        ("copy", False),
        ("scale", False),
    ]


def test_foreign_lines_at_two_places_are_two_notes() -> None:
    text = text_of("osu_alltoall_job-script-lines.txt")
    text = text.replace("\n64 ", "\nfirst\n64 ").replace("\n512 ", "\nsecond\n512 ")
    [run] = program_runs(benchmarks().case("osu-collectives").reader(), text)
    assert len(run.builders) == 21
    assert ["'first'" in note for note in run.notes] == [True, False]
