"""What the kit reads from machines of public dumps: reset types, power and temperature."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.foreign import foreign_python
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.emulators.bmc.tree import TreeEmulator, machines, members
from tests.folders import ROOT

from proofmark.machine.bmc.back_end import Credentials, Host
from proofmark.machine.bmc.client import ConnectionPool, ConnectionSettings, path_of_system
from proofmark.machine.bmc.https import tls_context
from proofmark.machine.bmc.redfish_resources import OFF, ON, RESTARTS, reset_way
from proofmark.machine.outcome import NodeError
from proofmark.packages.tools import telemetry
from proofmark.packages.tools.telemetry import BmcSensors

MACHINES = machines()
CHASSIS, SYSTEMS = "/redfish/v1/Chassis", "/redfish/v1/Systems"
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=[each["name"] for each in MACHINES])


@contextmanager
def served(tree: dict[str, Any], folder: Path) -> Iterator[tuple[Emulator, ConnectionPool]]:
    with TreeEmulator(tree, folder) as emulator:
        context = tls_context(str(emulator.ca), verify=True)
        settings = ConnectionSettings(context, emulator.port, Credentials(USER, PASSWORD), 10, 1)
        yield emulator, ConnectionPool(settings)


def figures(pool: ConnectionPool, address: str, system: str) -> dict[str, float]:
    try:
        return BmcSensors(pool).read(Host("n1", address, system))
    except NodeError as error:
        assert error.text == f"{CHASSIS}: no power and no temperature"
        return {}


@each_machine
def test_resets_and_figures(machine: dict[str, Any], tmp_path: Path) -> None:
    with served(machine["tree"], tmp_path) as (emulator, pool):
        address = emulator.address("n1")
        for system, right in machine["nodes"].items():
            with pool.connection(address) as bmc:
                way = reset_way(bmc, bmc.get(path_of_system(bmc, system, {})).body, "")
            assert [*way.kinds, *way.off, *way.on] == right["resets"]
            found = figures(pool, address, system)
            assert found.keys() == right["figures"].keys()
            assert found == pytest.approx(right["figures"], abs=0.06)


@pytest.mark.soak
@each_machine
def test_sushy_reads_the_same(
    machine: dict[str, Any], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    python = foreign_python(tmp_path_factory)
    with served(machine["tree"], tmp_path) as (emulator, pool):
        address = emulator.address("n1")
        script = ROOT / "tests/emulators/bmc/sushy_readings.py"
        words = [f"{address}:{emulator.port}", str(emulator.ca), USER, PASSWORD]
        done = subprocess.run(
            [python, script, *words], check=True, capture_output=True, text=True, timeout=120
        )
        by_sushy = json.loads(done.stdout)
        for system, right in machine["nodes"].items():
            usable = {*RESTARTS, *OFF, *ON} & set(by_sushy[system]["resets"])
            assert usable == set(right["resets"])
            celsius = by_sushy[system]["celsius"]
            if celsius is not None:
                assert figures(pool, address, system)["celsius"] == celsius


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def test_a_chassis_of_two_nodes_has_the_figures_of_none(tmp_path: Path) -> None:
    """The enclosure is linked by both systems, or links to both."""
    enclosure, power = f"{CHASSIS}/Enclosure", f"{CHASSIS}/Enclosure/Power"
    both = [f"{SYSTEMS}/Node0", f"{SYSTEMS}/Node1"]
    shared = {"ChassisType": "Enclosure", "Power": link(power)}
    for back in (False, True):
        tree: dict[str, Any] = {
            SYSTEMS: members(*both),
            CHASSIS: members(enclosure, *(f"{CHASSIS}/{each[-5:]}" for each in both)),
            enclosure: {**shared, "Links": {"ComputerSystems": [*map(link, both)]}},
            power: {"PowerControl": [{"PowerConsumedWatts": 1500}]},
        }
        for number, system in enumerate(both):
            blade = f"{CHASSIS}/{system[-5:]}"
            chassis = [link(blade)] if back else [link(enclosure), link(blade)]
            tree[system] = {"Bios": link(f"{system}/Bios"), "Links": {"Chassis": chassis}}
            tree[blade] = {"ChassisType": "Blade", "Power": link(f"{blade}/Power")}
            tree[f"{blade}/Power"] = {"PowerControl": [{"PowerConsumedWatts": 300 + number}]}
        if not back:
            tree[enclosure] = shared
        with served(tree, tmp_path / f"{back}") as (emulator, pool):
            for number in (0, 1):
                found = figures(pool, emulator.address("n1"), f"Node{number}")
                assert found == {"watts": 300 + number}


def test_a_distance_to_a_limit_is_no_temperature(tmp_path: Path) -> None:
    """Three sensors of a processor are distances, each stated in another way."""
    base = f"{CHASSIS}/1/Sensors"
    bodies: dict[str, dict[str, Any]] = {
        "Average": {"Reading": 41.5, "Thresholds": {"UpperCritical": {"Reading": 95}}},
        "Margin": {"Reading": 53, "ReadingBasis": "Headroom"},
        "Limit": {"Reading": 54, "Thresholds": {"LowerCritical": {"Reading": -4}}},
        "CPU_0_TempLimit_0": {"Reading": 55},
        "Text": {"Reading": "42.250000"},
        "Off": {"Reading": 56, "Status": {"State": "Absent"}},
    }
    readings = [
        {"PhysicalContext": "CPU", "Reading": 60, "DataSourceUri": f"{base}/{name}"}
        for name in bodies
    ]
    metrics, subsystem = f"{CHASSIS}/1/Metrics", f"{CHASSIS}/1/ThermalSubsystem"
    tree = {
        CHASSIS: members(f"{CHASSIS}/1"),
        f"{CHASSIS}/1": {"ThermalSubsystem": link(subsystem)},
        subsystem: {"ThermalMetrics": link(metrics)},
        metrics: {"TemperatureReadingsCelsius": readings},
        **{f"{base}/{name}": {"Id": name, **body} for name, body in bodies.items()},
    }
    with served(tree, tmp_path) as (emulator, pool):
        assert figures(pool, emulator.address("n1"), "") == {"celsius": 42.25}


def test_the_power_of_a_part_is_not_that_of_its_node(tmp_path: Path) -> None:
    path = f"{CHASSIS}/1"
    controls = [
        {"PowerConsumedWatts": None, "PhysicalContext": "Chassis"},
        {"PowerConsumedWatts": 99, "PhysicalContext": "CPUSubsystem"},
    ]
    tree = {
        CHASSIS: members(path),
        path: {"Power": link(f"{path}/Power")},
        f"{path}/Power": {"PowerControl": controls},
    }
    with served(tree, tmp_path) as (emulator, pool):
        assert figures(pool, emulator.address("n1"), "") == {}


@pytest.mark.parametrize(
    "bad",
    [
        *({"ReadingCelsius": each} for each in ("N/A", "nan", -128, 255, 1e30, True, [1])),
        *(
            {"ReadingCelsius": 99, "Status": {"State": each}}
            for each in ("Updating", "Starting", "Deferring", "InTest", "UnavailableOffline")
        ),
        {"ReadingCelsius": 99, "Status": "OK"},
        {"ReadingCelsius": 99, "PhysicalContext": 7},
        None,
    ],
)
def test_one_bad_sensor_hides_no_other(tmp_path: Path, bad: dict[str, Any] | None) -> None:
    path = f"{CHASSIS}/1"
    good = {"PhysicalContext": "CPU", "ReadingCelsius": 77.5}
    watts = [{"PowerConsumedWatts": each} for each in ("N/A", -1, 65535, 252)]
    tree = {
        CHASSIS: members(f"{CHASSIS}/0", path),
        path: {
            **{name: link(f"{path}/{name}") for name in ("Power", "Thermal")},
            "EnvironmentMetrics": {},
        },
        f"{path}/Power": {"PowerControl": watts},
        f"{path}/Thermal": {"Temperatures": [bad and {"PhysicalContext": "CPU", **bad}, good]},
    }
    with served(tree, tmp_path) as (emulator, pool):
        assert figures(pool, emulator.address("n1"), "") == {"watts": 252, "celsius": 77.5}


def test_a_bmc_without_figures_is_not_searched_at_each_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served({CHASSIS: members(f"{CHASSIS}/1"), f"{CHASSIS}/1": {}}, tmp_path) as (bmc, pool):
        reader, host = BmcSensors(pool), Host("n1", bmc.address("n1"))
        counts = []
        for _ in range(2):
            with pytest.raises(NodeError, match="no power and no temperature"):
                reader.read(host)
            counts.append(bmc.machines["n1"].requests)
        assert counts[0] == counts[1] > 0
        monkeypatch.setattr(telemetry, "AGAIN_S", 0.0)
        again = BmcSensors(pool)
        for _ in range(2):
            with pytest.raises(NodeError):
                again.read(host)
        assert bmc.machines["n1"].requests == 3 * counts[0]
