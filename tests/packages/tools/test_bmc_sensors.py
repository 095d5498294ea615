"""Power and temperature by Redfish, from emulated BMCs. Not tried on hardware."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.emulators.bmc.tree import TreeEmulator, members

from proofmark.cases.vocabulary import SENSOR
from proofmark.machine.bmc.back_end import Credentials, Host
from proofmark.machine.bmc.client import ConnectionPool, ConnectionSettings
from proofmark.machine.bmc.https import tls_context
from proofmark.machine.outcome import NodeError
from proofmark.packages.tools.telemetry import BmcSensors, append_look
from proofmark.records.measured_step import bmc_readings
from proofmark.runs.run_files import RunFiles
from proofmark.runs.samples import read_looks


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


@pytest.mark.core("the package works")
@pytest.mark.parametrize(
    ("machine", "found"),
    [
        ({"watts": -1}, {"celsius": 61}),
        ({"watts": "many"}, {"celsius": 61}),
        ({"celsius": 1e6}, {"watts": 211.5, "celsius": 40}),
    ],
)
def test_an_impossible_value_is_no_figure(
    emulator: Emulator, machine: dict[str, Any], found: dict[str, float]
) -> None:
    assert read(emulator, **machine) == found


def test_a_node_without_sensors_is_a_failure(emulator: Emulator) -> None:
    with pytest.raises(NodeError, match="no power and no temperature"):
        read(emulator, sensors="")


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


CHASSIS, SYSTEMS = "/redfish/v1/Chassis", "/redfish/v1/Systems"


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def chassis(name: str, watts: Any, *temperatures: Any, **further: Any) -> dict[str, Any]:
    """Return a chassis with Power and Thermal; a temperature is a value, or a whole sensor."""
    path = f"{CHASSIS}/{name}"
    sensors = [
        each if isinstance(each, dict) else {"PhysicalContext": "CPU", "ReadingCelsius": each}
        for each in temperatures
    ]
    power, thermal = link(f"{path}/Power"), link(f"{path}/Thermal")
    return {
        path: {"Id": name, "Power": power, "Thermal": thermal, **further},
        f"{path}/Power": {"PowerControl": [{"PowerConsumedWatts": watts}]},
        f"{path}/Thermal": {"Temperatures": sensors},
    }


def looked_at(tree: dict[str, dict[str, Any]], folder: Path, system: str = "") -> dict[str, float]:
    with TreeEmulator(tree, folder) as emulator:
        context = tls_context(str(emulator.ca), verify=True)
        settings = ConnectionSettings(context, emulator.port, Credentials(USER, PASSWORD), 10, 1)
        host = Host("n1", emulator.address("n1"), system)
        return BmcSensors(ConnectionPool(settings)).read(host)


ABSENT = {"PhysicalContext": "CPU", "ReadingCelsius": 55, "Status": {"State": "Absent"}}


@pytest.mark.parametrize(
    ("watts", "sensors", "figures"),
    [
        (0, [0], {}),
        (0, [ABSENT, 41], {"celsius": 41}),
        (350, [ABSENT], {"watts": 350}),
        (350, [0, 41, ABSENT], {"watts": 350, "celsius": 41}),
    ],
)
def test_an_absent_sensor_is_no_zero(
    tmp_path: Path, watts: float, sensors: list[Any], figures: dict[str, float]
) -> None:
    tree = {CHASSIS: members(f"{CHASSIS}/1"), **chassis("1", watts, *sensors)}
    if figures:
        assert looked_at(tree, tmp_path) == figures
    else:
        with pytest.raises(NodeError, match="no power and no temperature"):
            looked_at(tree, tmp_path)


@pytest.mark.parametrize("context", ["Intake", "SystemBoard", None])
def test_names_decide_if_the_contexts_of_all_sensors_are_equal(
    tmp_path: Path, context: str | None
) -> None:
    readings = {"TEMP_CPU0": 64, "Inlet": 90, "TEMP_PCH": 80}
    sensors = [
        {"Name": name, "PhysicalContext": context, "ReadingCelsius": value}
        for name, value in readings.items()
    ]
    tree = {CHASSIS: members(f"{CHASSIS}/1"), **chassis("1", 350, *sensors)}
    assert looked_at(tree, tmp_path) == {"watts": 350, "celsius": 64}


def blade(*, linked: str) -> dict[str, dict[str, Any]]:
    """Return the tree of a BMC with two nodes and an enclosure."""
    tree: dict[str, dict[str, Any]] = {
        CHASSIS: members(*(f"{CHASSIS}/{each}" for each in ("Enclosure", "B0", "B1"))),
        SYSTEMS: members(f"{SYSTEMS}/Node0", f"{SYSTEMS}/Node1"),
        **chassis("Enclosure", 1200, 30, ChassisType="Enclosure"),
    }
    for number, (watts, celsius) in enumerate([(350, 41), (720, 83)]):
        system, place = f"{SYSTEMS}/Node{number}", f"{CHASSIS}/B{number}"
        tree[system] = {"Id": f"Node{number}", "Bios": link(f"{system}/Bios")}
        tree |= chassis(f"B{number}", watts, celsius, ChassisType="Blade")
        if linked == "system":
            tree[system]["Links"] = {"Chassis": [link(place)]}
        elif linked == "chassis":
            tree[place]["Links"] = {"ComputerSystems": [link(system)]}
    return tree


@pytest.mark.parametrize("linked", ["system", "chassis"])
def test_each_of_two_nodes_has_its_own_figures(tmp_path: Path, linked: str) -> None:
    tree = blade(linked=linked)
    assert looked_at(tree, tmp_path / "0", "Node0") == {"watts": 350, "celsius": 41}
    assert looked_at(tree, tmp_path / "1", "Node1") == {"watts": 720, "celsius": 83}


@pytest.mark.parametrize(("linked", "system"), [("system", ""), ("", "Node0"), ("", "")])
def test_the_figures_of_two_nodes_are_not_guessed(tmp_path: Path, linked: str, system: str) -> None:
    with pytest.raises(NodeError, match="no link says which are those of n1"):
        looked_at(blade(linked=linked), tmp_path, system)


@pytest.mark.parametrize(("systems", "figures"), [(1, {"watts": 252}), (2, {})])
def test_a_rack_has_the_power_of_its_only_system(
    tmp_path: Path, systems: int, figures: dict[str, float]
) -> None:
    """The chassis of a Cisco C220 has the type Rack, and the only system links to it."""
    names = [f"{SYSTEMS}/S{number}" for number in range(systems)]
    links = {"ComputerSystems": [link(each) for each in names]}
    tree: dict[str, dict[str, Any]] = {
        CHASSIS: members(f"{CHASSIS}/1"),
        SYSTEMS: members(*names),
        **chassis("1", 252, 77.5, ChassisType="Rack", Links=links),
    }
    for each in names:
        tree[each] = {"Bios": link(f"{each}/Bios")}
    tree[names[0]]["Links"] = {"Chassis": [link(f"{CHASSIS}/1")]}
    if figures:
        assert looked_at(tree, tmp_path) == {**figures, "celsius": 77.5}
    else:
        with pytest.raises(NodeError):
            looked_at(tree, tmp_path, "S0")


def test_a_node_with_many_modules(tmp_path: Path) -> None:
    """The power of a module is not that of its node; the 30th chassis is read too."""
    names = [f"Module{number}" for number in range(30)]
    paths = [f"{CHASSIS}/{each}" for each in (*names, "Whole")]
    system, processor = f"{SYSTEMS}/System_0", f"{SYSTEMS}/System_0/Processors/CPU_0"
    tree: dict[str, dict[str, Any]] = {
        CHASSIS: members(*paths[:20], **{"Members@odata.nextLink": f"{CHASSIS}?$skip=20"}),
        f"{CHASSIS}?$skip=20": members(*paths[20:]),
        SYSTEMS: members(system, f"{SYSTEMS}/HGX_Baseboard_0"),
        f"{SYSTEMS}/HGX_Baseboard_0": {"Id": "HGX_Baseboard_0"},
        system: {"Bios": link(f"{system}/Bios"), "Processors": link(f"{system}/Processors")},
        f"{system}/Processors": members(processor),
        processor: {"ProcessorType": "CPU", "EnvironmentMetrics": link(f"{processor}/Metrics")},
        f"{processor}/Metrics": {"TemperatureCelsius": {"Reading": 52}},
        **chassis("Whole", 1900, ChassisType="RackMount"),
    }
    for name in names:
        tree |= chassis(name, 25, ChassisType="Module")
    assert looked_at(tree, tmp_path, "System_0") == {"watts": 1900, "celsius": 52}


def test_the_older_resource_counts_if_the_newer_one_has_no_value(tmp_path: Path) -> None:
    newer = link(f"{CHASSIS}/1/ThermalSubsystem")
    metrics = link(f"{CHASSIS}/1/Metrics")
    environment = link(f"{CHASSIS}/1/EnvironmentMetrics")
    tree = {
        CHASSIS: members(f"{CHASSIS}/1"),
        **chassis("1", 350, 41, ThermalSubsystem=newer, EnvironmentMetrics=environment),
        newer["@odata.id"]: {"ThermalMetrics": metrics},
        metrics["@odata.id"]: {"TemperatureReadingsCelsius": [{"Reading": 20}]},
        environment["@odata.id"]: {"PowerWatts": {"Reading": None}},
    }
    assert looked_at(tree, tmp_path) == {"watts": 350, "celsius": 41}
