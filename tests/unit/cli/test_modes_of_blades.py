"""Faults of real BMCs, through the commands: modes, preflight and telemetry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.bmc.blade import Answers, Blade, blade_tree
from tests.emulators.bmc.server import PASSWORD, USER
from tests.emulators.bmc.tree import machines, members
from tests.fixtures.phi import FLAT, Phi, phi_site

from proofmark.common.rights import this_user
from proofmark.machine.bmc.back_end import Credentials
from proofmark.machine.modes.rollout import unprovable_modes
from proofmark.machine.preflight import preflight
from proofmark.runs.run import Run
from proofmark.site.inventory import load_site

pytestmark = pytest.mark.rest("commands wait for emulated blades")

REGISTRY: list[dict[str, Any]] = [
    {
        "AttributeName": "Boost",
        "Type": "Enumeration",
        "Value": [{"ValueName": "On"}, {"ValueName": "Off"}],
    },
    {"AttributeName": "Cores", "Type": "Integer", "LowerBound": 1, "UpperBound": 336},
    {"AttributeName": "Quiet", "Type": "Boolean"},
    {"AttributeName": "Locked", "Type": "Boolean", "GrayOut": True},
]
BIOS = {"Boost": "On", "Cores": 64, "Quiet": True, "Locked": False}
FAST: dict[str, Any] = {"boost": "On", "cores": 64, "quiet": "true"}
Made = tuple[Phi, Blade, Run]
Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Yield a function that makes a site of two nodes behind one BMC, and a run of two modes.

    The modes have the same NUMA domains: only the BMC distinguishes them.
    """
    with phi_site(tmp_path, monkeypatch) as phi, ExitStack() as stack:

        def made(how: Answers, slow: dict[str, Any], **firmware: Any) -> Made:
            systems = {f"Node{n}": phi.emulator.nodes / name for n, name in enumerate(phi.nodes)}
            tree = blade_tree([*systems], BIOS, REGISTRY)
            blade = Blade(tree, tmp_path / "blade", systems, how)
            stack.enter_context(blade)
            facts: dict[str, Any] = {
                "bmc": blade.address("n1"),
                "port": blade.port,
                "ca": str(blade.ca),
                "system": "Node{number % 2}",
                "smbios": None,
                "attributes": {name: name.capitalize() for name in slow},
            }
            phi.write_inventory(**facts | firmware)
            path = phi.inventory / "group_vars" / "phi" / "partition.yml"
            written = yaml.safe_load(path.read_text())
            fast = {name: FAST.get(name, "false") for name in slow}
            written["partition"]["modes"] = {
                name: {"settings": each, "topology": FLAT}
                for name, each in (("fast", fast), ("slow", slow))
            }
            written["partition"]["current_mode"] = "fast"
            path.write_text(yaml.safe_dump(written))
            sweep = {"size": [1], "nodes": 1}
            suite = {"modes": ["fast", "slow"], "scope": "each-node", "sweep": sweep}
            phi.kit.case(suites={"quick": suite})
            return phi, blade, phi.kit.run(site=load_site(phi.inventory, "phi"), run_id="acc1")

        yield made


@pytest.mark.parametrize(
    "how",
    [
        Answers(),
        Answers(late=True),
        Answers(late=True, location="https://127.59.0.1{path}"),
        Answers(
            late=True,
            location="../../../TaskService/TaskMonitors/{name}",
            task_ends=(404, None),
        ),
        Answers(late=True, location="", task_ends=(200, {"TaskState": "Completed"})),
    ],
    ids=["at once", "task", "task at an address", "task that is gone", "task in the body"],
)
def test_each_of_two_nodes_behind_one_bmc_changes(
    make: Make, capsys: pytest.CaptureFixture[str], how: Answers
) -> None:
    slow = {"boost": "Off", "cores": "72", "quiet": "false"}
    site, _, run = make(how, slow)
    assert site.main("modes", "check", run.folder, "--mode", "slow") == 0
    assert how.sent == []
    assert site.change("enter", run, "--mode", "slow") == 0, "".join(capsys.readouterr())
    values = {"Boost": "Off", "Cores": 72, "Quiet": False}
    for node in ("Node0", "Node1"):
        sent = [what for system, what in how.sent if system == node]
        assert [*map(str, sent)] == [str(values), "ForceRestart"]
    assert site.main("modes", "verify", run.folder, "--mode", "slow") == 0
    assert site.change("restore", run) == 0
    assert [what for _, what in how.sent].count("ForceRestart") == 4
    assert site.main("modes", "verify", run.folder, "--mode", "fast") == 0
    assert site.slurm.drained == {}


@pytest.mark.parametrize(
    ("slow", "firmware", "said"),
    [
        ({"boost": "Off"}, {"reset_type": "PowerCycle"}, "no reset type 'PowerCycle'"),
        ({"boost": "Off"}, {"system": ""}, 'firmware.system such as "Node{number % 2}"'),
        ({"boost": "Off"}, {"system": "Node1"}, "system Node1 for n1 and for n2"),
        ({"cores": "9999"}, {}, "9999 is not between 1 and 336"),
        ({"cores": "many"}, {}, "found 'many'; accepted: a whole number"),
        ({"quiet": "no"}, {}, "no value 'no'"),
        ({"locked": "true"}, {}, "grayed out"),
    ],
)
def test_what_a_bmc_cannot_do_is_refused_before_a_change(
    make: Make,
    capsys: pytest.CaptureFixture[str],
    slow: dict[str, Any],
    firmware: dict[str, Any],
    said: str,
) -> None:
    how = Answers()
    site, _, run = make(how, slow, **firmware)
    for verb in ("check", "enter"):
        words = ["--confirm-reboot"] if verb == "enter" else []
        assert site.main("modes", verb, run.folder, "--mode", "slow", *words) != 0
        assert said in "".join(capsys.readouterr())
    assert (how.sent, site.slurm.drained) == ([], {})


@pytest.mark.parametrize("state", ["Exception", "Killed", "Cancelled"])
def test_a_task_that_fails_is_quoted_and_no_node_is_reset(
    make: Make, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    said = f"the host has {state.lower()} it"
    end = {"TaskState": state, "Messages": [{"Message": said}]}
    how = Answers(late=True, loses=True, task_ends=(200, end))
    site, _, run = make(how, {"boost": "Off"})
    assert site.change("enter", run, "--mode", "slow") == 1
    assert said in "".join(capsys.readouterr())
    assert not any(what == "ForceRestart" for _, what in how.sent)


def test_preflight_refuses_a_bmc_without_the_reset_type(make: Make) -> None:
    how = Answers()
    site, _, run = make(how, {"boost": "Off"}, reset_type="PowerCycle")
    facts = load_site(site.inventory, "phi")
    findings = preflight(facts, run.plan, Credentials(USER, PASSWORD), None, this_user().name)
    (said,) = [f"{each}" for each in findings if "no reset type 'PowerCycle'" in f"{each}"]
    assert "REFUSED" in said
    assert how.sent == []


def test_the_figures_of_each_of_two_nodes(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """A Cray EX425: the values of the nodes differ, and one sensor of each is absent."""
    site, blade, run = make(Answers(), {"boost": "Off"})
    cray = next(each["tree"] for each in machines() if each["name"] == "cray-ex425")
    chassis = "/redfish/v1/Chassis"
    blade.tree |= {path: body for path, body in cray.items() if path.startswith(chassis)}
    for node, (watts, celsius) in {"Node0": (350, 41), "Node1": (720, 83)}.items():
        path = f"{chassis}/{node}"
        absent = {"PhysicalContext": "CPU", "ReadingCelsius": 0, "Status": {"State": "Absent"}}
        blade.tree[f"{path}/Power"] = {"PowerControl": [{"PowerConsumedWatts": watts}]}
        sensor = {"PhysicalContext": "CPU", "ReadingCelsius": celsius}
        blade.tree[f"{path}/Thermal"] = {"Temperatures": [absent, sensor]}
    assert site.main("telemetry", run.folder, "--once") == 0, "".join(capsys.readouterr())
    (look,) = (run.folder / "telemetry/bmc.jsonl").read_text().splitlines()
    assert json.loads(look)["nodes"] == {
        "n1": {"watts": 350, "celsius": 41},
        "n2": {"watts": 720, "celsius": 83},
    }


def test_absent_sensors_are_no_figures(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """A Supermicro X10: all its sensors are absent and 0."""
    site, blade, run = make(Answers(), {"boost": "Off"})
    x10 = next(each["tree"] for each in machines() if each["name"] == "supermicro-x10")
    blade.tree |= {path: body for path, body in x10.items() if "/Chassis" in path}
    blade.tree["/redfish/v1/Systems"] = members("/redfish/v1/Systems/Node0")
    site.main("telemetry", run.folder, "--once")
    looks = (run.folder / "telemetry/bmc.jsonl").read_text().splitlines()
    assert [json.loads(look)["nodes"] for look in looks] == [{}]


@pytest.mark.parametrize(("back_end", "proven"), [("syscfg", False), ("redfish", True)])
def test_modes_that_no_node_shows_are_named_before_the_run(
    make: Make, capsys: pytest.CaptureFixture[str], back_end: str, proven: bool
) -> None:
    how = Answers()
    site, _, run = make(how, {"boost": "Off"}, back_end=back_end)
    lines = [*unprovable_modes(load_site(site.inventory, "phi"))]
    assert bool(lines) != proven
    assert proven or lines[0].startswith("not provable: phi: modes fast, slow: a node shows no")
    if not proven:
        assert site.main("modes", "check", run.folder, "--mode", "slow") == 3
        assert "differ in nothing that a node shows" in "".join(capsys.readouterr())


@pytest.mark.fault("bmc-update-runs")
@pytest.mark.parametrize(
    ("state", "target", "code"),
    [
        ("Running", "UpdateService/Actions/UpdateService.SimpleUpdate", 1),
        ("Pending", "UpdateService/upload", 1),
        ("Completed", "UpdateService/upload", 0),
        ("Killed", "UpdateService/upload", 0),
        ("Running", "Managers/BMC/LogServices/Dump/Actions/LogService.CollectDiagnosticData", 0),
    ],
)
def test_no_node_is_reset_while_firmware_is_updated(
    make: Make, capsys: pytest.CaptureFixture[str], state: str, target: str, code: int
) -> None:
    """The task is on the second page; the first one has a task that the BMC has forgotten."""
    how = Answers()
    site, blade, run = make(how, {"boost": "Off"})
    tasks = "/redfish/v1/TaskService/Tasks"
    page = {"Members@odata.nextLink": f"{tasks}?$skip=1", "Members@odata.count": 2}
    blade.tree[tasks] = members(f"{tasks}/0", **page)
    blade.tree[f"{tasks}?$skip=1"] = members(f"{tasks}/1")
    payload = {"TargetUri": f"/redfish/v1/{target}"}
    blade.tree[f"{tasks}/1"] = {"Id": "1", "TaskState": state, "Payload": payload}
    assert site.main("modes", "check", run.folder, "--mode", "slow") == code
    said = "".join(capsys.readouterr())
    assert (f"BLOCKED: 2 nodes (n[1-2]): task 1 updates firmware and is {state}" in said) == code
    if code:
        assert site.change("enter", run, "--mode", "slow") == code
        assert (how.sent, site.slurm.drained) == ([], {})
