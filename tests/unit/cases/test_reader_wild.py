"""Real outputs of other sites: the readings that were derived from them without the reader."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.shipped import shipped_reader
from tests.folders import DATA

from proofmark.cases.reader.engine import Reading, read_output

WILD = DATA / "wild"
EXPECTED = sorted(WILD.glob("*.expected.json"))
INVALID = {"ior_io500_fsync-failed", "stream_interleaved_excerpt"}


def stem(expected: Path) -> str:
    return expected.name.removesuffix(".expected.json")


def load(expected: Path) -> tuple[list[Reading], list[dict[str, Any]]]:
    wanted: list[dict[str, Any]] = json.loads(expected.read_text(encoding="utf-8"))
    case = wanted[0]["case"]
    output = next(WILD.glob(f"{stem(expected)}.[tj]*"))
    return read_output(shipped_reader(case), case, output.read_text(encoding="utf-8")), wanted


def key(reading: dict[str, Any]) -> str:
    names = ("case", "benchmark", "metric", "value", "unit", "parameters", "valid")
    plain = {name: reading[name] for name in names}
    return json.dumps({**plain, "value": float(reading["value"])}, sort_keys=True)


def test_every_output_has_its_expected_readings() -> None:
    outputs = {path.stem for path in WILD.glob("*.[tj]*") if path not in EXPECTED}
    assert outputs == {stem(path) for path in EXPECTED}


@pytest.mark.parametrize("expected", EXPECTED, ids=stem)
def test_wild_output_is_read_completely(expected: Path) -> None:
    readings, wanted = load(expected)
    with_value = [reading._asdict() for reading in readings if reading.value is not None]
    for reading in with_value:
        reading["parameters"] = dict(reading["parameters"])
    assert Counter(map(key, with_value)) == Counter(map(key, wanted))
    assert {reading.valid for reading in readings} == {stem(expected) not in INVALID}
    if stem(expected) != "stream_interleaved_excerpt":
        assert len(readings) == len(wanted)  # no reading without a value


@pytest.mark.fault("equal-parameters")
@pytest.mark.parametrize("name", ["hpl-1.0a_two-variants", "ior-3.0_akrr", "ior-3.3_akrr"])
def test_different_measurements_of_an_output_have_different_parameters(name: str) -> None:
    readings, _ = load(WILD / f"{name}.expected.json")
    keys = Counter((r.metric, *sorted(r.parameters.items())) for r in readings)
    assert set(keys.values()) == {1}
    assert all(reading.valid for reading in readings)
