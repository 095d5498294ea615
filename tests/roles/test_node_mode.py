"""The playbooks with emulated BMCs: every mode of a plan, and the restore."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.bmc.rollouts import ATTRIBUTES
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import until
from tests.processes import running
from tests.roles.alone import planned, play_alone
from tests.roles.kit import LONGEST_S, NAP, Kit, Played

pytestmark = [pytest.mark.slow, pytest.mark.root]

NODE = "localhost"
FACTS = "inventory/local/group_vars/local/partition.yml"
CORES = "core:2 pu:4(indexes=4*68:68*1)"
FLAT = f"pack:1 [numa(memory=96GiB)] [numa(memory=16GiB)] l2:34(size=1MiB) {CORES}"
CACHE = f"pack:1 [numa(memory=96GiB)] l2:34(size=1MiB) {CORES}"
MODES = {
    "quadrant-flat": {
        "settings": {"cluster": "Quadrant", "memory": "Flat"},
        "topology": FLAT,
    },
    "hemisphere-flat": {
        "settings": {"cluster": "Hemisphere", "memory": "Flat"},
        "topology": FLAT,
    },
    "quadrant-cache": {
        "settings": {"cluster": "Quadrant", "memory": "Cache"},
        "topology": CACHE,
    },
}
CONFIRMED = ("-e", "confirm_reboot=true", "-e", f"bmc_user={USER}", "-e")
GIVEN = json.dumps({"bmc_password": PASSWORD})
Machine = tuple[Kit, Emulator]


@pytest.fixture
def machine(kit: Kit, tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Yield a function that makes the kit's node a Xeon Phi with an emulated BMC and a fault."""
    opened: list[Emulator] = []

    def make(fault: str = "", **changes: Any) -> Machine:
        emulator = Emulator([NODE], tmp_path / "bmc", faults={NODE: fault})
        emulator.__enter__()
        opened.append(emulator)
        firmware = {
            "back_end": "redfish",
            "bmc": emulator.address(NODE),
            "port": emulator.port,
            "ca": str(emulator.ca),
            "attributes": ATTRIBUTES,
            "smbios": "knl",
            "remote_shell": emulator.remote_shell,
            "boot_s": 5,
        }
        kit.partition(
            origin="emulated",  # else the NUMA domains of this machine would contradict every mode
            modes=MODES,
            current_mode="quadrant-flat",
            firmware=firmware | changes,
        )
        case = yaml.safe_load(NAP)
        case["suites"] = {"quick": {"modes": [*MODES]}}
        (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
        (kit.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: naps}}\n")
        return kit, emulator

    yield make
    for emulator in opened:
        emulator.__exit__(None, None, None)


def play(kit: Kit, *arguments: str, playbook: str = "acceptance.yml") -> Played:
    return kit.play(playbook, *CONFIRMED, GIVEN, *arguments)


def with_mount(kit: Kit) -> Path:
    """Declare a file system that the play mounts; return its mount point."""
    point = kit.folder.parent / "pfs"
    scratch = {"path": f"{point}/runs", "type": "tmpfs", "source": "none"}
    facts = yaml.safe_load((kit.folder / FACTS).read_text())["partition"]
    kit.partition(**facts | {"scratch": {**scratch, "mount": {"point": f"{point}"}}})
    return point


def modes_measured(kit: Kit) -> set[str]:
    return {result["mode"] for result in kit.verdict()["results"]}


@pytest.mark.fault("node-of-another-controller")
def test_every_mode_of_the_plan_runs_and_the_node_is_restored(
    machine: Callable[..., Machine],
) -> None:
    """At first the node is held by another controller. Then it is taken over."""
    kit, emulator = machine()
    held = emulator.nodes / NODE / "var/lib/proofmark" / f".holder-{os.uname().nodename}"
    held.parent.mkdir(parents=True)
    held.write_text("proofmark:acc1 on ctl-a\n2026-11-01T08:00:00+00:00\n")
    phi = emulator.machines[NODE]
    refused = kit.play("playbooks/plan.yml", "playbooks/run.yml", *CONFIRMED, GIVEN)
    assert refused.code != 0
    assert "names another run: proofmark:acc1 on ctl-a since 2026-11-01" in refused.output
    assert phi.resets == 0 and held.exists()

    played = play(kit, "-e", "take_over=true", "-e", "fresh=true")
    assert played.code == 0, played.output
    assert modes_measured(kit) == set(MODES)
    assert kit.verdict()["coverage"]["not_run"] == []
    assert (phi.current["ClusterMode"], phi.current["MemoryMode"]) == ("Quadrant", "Flat")
    assert phi.resets == 3, "two changes and the restore"
    assert not held.exists()
    assert played.printed("site: local, nodes: 1 (localhost), BMCs: 127.9.0.1: to hemisphere-flat")
    texts = [path.read_bytes() for path in kit.folder.rglob("*") if path.is_file()]
    looks = (kit.run() / "telemetry/bmc.jsonl").read_text().splitlines()
    assert [json.loads(look)["nodes"][NODE]["watts"] for look in looks] == [211.5] * len(looks)
    assert looks, "the BMC was asked while the steps ran"
    assert PASSWORD not in played.output
    assert not any(PASSWORD.encode() in text for text in texts)
    again = play(kit, "-e", f"run_id={kit.run().name}", playbook="playbooks/run.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output
    assert phi.resets == 3


@pytest.mark.fault("check-mode")
def test_check_mode_of_a_new_run_shows_each_node_and_the_duration_and_changes_nothing(
    machine: Callable[..., Machine],
) -> None:
    kit, emulator = machine()
    point = with_mount(kit)
    before = kit.files()
    played = play(kit, "--check", "--diff")
    assert played.code == 0, played.output
    assert played.printed("localhost: MemoryMode: Flat → Cache, drain, reset, resume")
    assert played.printed("localhost: ClusterMode: Quadrant → Hemisphere, drain, reset, resume")
    assert played.printed("quadrant-cache: about 5 s"), played.output
    assert played.printed("15 s for resets and the restore"), played.output
    assert played.printed(f"localhost: would mount: tmpfs (none) on {point}")
    assert kit.files() == before
    assert not point.exists()
    phi = emulator.machines[NODE]
    assert (phi.patches, phi.resets) == (0, 0)


def test_a_node_that_does_not_enter_the_mode_runs_no_step_in_it(
    machine: Callable[..., Machine],
) -> None:
    kit, emulator = machine(fault="silent")
    played = play(kit)
    assert played.code == 2
    assert played.printed("NOT_APPLIED: 1 node (localhost)")
    assert played.printed("INVALID: 1 of 1 contract limits; 2 PASS"), played.output
    marks = played.output.partition("PLAY [Nodes that failed]")[2]
    assert "fatal: [localhost]" in marks
    ran = {path.parent.parent.name for path in kit.run().glob("workdir/steps/*/execution-1/rc")}
    assert len(ran) == 2, "the steps of the mode before the change"
    restored = play(kit, "-e", f"run_id={kit.run().name}", playbook="playbooks/restore.yml")
    assert restored.code == 0, restored.output
    assert emulator.machines[NODE].pending == {}


@pytest.mark.fault("busy-mount")
def test_a_node_that_cannot_be_restored_is_marked_after_the_verdict(
    machine: Callable[..., Machine],
) -> None:
    """A process uses the file system. The restore succeeds when the process has ended."""
    kit, _ = machine()
    point = with_mount(kit)
    suites = {"quick": {"modes": ["quadrant-flat"]}}
    case = yaml.safe_load(NAP) | {"suites": suites}
    (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    process = kit.start("acceptance.yml", *CONFIRMED, GIVEN)
    with running(process):
        until(lambda: point.is_mount() or process.poll() is not None, LONGEST_S)
        with subprocess.Popen(["sleep", "600"], cwd=point) as busy:
            try:
                output, _ = process.communicate(timeout=LONGEST_S)
            finally:
                busy.kill()
    played = Played(process.returncode, output)
    assert (played.code, kit.verdict()["counts"]["FAIL"]) == (2, 0), played.output
    assert played.printed("UNJUDGED: 1 of 1 contract limits"), played.output
    assert played.printed("worst: localhost: unmount: "), played.output
    marks = played.output.partition("PLAY [Nodes that failed]")[2]
    assert " is busy" in " ".join(marks.split())
    restored = play(kit, "-e", f"run_id={kit.run().name}", playbook="playbooks/restore.yml")
    assert restored.code == 0, restored.output
    assert not point.is_mount()


@pytest.mark.fault("stage-failed-after-the-jobs")
def test_a_bmc_that_hangs_at_the_restore_makes_no_pass(machine: Callable[..., Machine]) -> None:
    """All steps were measured. When the BMC answers, the restore and a report make the PASS."""
    kit, emulator = machine(timeout_s=1)
    case = yaml.safe_load(NAP) | {"suites": {"quick": {"modes": ["hemisphere-flat"]}}}
    (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    phi = emulator.machines[NODE]
    process = kit.start("acceptance.yml", *CONFIRMED, GIVEN)
    with running(process):
        started = "runs/*/workdir/steps/*/execution-1/started"
        until(lambda: any(kit.folder.glob(started)) or process.poll() is not None, LONGEST_S)
        phi.fault = "hang"
        output, _ = process.communicate(timeout=LONGEST_S)
    played = Played(process.returncode, output)
    assert played.code == 2, played.output
    assert kit.verdict()["coverage"]["missing"] == []
    assert played.printed("UNJUDGED: 1 of 1 contract limits"), played.output
    assert played.printed(f"worst: {NODE}: restore: NO_ANSWER: "), played.output
    assert kit.verdict()["headline"]["word"] == "UNJUDGED"

    phi.fault = ""
    run = ("-e", f"run_id={kit.run().name}")
    restored = play(kit, *run, playbook="playbooks/restore.yml")
    assert (restored.code, phi.current["ClusterMode"]) == (0, "Quadrant"), restored.output
    judged = play(kit, *run, "--tags", "collect,report")
    assert judged.code == 0, judged.output
    assert "stage_faults" not in kit.verdict()


def test_preflight_names_the_failed_check(machine: Callable[..., Machine]) -> None:
    """The maintenance window has ended. All other checks are OK."""
    kit, emulator = machine()
    before = kit.files()
    played = play(kit, "-e", "window_ends=2020-01-01T00:00:00Z", playbook="playbooks/preflight.yml")
    assert played.code == 2
    assert played.printed("TOO_SHORT: maintenance window")
    assert played.printed("OK: BMCs: certificate, log-in, registry: localhost")
    assert emulator.machines[NODE].patches == 0 and kit.files() == before


@pytest.mark.fault("fault-before-the-jobs")
def test_a_bmc_that_hangs_is_in_the_verdict_the_report_and_the_last_lines(
    machine: Callable[..., Machine],
) -> None:
    kit, emulator = machine("hang", timeout_s=1)
    played = play(kit, "-e", "repeats=2")
    assert played.code != 0
    verdict = kit.verdict()
    faults = {fault["stage"]: fault for fault in verdict["stage_faults"]}
    first = faults["mode quadrant-flat"]
    assert (first["nodes"], first["code"]) == (NODE, "NO_ANSWER")
    assert "no response within 1 s" in first["text"]
    assert verdict["coverage"]["measured"] == 0 < verdict["coverage"]["expected"]
    assert verdict["results"] == []
    assert played.printed("INVALID: 0 of 1 contract limits; 0 PASS")
    assert played.printed(f"worst: {NODE}: mode quadrant-flat: NO_ANSWER: ")
    command = f"-l local -e suite=quick -e repeats=2 -e run_id={kit.run().name}"
    assert played.printed(f"next: ansible-playbook acceptance.yml -i inventory/local {command}")
    page = (kit.run() / "report.html").read_text()
    assert "Failures outside the jobs" in page and "NO_ANSWER" in page
    # The next command, as it was printed, when the BMC answers again. It confirms no reset: the
    # steps of the other modes are listed. The first stages would do nothing.
    emulator.machines[NODE].fault = ""
    stages = ("--tags", "run,collect,report")
    again = kit.play("acceptance.yml", "-e", f"run_id={kit.run().name}", "-e", "repeats=2", *stages)
    assert again.code == 0, again.output
    assert "stage_faults" not in kit.verdict()
    assert modes_measured(kit) == {"quadrant-flat"}
    assert len(kit.verdict()["coverage"]["not_run"]) == 8
    assert again.printed("no figures of power and temperature: no user of the BMCs is given")
    assert emulator.machines[NODE].resets == 0


class TestAlone:
    """The role in a play of another project, with another folder and another ansible.cfg."""

    @pytest.mark.core("the plays that change nodes and restore them")
    def test_it_enters_a_mode_and_restores_it(self, machine: Callable[..., Machine]) -> None:
        kit, emulator = machine()
        run = planned(kit)
        given = {"node_mode_run": f"{run}", "node_mode_name": "hemisphere-flat"}
        login = {"node_mode_bmc_user": USER, "node_mode_bmc_password": PASSWORD}
        phi = emulator.machines[NODE]
        checked = play_alone(kit, "node_mode", {**given, **login})
        assert (checked.code, phi.resets) == (2, 0), checked.output
        assert checked.printed("OTHER_MODE: 1 node (localhost)"), checked.output
        shown = play_alone(
            kit, "node_mode", {**given, **login, "node_mode_confirm": True}, "--check"
        )
        assert (shown.code, phi.resets) == (0, 0), shown.output
        entered = play_alone(kit, "node_mode", {**given, **login, "node_mode_confirm": True})
        assert (entered.code, phi.resets) == (0, 1), entered.output
        assert phi.current["ClusterMode"] == "Hemisphere"
        assert PASSWORD not in checked.output + shown.output + entered.output

    def test_a_wrong_use_is_refused_by_its_name(self, machine: Callable[..., Machine]) -> None:
        """A wrong strategy is refused alike by each role: tests/roles/test_scratch.py."""
        kit, _ = machine()
        planned(kit)
        played = play_alone(kit, "node_mode", {})
        assert played.code == 2
        assert played.printed("node_mode_run: found nothing; accepted: the folder of a run")
