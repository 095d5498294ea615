"""The figures of sensors: of the samples of a node, and of the looks at its BMC."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from proofmark.cases.case import CLOCK, POWER, TELEMETRY, TEMPERATURE, THROTTLED
from proofmark.cases.reader.engine import Reading
from proofmark.cases.vocabulary import SENSOR
from proofmark.records.measured_step import bmc_readings, sensor_readings
from proofmark.runs.attempts import ReadOnce
from proofmark.runs.run_files import RunFiles, StepFiles
from proofmark.runs.samples import TelemetryInterval, read_looks, read_telemetry

LINE: Mapping[str, Any] = {
    **{"host": "n1", "time": 100, "span": 4, "rapl_w": 100, "acpi_w": 200, "ipmi_w": 300},
    **{"celsius": 60.5, "mhz": 2000, "mhz_least": 1000, "throttled": 1},
}


def intervals(folder: Path, *lines: Mapping[str, Any]) -> list[TelemetryInterval]:
    text = "".join(json.dumps({**LINE, **line}) + "\n" for line in lines)
    StepFiles(folder).telemetry.write_text(text)
    return read_telemetry(ReadOnce(f"{folder}"))


def figures(readings: Sequence[Reading]) -> list[tuple[str, str, Any, float]]:
    """Return host, metric, sensor and value of each figure."""
    assert all(each.unit == TELEMETRY[each.metric].unit and each.valid for each in readings)
    shown = ((each.node, each.metric, each.parameters[SENSOR], each.value) for each in readings)
    return [(str(node), metric, sensor, value or 0.0) for node, metric, sensor, value in shown]


def test_a_node_has_the_mean_over_its_time_and_the_highest_temperature(tmp_path: Path) -> None:
    found = intervals(
        tmp_path,
        {},
        {"host": "n2", "span": 10},
        {"span": 6, "rapl_w": 150, "acpi_w": 0, "celsius": 40, "mhz": 3000, "throttled": 2},
    )
    assert found[0] == TelemetryInterval(*("n1", 100, 4), {key: LINE[key] for key in [*LINE][3:]})
    assert figures([*sensor_readings("c", found)]) == [
        *(("n1", POWER, "rapl", 130), ("n1", POWER, "acpi", 80), ("n1", POWER, "ipmi", 300)),
        ("n1", TEMPERATURE, "processor", 60.5),
        ("n1", CLOCK, "cpufreq", 2600),
        ("n1", THROTTLED, "processor", 3),
        *(("n2", POWER, "rapl", 100), ("n2", POWER, "acpi", 200), ("n2", POWER, "ipmi", 300)),
        ("n2", TEMPERATURE, "processor", 60.5),
        ("n2", CLOCK, "cpufreq", 2000),
        ("n2", THROTTLED, "processor", 1),
    ]


def test_a_short_program_has_no_figure_but_throttling(tmp_path: Path) -> None:
    found = intervals(tmp_path, {}, {"span": 5.9})
    assert figures([*sensor_readings("c", found)]) == [("n1", THROTTLED, "processor", 2)]


def test_a_sensor_that_is_not_there_has_no_figure() -> None:
    some = [TelemetryInterval("n1", 1, 9, {}), TelemetryInterval("n1", 2, 1, {"mhz": 5})]
    assert figures([*sensor_readings("c", some)]) == [("n1", CLOCK, "cpufreq", 5)]
    without_time = [TelemetryInterval("n1", 1, 10, {}), TelemetryInterval("n1", 2, 0, {"mhz": 5})]
    assert figures([*sensor_readings("c", without_time)]) == []


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("span", 0, 1e7),
        *((f"{name}_w", 0, 1e6) for name in ("rapl", "acpi", "ipmi")),
        ("celsius", -100, 200),
        ("mhz", 0, 1e5),
        ("mhz_least", 0, 1e5),
        ("throttled", 0, 1e12),
    ],
)
def test_a_sensor_has_possible_values_only(
    tmp_path: Path, key: str, low: float, high: float
) -> None:
    for value in (low, high):
        (found,) = intervals(tmp_path, {key: value})
        assert (found.span if key == "span" else found.values[key]) == value
    for wrong in (low - 0.1, high * 1.1, True, "1", None):
        with pytest.raises(ValueError, match=f"^{key} "):
            intervals(tmp_path, {key: wrong})


def test_an_unknown_sensor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="volts"):
        intervals(tmp_path, {"volts": 1})


LOOKS: Sequence[Mapping[str, Any] | str] = (
    {"time": 10, "nodes": {"n1": {"watts": 100, "celsius": 40}, "n2": {"watts": 5}}},
    {"time": 20, "nodes": {"n1.a": {"watts": 1}, "n1": {"watts": 300}}},
    "{",
    {"time": 15, "nodes": {"n1": {"watts": 9000}}},
    {"time": 25, "nodes": {"n1": {"watts": "x"}}},
    {"time": 26, "nodes": {"n1": 1}},
    {"time": 27, "nodes": {"n1": {"watts": math.nan}}},
    {"time": 20, "nodes": {"n1": {"watts": 500, "celsius": 30}}},
    {"time": 31, "nodes": {"n1": {"watts": 9000}}},
)
"""Of what BMCs answered, the damaged lines and those of an earlier time are left out."""


def test_the_looks_at_a_bmc_during_an_execution_are_its_figures(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    assert read_looks(files).within("n1", 0, 100) == []
    files.bmc_telemetry.parent.mkdir()
    lines = (each if isinstance(each, str) else json.dumps(each) for each in LOOKS)
    files.bmc_telemetry.write_text("".join(f"{line}\n" for line in lines))
    looks = read_looks(files)
    during = figures([*bmc_readings("c", ["n1", "n2", "n3"], looks, 10, 30)])
    assert during == [
        ("n1", POWER, "bmc", 300),
        ("n1", TEMPERATURE, "bmc", 40),
        ("n2", POWER, "bmc", 5),
    ]
    assert figures([*bmc_readings("c", ["n1"], looks, 11, 19)]) == []
    assert figures([*bmc_readings("c", ["n2.x"], looks, 10, 10)]) == [("n2.x", POWER, "bmc", 5)]
    assert figures([*bmc_readings("c", ["n1"], looks, math.nan, 30)]) == []
