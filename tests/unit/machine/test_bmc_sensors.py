"""Power and temperature by Redfish, from emulated BMCs. Not tried on hardware."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator

from proofmark.cases.vocabulary import SENSOR
from proofmark.machine.bmc.bmc_model import Host
from proofmark.machine.bmc.client import ConnectionPool, ConnectionSettings
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.sensors import BmcSensors
from proofmark.machine.bmc.tls import tls_context
from proofmark.machine.outcome import NodeError
from proofmark.records.sensor_readings import bmc_readings
from proofmark.runs.bmc_telemetry import append_look, read_looks
from proofmark.runs.run_files import RunFiles


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(["n1"], tmp_path / "bmc", network=57) as emulator:
        yield emulator


def read(emulator: Emulator, **machine: Any) -> dict[str, float]:
    for name, value in machine.items():
        setattr(emulator.machines["n1"], name, value)
    context = tls_context(str(emulator.ca), verify=True)
    settings = ConnectionSettings(context, emulator.port, Credentials(USER, PASSWORD), 10, 1)
    return BmcSensors(ConnectionPool(settings)).read(Host("n1", emulator.address("n1")))


@pytest.mark.parametrize("sensors", ["Power", "EnvironmentMetrics"])
def test_power_and_the_hottest_processor(emulator: Emulator, sensors: str) -> None:
    assert read(emulator, sensors=sensors) == {"watts": 211.5, "celsius": 61}


def test_the_paths_are_asked_for_once(emulator: Emulator) -> None:
    context = tls_context(str(emulator.ca), verify=True)
    settings = ConnectionSettings(context, emulator.port, Credentials(USER, PASSWORD), 10, 1)
    sensors, host = BmcSensors(ConnectionPool(settings)), Host("n1", emulator.address("n1"))
    sensors.read(host)
    before = emulator.machines["n1"].requests
    sensors.read(host)
    assert emulator.machines["n1"].requests == before + 2


def test_a_sensor_without_a_value_gives_no_figure(emulator: Emulator) -> None:
    assert read(emulator, watts=None) == {"celsius": 61}


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ({"sensors": ""}, "no power and no temperature"),
        ({"watts": -1}, "PowerConsumedWatts: found -1"),
        ({"watts": "many"}, "PowerConsumedWatts: found 'many'"),
        ({"celsius": 1e6}, "ReadingCelsius: found 1000000.0"),
    ],
)
def test_an_impossible_value_is_the_failure_of_its_node(
    emulator: Emulator, machine: dict[str, Any], message: str
) -> None:
    with pytest.raises(NodeError, match=message):
        read(emulator, **machine)


def test_looks_become_figures_of_the_steps_at_that_time(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    for number, watts in enumerate((100, 200, 300, 900)):
        assert append_look(files, 1000 + 60 * number, {"n1": {"watts": watts}}, {"BUSY": 2})
    with files.bmc_telemetry.open("a") as file:
        file.write('{"time": 1')  # the command was killed
    looks = read_looks(files)
    (reading,) = bmc_readings("fake", ["n1", "n2"], looks, 1050, 1130)
    assert (reading.metric, reading.value, reading.node) == ("node_power", 250, "n1")
    assert reading.parameters == {SENSOR: "bmc"}
    assert [*bmc_readings("fake", ["n1"], looks, float("nan"), 2000)] == []
