"""Every real output gives exactly the readings that were derived from it without our reader."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.folders import BENCHMARKS

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.reader.engine import Reading, read_output
from proofmark.cases.reader.spec import ReadSpec

SAMPLES = BENCHMARKS / "samples"
OUTPUTS = sorted(
    path
    for path in SAMPLES.iterdir()
    if path.suffix in {".txt", ".json"} and not path.name.endswith(".expected.json")
)


@cache
def spec(case: str) -> ReadSpec:
    return load_benchmarks(BENCHMARKS).case(case).reader()


def expected(output: Path) -> list[dict[str, Any]]:
    text = output.with_suffix(".expected.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def facts(reading: Reading | dict[str, Any]) -> dict[str, Any]:
    """Return what the expectations hold of a reading: all but the reason and the node."""
    found = reading if isinstance(reading, dict) else reading._asdict()
    names = ("case", "benchmark", "metric", "value", "unit", "valid")
    return {**{name: found[name] for name in names}, "parameters": dict(found["parameters"])}


def order(reading: dict[str, Any]) -> str:
    return json.dumps(reading, sort_keys=True)


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.name)
def test_sample_gives_the_readings_derived_without_this_reader(output: Path) -> None:
    wanted = expected(output)
    case = wanted[0]["case"]
    readings = read_output(spec(case), case, output.read_text(encoding="utf-8"))
    found = [facts(reading) for reading in readings]
    assert sorted(found, key=order) == sorted(map(facts, wanted), key=order)
    assert all(bool(reading.reason) != reading.valid for reading in readings)


@pytest.mark.parametrize("case", sorted(path.stem for path in BENCHMARKS.glob("*.yml")))
def test_every_case_has_a_sample(case: str) -> None:
    """A case that borrows its reader from another needs none of its own."""
    if case == "suites" or "read: {same_as:" in (BENCHMARKS / f"{case}.yml").read_text():
        return
    assert any(expected(output)[0]["case"] == case for output in OUTPUTS)


def test_windows_line_ends_and_colours_change_nothing() -> None:
    for output in OUTPUTS:
        case = expected(output)[0]["case"]
        text = output.read_text(encoding="utf-8")
        plain = read_output(spec(case), case, text)
        assert read_output(spec(case), case, text.replace("\n", "\r\n")) == plain
        coloured = text.replace("\n", "\x1b[0m\n")
        assert read_output(spec(case), case, coloured) == plain


def test_node_is_the_host_that_the_output_names() -> None:
    sample = (SAMPLES / "hpcc-1.5.0_N4000_n2.txt").read_text(encoding="utf-8")
    assert {reading.node for reading in read_output(spec("hpcc"), "hpcc", sample)} == {"vm"}
    sample = (SAMPLES / "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").read_text(encoding="utf-8")
    assert {reading.node for reading in read_output(spec("hpl"), "hpl", sample)} == {None}
