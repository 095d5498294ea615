"""Every real output gives exactly the readings that were derived from it without the reader."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from tests.fixtures.shipped import shipped_reader
from tests.folders import BENCHMARKS

from proofmark.cases.reader.engine import Reading, program_runs, read_output

SAMPLES = BENCHMARKS / "samples"
OUTPUTS = sorted(
    path
    for path in SAMPLES.iterdir()
    if path.suffix in {".txt", ".json"} and not path.name.endswith(".expected.json")
)

OWN_READER = sorted(
    path.stem
    for path in BENCHMARKS.glob("*.yml")
    if path.stem != "suites" and "read: {same_as:" not in path.read_text(encoding="utf-8")
)
"""Cases that do not use the reader of another case."""


def expected(output: Path) -> list[dict[str, Any]]:
    text = output.with_suffix(".expected.json").read_text(encoding="utf-8")
    readings: list[dict[str, Any]] = json.loads(text)
    return readings


def facts(reading: Reading | dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a reading that are in the expected file: all but reason and node."""
    fields = reading if isinstance(reading, dict) else reading._asdict()
    names = ("case", "benchmark", "metric", "value", "unit", "valid")
    return {**{name: fields[name] for name in names}, "parameters": dict(fields["parameters"])}


def order(reading: dict[str, Any]) -> str:
    return json.dumps(reading, sort_keys=True)


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.name)
def test_sample_gives_the_readings_derived_without_the_reader(output: Path) -> None:
    wanted = expected(output)
    case = wanted[0]["case"]
    readings = read_output(shipped_reader(case), case, output.read_text(encoding="utf-8"))
    actual = [facts(reading) for reading in readings]
    assert sorted(actual, key=order) == sorted(map(facts, wanted), key=order)
    assert all(bool(reading.reason) != reading.valid for reading in readings)


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.name)
def test_nothing_of_an_output_stays_in_memory_without_the_collector(output: Path) -> None:
    """A process reads 100,000 outputs. A cycle of references keeps each output in memory."""
    reader = shipped_reader(expected(output)[0]["case"])
    gc.disable()
    try:
        runs = [*map(ref, program_runs(reader, output.read_text(encoding="utf-8")))]
        assert runs
        assert [run() for run in runs] == [None] * len(runs)
    finally:
        gc.enable()


@pytest.mark.parametrize("case", OWN_READER)
def test_every_case_with_its_own_reader_has_a_sample(case: str) -> None:
    assert any(expected(output)[0]["case"] == case for output in OUTPUTS)


def test_windows_line_ends_and_colours_change_nothing() -> None:
    for output in OUTPUTS:
        case = expected(output)[0]["case"]
        text = output.read_text(encoding="utf-8")
        plain = read_output(shipped_reader(case), case, text)
        assert read_output(shipped_reader(case), case, text.replace("\n", "\r\n")) == plain
        coloured = text.replace("\n", "\x1b[0m\n")
        assert read_output(shipped_reader(case), case, coloured) == plain


def test_node_is_the_host_in_the_output() -> None:
    sample = (SAMPLES / "hpcc-1.5.0_N4000_n2.txt").read_text(encoding="utf-8")
    assert {reading.node for reading in read_output(shipped_reader("hpcc"), "hpcc", sample)} == {
        "vm"
    }
    sample = (SAMPLES / "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").read_text(encoding="utf-8")
    assert {reading.node for reading in read_output(shipped_reader("hpl"), "hpl", sample)} == {None}
