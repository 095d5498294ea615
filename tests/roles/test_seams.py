"""The seams between commands: what an acceptance lead calls in a row, on one virtual cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from tests.fixtures.kit import until, write_contract
from tests.folders import ROOT
from tests.forks import tools
from tests.processes import running
from tests.rehearsal.play import environment_of
from tests.rehearsal.room import Room
from tests.roles.kit import LONGEST_S, NAP, Kit, Played, make_kit
from tests.roles.test_rehearsal import finish

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.soak]

SITE = ("-i", "inventory/rehearsal")
MODES = {"quadrant-flat", "quadrant-cache"}
NAPS = {
    "quick": {"scope": "each-node"},
    "modes": {"scope": "each-node", "modes": sorted(MODES)},
    "slow": {"scope": "each-node", "sweep": {"number": 1, "seconds": 30}},
    "stability": {"sweep": {"number": 1, "seconds": 5, "nodes": [1, 2]}},
}
TITLES = {name: {"title": f"naps: {name}"} for name in NAPS}


@dataclass(frozen=True)
class Lead:
    """The person at the controller of a cluster whose nodes have their own scratch folders."""

    kit: Kit
    room: Room

    def play(self, playbook: str, nodes: str, *words: str) -> Played:
        return self.kit.play(playbook, *SITE, "-l", nodes, *words)

    def states(self) -> dict[str, str]:
        return self.room.slurm.states()

    def drain(self, *nodes: str) -> None:
        name = f"NodeName={','.join(nodes)}"
        self.room.slurm.call("scontrol", "update", name, "State=DRAIN", "Reason=a repair")


def called(kit: Kit, *words: str) -> tuple[int, str]:
    """Run a command of the kit; return its exit code and its output."""
    command = [f"{tools() / 'proofmark'}", *words]
    environment = {**os.environ, **kit.environment}
    done = subprocess.run(command, cwd=kit.folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def lead() -> Iterator[Lead]:
    with tempfile.TemporaryDirectory(prefix="proofmark-seams-") as top:
        kit = make_kit(Path(top))
        kit.scratch.mkdir()
        case = {**yaml.safe_load(NAP), "suites": NAPS}
        cases = kit.folder / "benchmarks"
        (cases / "nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
        (cases / "suites.yml").write_text(yaml.safe_dump({"suites": TITLES}))
        (cases / "stability.yml").write_text((ROOT / "benchmarks/stability.yml").read_text())
        of_site = Path("inventory/rehearsal")
        for name in ("hosts.yml", "group_vars/all.yml", "group_vars/knl/partition.yml"):
            (kit.folder / of_site / name).parent.mkdir(parents=True, exist_ok=True)
            (kit.folder / of_site / name).write_text((ROOT / of_site / name).read_text())
        facts = kit.folder / of_site / "group_vars/knl/partition.yml"
        stated = yaml.safe_load(facts.read_text())
        stated["partition"]["scratch"] = {"path": f"{kit.scratch}"}
        facts.write_text(yaml.safe_dump(stated, sort_keys=False))
        (Path(top) / "room").mkdir()
        with Room(Path(top) / "room", "knl", 3, shared=[kit.folder, kit.scratch]) as room:
            variables = environment_of(room)
            variables["PATH"] = f"{room.cluster.bin}:{os.environ['PATH']}"
            kit = replace(kit, environment={**variables, "PROOFMARK_KIT": f"{kit.folder}"})
            yield Lead(kit, room)


def test_a_stopped_acceptance_is_restored_and_the_next_one_runs(lead: Lead) -> None:
    nodes = ",".join(lead.room.names)
    words = (*SITE, "-l", nodes, "-e", "suite=modes", "-e", "confirm_reboot=true")
    process = lead.kit.start("acceptance.yml", *words)
    begun = lead.kit.folder.glob
    until(
        lambda: process.poll() is not None or any(begun("runs/*/workdir/steps/*/*/*/started")),
        600,
        pause_s=0.3,
    )
    os.killpg(process.pid, signal.SIGINT)
    output = finish(process)
    assert process.returncode, output
    restored = lead.play("playbooks/restore.yml", nodes, "-e", "confirm_reboot=true")
    assert restored.code == 0, restored.output
    until(lambda: set(lead.states().values()) == {"idle"}, 300, pause_s=0.5)
    again = lead.kit.play("acceptance.yml", *words, "-e", "fresh=true")
    assert again.code == 0, again.output
    assert {each["mode"] for each in lead.kit.verdict()["results"]} == MODES
    assert set(lead.states().values()) == {"idle"}


def test_a_node_that_dies_is_named_and_a_gate_returns_the_good_one_of_two(lead: Lead) -> None:
    """The node that dies, and one whose scratch folder breaks, are drained for a repair."""
    good, broken = lead.room.names[1:]
    nodes = ",".join(lead.room.names)
    slow = ("-e", "suite=slow", "-e", "fresh=true")
    with running(lead.kit.start("acceptance.yml", *SITE, "-l", nodes, *slow)) as process:
        running_there = ("squeue", "--noheader", "--states=running", f"--nodelist={good}")
        until(lambda: process.poll() is not None or bool(lead.room.slurm.call(*running_there)), 600)
        lead.room.cluster.kill(good)
        output, _ = process.communicate(timeout=LONGEST_S)
    died = Played(process.returncode, output)
    assert died.code and good in died.failed_hosts, output
    lead.room.cluster.boot(good)
    until(lambda: lead.states().get(good, "").startswith(("idle", "down")), 300, pause_s=0.5)
    lead.drain(good, broken)
    lead.room.cluster.on(broken, "mount", "-t", "tmpfs", "-o", "ro", "none", f"{lead.kit.scratch}")
    gate = ("-e", "suite=quick", "-e", "take_over=true")
    played = lead.play("playbooks/gate.yml", f"{good},{broken}", *gate)
    assert played.code and played.failed_hosts == {broken}, played.output
    assert played.printed("scratch: "), played.output
    assert lead.states() == {lead.room.names[0]: "idle", good: "idle", broken: "drain"}
    lead.room.cluster.on(broken, "umount", f"{lead.kit.scratch}")
    repaired = lead.play("playbooks/gate.yml", broken, *gate)
    assert repaired.code == 0, repaired.output
    assert set(lead.states().values()) == {"idle"}


def test_a_rolling_run_takes_a_node_after_its_return(lead: Lead) -> None:
    first, second, _ = lead.room.names
    rolling = ("-e", "suite=quick", "-e", "rolling=true")
    lead.drain(second)
    begun = lead.play("acceptance.yml", f"{first},{second}", *rolling)
    assert (begun.code, second in begun.failed_hosts) == (2, False), begun.output
    run = lead.kit.run()
    states = {each["node"]: each["standing"] for each in lead.kit.verdict()["rolling"]["nodes"]}
    assert states == {first: "accepted", second: "waiting"}
    gate = ("-e", "suite=quick", "-e", "take_over=true")
    returned = lead.play("playbooks/gate.yml", second, *gate)
    assert returned.code == 0, returned.output
    joined = lead.play("acceptance.yml", f"{first},{second}", *rolling)
    assert (joined.code, lead.kit.run()) == (0, run), joined.output
    nodes = lead.kit.verdict()["rolling"]["nodes"]
    assert {each["standing"] for each in nodes} == {"accepted"}


def test_minutes_of_stability_follow_on_the_same_nodes(lead: Lead) -> None:
    nodes = ",".join(lead.room.names)
    days = ("-e", "suite=stability", "-e", "stability_days=1min")
    played = lead.play("acceptance.yml", nodes, *days)
    counted = {
        each["metric"]: each["value"]
        for each in lead.kit.verdict()["results"]
        if each["case"] == "stability"
    }
    assert played.printed("UNJUDGED: nothing was judged"), played.output
    assert counted["jobs_started"] >= 1 and counted["interrupts"] == 0, played.output
    assert set(lead.states().values()) == {"idle"}


PROGRAM = 'sleep {seconds}; echo nap {number}; echo "rate: $(cat %s)"; echo done'
KEYS = {"buyer": "ida@buyer", "supplier": "joe@supplier"}


class Parties:
    """A site of this machine whose contract two parties sign; a file has the rate of its nap."""

    def __init__(self, kit: Kit) -> None:
        self.top = kit.folder.parent
        self.kit = replace(kit, environment={**kit.environment, "PROOFMARK_KIT": f"{kit.folder}"})
        self.rate = self.top / "rate"
        case = yaml.safe_load(NAP)
        case["arguments"] = ["-c", PROGRAM % self.rate]
        (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
        public = {}
        for role, name in KEYS.items():
            key = self.top / role
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", f"{key}"]
            subprocess.run(make, check=True)
            public[role] = [f"{name} {key.with_suffix('.pub').read_text().strip()}"]
        lines = [line for of_role in public.values() for line in of_role]
        self.signers = self.top / "signers"
        self.signers.write_text("\n".join(lines) + "\n")
        item = {"case": "nap", "metric": "rate", "value": 50, "unit": "MB/s", "at_least": 1}
        path = write_contract(kit.folder / "inventory/local", [{**item, "where": {"seconds": 0}}])
        path.write_text(path.read_text() + yaml.safe_dump({"signers": public}))

    def measure(self, rate: int) -> tuple[Played, Path]:
        self.rate.write_text(f"{rate}\n")
        words = ("-e", "suite=quick", "-e", "repeats=3", "-e", "fresh=true")
        return self.kit.play("acceptance.yml", *words), self.kit.run()

    def call(self, *words: object) -> tuple[int, str]:
        return called(self.kit, *map(str, words))

    def done(self, *words: object) -> str:
        """Call a command that must end with 0; return its output."""
        code, printed = self.call(*words)
        assert code == 0, printed
        return printed

    def signed_by_both(self, *command: object, folder: Path) -> None:
        """Let both parties sign `folder` by `command`; the statement names them."""
        self.done(*command, "--key", self.top / "buyer")
        newest = max(folder.glob("signed/0*"))
        self.done("sign", newest, "--key", self.top / "supplier")
        printed = self.done("verify", newest, "--signers", self.signers)
        assert all(name in printed for name in KEYS.values()), printed
        assert "not signed by" not in printed


def test_two_parties_sign_and_a_later_run_is_compared_with_what_they_accepted(kit: Kit) -> None:
    site = Parties(kit)
    played, first = site.measure(100)
    assert played.code == 0, played.output
    site.signed_by_both("sign", first, folder=first)
    site.done("baseline", "accept", first, "--signers", site.signers)
    here = ("-i", "inventory/local")
    runs = kit.folder / "runs"
    page = runs / "acceptance-local"
    assert "PASS: 1 of 1 items met" in site.done("acceptance", "judge", *here)
    site.signed_by_both("acceptance", "sign", *here, folder=page)

    slower, second = site.measure(90)
    assert slower.code and second != first, slower.output
    verdict = kit.verdict()
    assert {each["verdict"] for each in verdict["results"]} == {"FAIL"}, verdict["results"]

    healthy, third = site.measure(100)
    assert healthy.code == 0, healthy.output
    results = kit.verdict()["results"]
    assert {each["verdict"] for each in results} == {"PASS"}, results
    assert "acceptance-local" not in site.done("rerun", third, "1")
    assert "acceptance-local" in site.done("rerun", first, "1")
    site.done("report", third)
    site.signed_by_both("sign", third, folder=third)
    assert "PASS: 1 of 1 items met" in site.done("acceptance", "judge", *here)
    site.signed_by_both("acceptance", "sign", *here, folder=page)
    for folder in (third, page, *page.glob("signed/0*"), *first.glob("signed/0*")):
        site.done("verify", folder, "--signers", site.signers)
    told = site.done("verify", page, "--signers", site.signers)
    assert f"an earlier statement, signed by {', '.join(KEYS.values())}" in told, told


def test_outputs_of_a_vendor_stand_beside_a_measured_run(kit: Kit) -> None:
    """The adopted run is signed, verified and a baseline; it decides no item of the contract."""
    site = Parties(kit)
    played, measured = site.measure(100)
    assert played.code == 0, played.output
    here = ("-i", "inventory/local", "-l", "local")
    runs = kit.folder / "runs"

    def adopt(name: str, rate: int, *words: str) -> Path:
        outputs = site.top / name / "localhost"
        outputs.mkdir(parents=True)
        for repeat in range(3):
            for number in (1, 2):
                text = f"nap {number}\nrate: {rate + repeat}\ndone\n"
                (outputs / f"nap-{number}-run{repeat}.out").write_text(text)
        node = "/(?P<node>localhost)/"
        words = ("--case", "nap=*.out", "--node", node, "--run-id", name, *words, *here)
        told = site.done("adopt", outputs.parent, *words)
        assert (runs / "adopted-local").resolve() == runs / name, told
        site.done("report", runs / name)
        return runs / name

    adopted = adopt("of-vendor", 100)
    assert (runs / "latest-local").resolve() == measured
    site.signed_by_both("sign", adopted, folder=adopted)
    accepted = ("--signers", site.signers, "--label", "vendor", "--reason", "as delivered")
    site.done("baseline", "accept", adopted, *accepted, "--name", "vendor", *here)
    assert "vendor" in site.done("baseline", "show", adopted, *here)

    judged = site.done("acceptance", "judge", "-i", "inventory/local")
    assert "PASS: 1 of 1 items met" in judged and measured.name in judged, judged
    slower = adopt("delivered-later", 50, "--baseline", "vendor")
    results = json.loads((slower / "verdict.json").read_text())["results"]
    limits = [limit for each in results for limit in each["references"]]
    assert "FAIL" in {each["outcome"] for each in limits if each["kind"] == "baseline"}, limits
    for folder in (adopted, *adopted.glob("signed/0*")):
        site.done("verify", folder, "--signers", site.signers)
