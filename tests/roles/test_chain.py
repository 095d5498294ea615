"""The chain of commands of an acceptance lead, in one checkout: from a rehearsal to verified pages.

Other processes of the machine may disturb a measurement. Then its INVALID is accepted where the
chain does not need the figure, and measured again where it does; no other word is.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import until
from tests.folders import ROOT
from tests.roles.kit import LONGEST_S, NAP, SUITES, Kit, Played
from tests.roles.test_rehearsal import MODES, finish, interfaces, left_behind, start
from tests.roles.test_seams import Parties

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.soak]

NODES = "rknl0001", "rknl0002", "rknl0003"
NAPS = {
    "quick": {"scope": "each-node"},
    "rehearsal": {"modes": MODES, "scope": "each-node"},
    "rehearsal-short": {"scope": "each-node", "sweep": {"seconds": 15}},
    "stability": {"sweep": {"number": 1, "seconds": 5, "nodes": [1, 2]}},
}
TRIES = 3
"""How often a disturbed measurement is made."""
CHANGED = ("PASS", "UNJUDGED")
"""The verdicts of a figure that no limit refused."""


@dataclass(frozen=True)
class Kept:
    """The shell of root beside a virtual cluster that stays."""

    kit: Kit
    enter: str

    def call(self, command: str) -> Played:
        call = ["sh", "-c", f"{self.enter}; exec {command}"]
        environment = {**os.environ, "COLUMNS": "200"}
        done = subprocess.run(
            call, env=environment, capture_output=True, text=True, timeout=LONGEST_S
        )
        return Played(done.returncode, done.stdout + done.stderr)

    def play(self, playbook: str, nodes: Sequence[str], *words: str) -> Played:
        site = f"-i inventory/rehearsal -l {','.join(nodes)}"
        return self.call(f"ansible-playbook {playbook} {site} {' '.join(words)}")

    def states(self) -> dict[str, str]:
        """Return the state of each node that the cluster has."""
        lines = self.call("sinfo --noheader --Node --format='%N %t'").output.splitlines()
        states = dict(line.split() for line in lines)
        return {node: states[node] for node in NODES}

    def drain(self, node: str) -> None:
        update = f"scontrol update nodename={node} state=drain reason=repair"
        assert self.call(update).code == 0

    def idle(self) -> None:
        until(lambda: set(self.states().values()) == {"idle"}, 300, pause_s=0.5)


def stopped(process: subprocess.Popen[str], kit: Kit, known: set[Path]) -> str:
    """Let Ctrl-C end `process` while a step of a run that is not `known` runs; return its lines."""
    running = kit.folder.glob

    def begun() -> bool:
        new = set(running("runs/*/workdir/steps/*/*/*/started")) - known
        return bool(new) or process.poll() is not None

    until(begun, LONGEST_S, pause_s=0.3)
    os.killpg(process.pid, signal.SIGINT)
    return finish(process)


def started(kit: Kit) -> set[Path]:
    return set(kit.folder.glob("runs/*/workdir/steps/*/*/*/started"))


def disturbed(verdict: dict[str, Any]) -> bool:
    """Return whether other processes made a figure INVALID; no other cause is accepted."""
    invalid = [each for each in verdict["results"] if each["verdict"] == "INVALID"]
    causes = {reason["code"] for each in invalid for reason in each["reasons"]}
    assert not causes or causes & {"disturbed", "disturbed-node", "rate-changed"}, invalid
    return bool(invalid)


def accepted(played: Played, kit: Kit) -> None:
    """Assert that a play ended well, or that only a disturbance kept it from it."""
    verdict = kit.verdict()
    assert (played.code == 0) != disturbed(verdict), played.output
    words = {each["verdict"] for each in verdict["results"]}
    assert words <= {*CHANGED, "INVALID"}, words


@pytest.fixture
def rehearsal(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    """Yield a kit with the site of the rehearsal, and end the cluster that the test kept."""
    monkeypatch.setenv("PROOFMARK_REHEARSAL_KEPT", f"{tmp_path}/kept.json")
    site = kit.folder / "inventory/rehearsal"
    for path in (ROOT / "inventory/rehearsal").rglob("*.yml"):
        if path.name != "contract.yml":  # of cases that this kit lacks
            copy = site / path.relative_to(ROOT / "inventory/rehearsal")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    cases = kit.folder / "benchmarks"
    (cases / "nap.yml").write_text(yaml.safe_dump({**yaml.safe_load(NAP), "suites": NAPS}))
    titles = {name: {"title": f"naps: {name}"} for name in NAPS}
    (cases / "suites.yml").write_text(yaml.safe_dump({"suites": titles}))
    (cases / "stability.yml").write_text((ROOT / "benchmarks/stability.yml").read_text())
    links = interfaces()
    try:
        yield kit
    finally:
        finish(start(kit, "--end"))
    assert left_behind(kit.folder.parent) == []
    assert interfaces() == links


def test_an_acceptance_lead_goes_from_a_rehearsal_to_verified_pages(
    rehearsal: Kit, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()

    def link(name: str) -> None:
        """State when this link of the chain began, s."""
        seconds = round(time.monotonic() - began)
        record_property(name, seconds)
        print(f"{seconds:4d} s  {name}", flush=True)

    kit = rehearsal
    link("rehearsal, ended by Ctrl-C")
    first = start(kit, "--nodes=3")
    told = stopped(first, kit, started(kit))
    assert first.returncode == 130, told
    assert left_behind(kit.folder.parent) == []

    link("a second rehearsal, whose cluster stays")
    second = start(kit, "--nodes=3", "--keep")
    told = finish(second)
    entered = re.search(r"(\. \S*/enter)", told)
    assert entered, told
    accepted(Played(second.returncode, told), kit)
    assert {each["mode"] for each in kit.verdict()["results"]} == set(MODES)
    cluster = Kept(kit, entered[1])
    cluster.idle()

    link("Ctrl-C in the kept cluster, restore, again")
    modes = ("-e suite=rehearsal", "-e confirm_reboot=true", "-e fresh=true")
    site = ("-i", "inventory/rehearsal", "-l", ",".join(NODES))
    words = " ".join(("exec ansible-playbook acceptance.yml", *site, *modes))
    known = started(kit)
    process = subprocess.Popen(
        ["sh", "-c", f"{cluster.enter}; {words}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    told = stopped(process, kit, known)
    assert process.returncode, told
    restored = cluster.play("playbooks/restore.yml", NODES, "-e confirm_reboot=true")
    assert restored.code == 0, restored.output
    cluster.idle()
    accepted(cluster.play("acceptance.yml", NODES, *modes), kit)

    link("a second cluster beside the kept one, and a fault with jobs")
    refused = start(kit, "--nodes=3", "--keep")
    assert "a virtual cluster is kept: make rehearsal-end" in finish(refused)
    assert refused.returncode == 3
    faulty = start(kit, "--nodes=3", "--one-mode", "--suite=rehearsal-short", "--fault=node-dies")
    told = finish(faulty)
    assert f"fatal: [{NODES[1]}]: FAILED!" in told, told
    assert faulty.returncode, told
    cluster.idle()

    link("gate")
    quick = ("-e suite=quick",)
    cluster.drain(NODES[2])
    gate = (*quick, "-e take_over=true", "-e gate_accept_unjudged=true")
    for _ in range(TRIES):
        gated = cluster.play("playbooks/gate.yml", [NODES[2]], *gate)
        if gated.code == 0:
            break
        assert gated.printed("disturbed"), gated.output
    assert gated.code == 0, gated.output
    cluster.idle()

    link("rolling, with a node that joins")
    cluster.drain(NODES[1])
    rolling = (*quick, "-e rolling=true", "-e accept_unjudged=true")
    begun = cluster.play("acceptance.yml", NODES[:2], *rolling)
    assert begun.code == 2, begun.output
    run = kit.run()
    standings = {each["node"]: each["standing"] for each in kit.verdict()["rolling"]["nodes"]}
    assert standings[NODES[1]] == "waiting", standings
    assert cluster.call(f"scontrol update nodename={NODES[1]} state=resume").code == 0
    cluster.idle()
    joined = cluster.play("acceptance.yml", NODES[:2], *rolling)
    assert kit.run() == run, joined.output
    standings = {each["node"]: each["standing"] for each in kit.verdict()["rolling"]["nodes"]}
    assert "waiting" not in standings.values() or disturbed(kit.verdict()), joined.output

    link("a minute of stability")
    stable = cluster.play("acceptance.yml", NODES, "-e suite=stability", "-e stability_days=1min")
    counted = {
        each["metric"]: each["value"]
        for each in kit.verdict()["results"]
        if each["case"] == "stability"
    }
    assert counted["jobs_started"] >= 1 and counted["interrupts"] == 0, stable.output
    cluster.idle()
    ended = start(kit, "--end")
    assert finish(ended).endswith(" is removed")
    assert ended.returncode == 0

    accept_this_machine(kit, link)
    link("end")


def accept_this_machine(kit: Kit, link: Callable[[str], None]) -> None:
    """Adopt, sign by two, accept as baseline, find -10 %, rerun, sign again, verify all."""
    cases = kit.folder / "benchmarks"
    (cases / "stability.yml").unlink()
    (cases / "suites.yml").write_text(SUITES)
    site = Parties(kit)
    kit = site.kit

    def undisturbed(rate: int) -> tuple[Played, Path]:
        for _ in range(TRIES):
            measured = site.measure(rate)
            if not disturbed(kit.verdict()):
                break
        return measured

    link("adopt")
    here = ("-i", "inventory/local")
    runs, page = kit.folder / "runs", kit.folder / "runs/acceptance-local"
    played, measured = undisturbed(100)
    assert played.code == 0, played.output
    outputs = site.top / "vendor/localhost"
    outputs.mkdir(parents=True)
    for number in (1, 2):
        text = f"nap {number}\nrate: 100\ndone\n"
        (outputs / f"nap-{number}-run0.out").write_text(text)
    how = ("--case", "nap=*.out", "--node", "/(?P<node>localhost)/", "--run-id", "vendor")
    site.done("adopt", outputs.parent, *how, *here, "-l", "local")
    adopted = runs / "vendor"
    site.done("report", adopted)

    link("sign by two")
    for folder in (adopted, measured):
        site.signed_by_both("sign", folder, folder=folder)
    site.done("baseline", "accept", measured, "--signers", site.signers)
    assert "PASS: 1 of 1 items met" in site.done("acceptance", "judge", *here)
    site.signed_by_both("acceptance", "sign", *here, folder=page)

    link("-10 %")
    slower, _ = undisturbed(90)
    assert slower.code, slower.output
    assert {each["verdict"] for each in kit.verdict()["results"]} == {"FAIL"}

    link("rerun and sign again")
    healthy, third = undisturbed(100)
    assert healthy.code == 0, healthy.output
    assert {each["verdict"] for each in kit.verdict()["results"]} == {"PASS"}
    assert "acceptance-local" not in site.done("rerun", third, "1")
    assert "acceptance-local" in site.done("rerun", measured, "1")
    site.done("report", third)
    site.signed_by_both("sign", third, folder=third)
    assert "PASS: 1 of 1 items met" in site.done("acceptance", "judge", *here)
    site.signed_by_both("acceptance", "sign", *here, folder=page)

    link("verify all")
    folders = (page, third, adopted, *page.glob("signed/0*"), *measured.glob("signed/0*"))
    for folder in folders:
        site.done("verify", folder, "--signers", site.signers)
