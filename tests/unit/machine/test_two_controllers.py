"""Two controllers with a state of their own: a node belongs to one of them until its restore."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.emulators.bmc import node
from tests.emulators.bmc.rollouts import (
    EmulatedSite,
    emulated_sites,
    outcomes_of,
    path_with,
)

from proofmark.machine.modes.drains import Drains
from proofmark.machine.modes.rollout import ModeRollout
from proofmark.machine.node_commands import HOLDER
from proofmark.machine.schedulers import slurm
from proofmark.runs.journal import Journal

BEFORE = ("Quadrant", "Flat")
MakeSite = Callable[..., EmulatedSite]
pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.rest("each pair of claims and resets of two controllers"),
]
SCHEDULERS = ["slurm", "none"]


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    monkeypatch.setattr(slurm, "folded", ",".join)


@pytest.fixture
def start_nodes(tmp_path: Path) -> Iterator[MakeSite]:
    """Return a function that starts emulated machines."""
    with emulated_sites(tmp_path) as started:
        yield lambda count=1, **settings: started([f"n{n + 1}" for n in range(count)], **settings)


def marks(site: EmulatedSite, name: str = "n1") -> list[Path]:
    return [*(site.run.parent / "nodes" / name / "var/lib/proofmark").glob(".*")]


def two(site: EmulatedSite, scheduler: str = "slurm") -> tuple[ModeRollout, ModeRollout]:
    """Return the rollouts of two controllers; their runs have the same id."""
    a = site.rollout(scheduler=scheduler, controller="ctl-a")
    return a, site.rollout(scheduler=scheduler, controller="ctl-b")


def taking(rollout: ModeRollout) -> ModeRollout:
    """Return the same rollout with the option ``--take-over``."""
    return replace(rollout, locks=replace(rollout.locks, take_over=True))


@pytest.mark.core("the control")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_name_is_on_the_node_until_the_restore(start_nodes: MakeSite, scheduler: str) -> None:
    """Control: no fault is injected."""
    site = start_nodes()
    rollout = site.rollout(scheduler=scheduler)
    assert outcomes_of(rollout.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK"}
    (path,) = marks(site)
    name, since = path.read_text().splitlines()
    assert name == rollout.locks.mark and name.startswith("proofmark:test on head, run folder /")
    assert since.startswith("20")
    assert outcomes_of(rollout.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}
    assert path.read_text() == f"{name}\n{since}\n"
    assert outcomes_of(rollout.restore()) == {"n1": "OK"}
    assert marks(site) == []


@pytest.mark.core("one claim")
@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("mode", ["snc2-flat", "snc4-flat", "quadrant-flat"])
def test_the_second_controller_is_refused_until_the_first_restores(
    start_nodes: MakeSite, scheduler: str, mode: str
) -> None:
    """The story of two acceptances; also of a mode for which B would reset nothing."""
    site = start_nodes(2)
    a, b = two(site, scheduler)
    assert outcomes_of(a.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK", "n2": "OK"}
    assert site.slurm.drained == {}, "the nodes are in service"
    done = b.enter(site.nodes, site.target(mode))
    assert outcomes_of(done) == {"n1": "HELD", "n2": "HELD"}
    for words in ("proofmark:test on ctl-a", " since 20", "take_over=true"):
        assert words in done["n1"].text
    assert {machine.resets for machine in site.emulator.machines.values()} == {1}
    assert b.restore() == {}
    assert site.settings("n1") == ("SNC-4", "Flat")
    assert outcomes_of(a.restore()) == {"n1": "OK", "n2": "OK"}
    assert site.settings("n1") == BEFORE
    wanted = site.target(mode)
    assert outcomes_of(b.enter(site.nodes, wanted)) == {"n1": "OK", "n2": "OK"}
    assert outcomes_of(b.restore()) == {"n1": "OK", "n2": "OK"}
    assert site.settings("n1") == site.settings("n2") == BEFORE
    assert marks(site, "n1") == marks(site, "n2") == []


@pytest.mark.fault("node-of-another-controller")
def test_a_node_that_needs_no_reset_is_held_too(start_nodes: MakeSite) -> None:
    site = start_nodes()
    a, b = two(site)
    assert outcomes_of(a.enter(site.nodes, site.target("quadrant-flat"))) == {"n1": "OK"}
    assert site.emulator.machines["n1"].resets == 0
    assert outcomes_of(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "HELD"}
    assert outcomes_of(a.restore()) == {"n1": "OK"}
    assert outcomes_of(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}


@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_node_that_cannot_be_named_is_refused(start_nodes: MakeSite, scheduler: str) -> None:
    site = start_nodes()
    folder = site.run.parent / "nodes/n1/var/lib"
    folder.mkdir(parents=True)
    (folder / "proofmark").touch()  # a file, where the folder should be
    rollout = site.rollout(scheduler=scheduler)
    done = rollout.enter(site.nodes, site.target("snc4-flat"))
    assert outcomes_of(done) == {"n1": "UNEXPECTED"}
    assert "cannot be written; accepted: root on the node" in done["n1"].text
    assert site.emulator.machines["n1"].resets == 0 and site.slurm.drained == {}
    assert not (rollout.run / "journal").exists()
    (folder / "proofmark").unlink()
    assert rollout.restore() == {}
    assert not rollout.locks.holds("n1")


@pytest.mark.fault("mode-of-another-controller")
def test_a_restore_refuses_a_mode_that_somebody_else_has_set(start_nodes: MakeSite) -> None:
    """A node without a disk has lost the name, so B could change it meanwhile."""
    site = start_nodes()
    a, b = two(site)
    a.enter(site.nodes, site.target("snc4-flat"))
    for path in marks(site):
        path.unlink()
    assert outcomes_of(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}
    assert outcomes_of(a.restore()) == {"n1": "HELD"}, "B holds the node"
    for path in marks(site):
        path.unlink()
    done = a.restore()
    assert outcomes_of(done) == {"n1": "CHANGED"}
    assert "found ClusterMode=SNC-2; the run had set ClusterMode=SNC-4" in done["n1"].text
    assert "restore it there first" in done["n1"].text
    assert site.settings("n1") == ("SNC-2", "Flat") and site.emulator.machines["n1"].resets == 2
    again = a.enter(site.nodes, site.target("quadrant-cache"))
    assert outcomes_of(again) == {"n1": "CHANGED"}, "also before the next mode"
    # As the message says: first B, then A.
    assert outcomes_of(b.restore()) == {"n1": "OK"}
    assert site.settings("n1") == ("SNC-4", "Flat")
    assert outcomes_of(a.restore()) == {"n1": "OK"}
    assert site.settings("n1") == BEFORE


@pytest.mark.fault("mode-of-another-controller")
def test_a_person_who_changed_the_mode_is_overruled_by_the_option(start_nodes: MakeSite) -> None:
    site = start_nodes()
    rollout = site.rollout()
    rollout.enter(site.nodes, site.target("snc4-flat"))
    machine = site.emulator.machines["n1"]
    machine.current["ClusterMode"] = "SNC-2"
    node.boot(machine.folder, machine.current, machine.shape, machine.serial)
    assert outcomes_of(rollout.restore()) == {"n1": "CHANGED"}
    assert machine.resets == 1
    assert outcomes_of(taking(rollout).restore()) == {"n1": "OK"}
    assert site.settings("n1") == BEFORE and marks(site) == []


def test_a_mode_that_was_set_back_is_accepted(start_nodes: MakeSite) -> None:
    """Control: the node is in the mode in which the run found it."""
    site = start_nodes()
    rollout = site.rollout()
    rollout.enter(site.nodes, site.target("snc4-flat"))
    machine = site.emulator.machines["n1"]
    machine.current["ClusterMode"] = "Quadrant"
    node.boot(machine.folder, machine.current, machine.shape, machine.serial)
    assert outcomes_of(rollout.restore()) == {"n1": "OK"}
    assert machine.resets == 1 and site.settings("n1") == BEFORE and marks(site) == []


@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_nodes_of_a_lost_controller_can_be_taken_over(
    start_nodes: MakeSite, scheduler: str
) -> None:
    site = start_nodes()
    a, b = two(site, scheduler)
    a.enter(site.nodes, site.target("snc4-flat"))
    assert outcomes_of(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "HELD"}
    assert outcomes_of(taking(b).enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}
    assert any("n1: taken over from proofmark:test on ctl-a" in line for line in site.lines)
    held = a.restore()
    assert outcomes_of(held) == {"n1": "HELD"} and "on ctl-b" in held["n1"].text
    assert outcomes_of(b.restore()) == {"n1": "OK"}, "the option is needed once"
    assert site.settings("n1") == ("SNC-4", "Flat") and marks(site) == []
    assert outcomes_of(a.restore()) == {"n1": "OK"}
    assert site.settings("n1") == BEFORE


def killed(work: Callable[[], object]) -> bool:
    """Run `work` in a process of its own; return whether it was killed."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("moment", ["before the name", "after the name", "at the first line"])
def test_a_kill_around_the_claim_leaves_nothing_that_cannot_be_released(
    start_nodes: MakeSite, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    site = start_nodes()
    a, b = two(site)

    def enter() -> None:
        mark = Drains.mark

        def marked(self: Drains, verb: str, name: str) -> str:
            if verb != "claim" or moment == "at the first line":
                return mark(self, verb, name)
            if moment == "after the name":
                mark(self, verb, name)
            die()
            return ""

        monkeypatch.setattr(Drains, "mark", marked)
        monkeypatch.setattr(Journal, "intent", die)
        a.enter(site.nodes, site.target("snc4-flat"))

    assert killed(enter)
    assert a.locks.holds("n1")
    assert not [*(a.run / "journal").glob("*")]
    if moment != "before the name":
        assert outcomes_of(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "HELD"}
    assert a.restore() == {}
    assert not a.locks.holds("n1") and marks(site) == []
    assert outcomes_of(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}


def test_a_restore_of_a_node_that_cannot_be_reached_keeps_its_claim(start_nodes: MakeSite) -> None:
    """The run has claimed the node and not changed it."""
    site = start_nodes()
    a, _ = two(site)
    a.claim("n1")
    down = site.emulator.machines["n1"].folder / "down"
    down.touch()
    assert outcomes_of(a.restore()) == {"n1": "UNREACHABLE"}
    assert a.locks.holds("n1")
    down.unlink()
    assert a.restore() == {}
    assert marks(site) == [] and not a.locks.holds("n1")


def test_two_controllers_that_claim_at_once_get_each_node_once(start_nodes: MakeSite) -> None:
    site = start_nodes()
    names = [f"ctl-{number}" for number in range(6)]
    rollouts = [site.rollout(scheduler="none", controller=name) for name in names]
    results: list[str] = []
    barrier = threading.Barrier(len(names))

    def enter(rollout: ModeRollout) -> None:
        barrier.wait()
        results.extend(outcomes_of(rollout.enter(site.nodes, site.target("snc4-flat"))).values())

    threads = [threading.Thread(target=enter, args=(each,)) for each in rollouts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["HELD"] * 5 + ["OK"]
    assert site.emulator.machines["n1"].resets == 1


@pytest.mark.parametrize("content", ["link", "empty", "one line", "folder"])
def test_a_damaged_name_holds_the_node_until_it_is_taken_over(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "var/lib/proofmark"
    folder.mkdir(parents=True)
    path = folder / f".holder-{os.uname().nodename}"
    match content:
        case "link":
            path.symlink_to("/etc/hostname")
        case "folder":
            path.mkdir()
        case _:
            path.write_text("" if content == "empty" else "x")

    def holder(*arguments: str) -> str:
        command = ["sh", "-s", *arguments]
        environment = {**os.environ, "PROBE_ROOT": f"{tmp_path}"}
        done = subprocess.run(
            command, input=HOLDER, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert " since " in holder("look", "me", "now")
    assert " since " in holder("claim", "me", "now")
    assert " since " in holder("release", "me", "now")
    assert os.path.lexists(path)
    holder("release", "me", "now", "over")
    assert not os.path.lexists(path)
    for over in ([], ["over"]):  # a node that nobody holds; `over` failed there
        assert holder("claim", "me", "now", *over) == ""
        assert path.read_text() == "me\nnow\n"
        assert [each.name for each in folder.iterdir()] == [path.name]
        path.unlink()
