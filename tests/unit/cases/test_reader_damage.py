"""Every sample, damaged in the same ways: no value becomes another one, and none is taken over."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest
from tests.fixtures.outputs import SAMPLES, WILD, readings_of
from tests.fixtures.shipped import shipped_benchmarks, shipped_reader

from proofmark.cases.reader.engine import Reading
from proofmark.packages.foreign.output_text import output_text
from proofmark.packages.foreign.packed import NotUnpacked, unpacked

AFTER = (
    "srun: error: n1: task 3: Segmentation fault",
    "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0.",
    "Out of memory: Killed process 77 (x)",
    "=>> PBS: job killed: walltime 3600 exceeded limit 3600",
    "/bin/sh: line 1: 77 Segmentation fault (core dumped) x",
)
HEADS = (0.3, 0.7)
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
Key = tuple[object, ...]


def expected_files() -> list[Path]:
    return sorted([*SAMPLES.glob("*.expected.json"), *WILD.glob("*.expected.json")])


EXPECTED = expected_files()


@cache
def sample(expected: Path) -> tuple[str, str]:
    """Return the case and the text of a sample."""
    stem = expected.name.removesuffix(".expected.json")
    [output] = [path for path in expected.parent.glob(f"{stem}.*") if "expected" not in path.name]
    case = json.loads(expected.read_text(encoding="utf-8"))[0]["case"]
    return case, output.read_text(encoding="utf-8")


def key(reading: Reading) -> Key:
    return (reading.benchmark, reading.metric, reading.value, *sorted(reading.parameters.items()))


def sound(readings: list[Reading]) -> set[Key]:
    return {key(reading) for reading in readings if reading.valid}


@cache
def whole(expected: Path) -> frozenset[Key]:
    return frozenset(sound(readings_of(*sample(expected))))


def starts(case: str, text: str) -> list[int]:
    lines = text.splitlines()
    banner = shipped_benchmarks().case(case).reader().starts
    return [n for n, line in enumerate(lines) if banner and banner.match(line)]


@pytest.mark.fault("banner-missing")
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name)
def test_an_output_without_its_head_has_no_figure_of_that_run(expected: Path) -> None:
    case, text = sample(expected)
    reader = shipped_benchmarks().case(case).reader()
    lines = text.splitlines(keepends=True)
    for share in HEADS:
        first = round(len(lines) * share)
        readings = readings_of(case, "".join(lines[first:]))
        assert sound(readings) <= whole(expected), share
        later = [n for n in starts(case, text) if n >= first]
        if not later and reader.read and not reader.untitled:
            assert not sound(readings), share


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name)
def test_an_output_without_its_tail_has_no_other_figure(expected: Path) -> None:
    case, text = sample(expected)
    lines = text.splitlines(keepends=True)
    for share in HEADS:
        kept = "".join(lines[: round(len(lines) * share)])
        assert sound(readings_of(case, kept)) <= whole(expected), share


@pytest.mark.fault("text-after-result")
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name)
def test_a_message_after_the_result_makes_the_last_run_invalid(expected: Path) -> None:
    case, text = sample(expected)
    once = len(starts(case, text)) <= 1 and not text.count("Solution Validates") > 1
    for message in AFTER:
        readings = readings_of(case, f"{text.rstrip()}\n{message}\n")
        assert sound(readings) < whole(expected) or not whole(expected)
        assert not (once and sound(readings)), message


@pytest.mark.fault("output-of-another-program")
@pytest.mark.parametrize("case", sorted({sample(expected)[0] for expected in EXPECTED}))
def test_an_output_of_another_program_gives_no_figure(case: str) -> None:
    rules = shipped_reader(case)
    for expected in EXPECTED:
        other, text = sample(expected)
        if shipped_reader(other) != rules and (case, other) != ("hpl", "hpcc"):
            assert not sound(readings_of(case, text)), expected.name


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_encoding_of_an_output_changes_no_reading(encoding: str) -> None:
    for expected in EXPECTED[::5]:
        case, text = sample(expected)
        packed = text.encode(encoding)
        half = len(packed) // 2
        members = gzip.compress(packed[:half]) + gzip.compress(packed[half:])
        for content in (packed, gzip.compress(packed), members):
            assert readings_of(case, output_text(unpacked(content))) == readings_of(case, text), (
                expected.name
            )


def test_a_damaged_gzip_file_has_no_valid_figure() -> None:
    case, text = sample(next(path for path in EXPECTED if "osu-7.4_bw_n2" in path.name))
    packed = gzip.compress(text.encode())
    assert sound(readings_of(case, output_text(unpacked(packed))))
    for damaged in (packed[:-9], packed[:-20], packed[:30] + b"\xff" * 9 + packed[39:]):
        with pytest.raises(NotUnpacked):
            unpacked(damaged)
    with pytest.raises(NotUnpacked):
        unpacked(packed, limit=len(text) // 2)
