"""Two controllers with a state of their own: a node belongs to one of them until its restore."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc import node
from tests.emulators.bmc.rollouts import EmulatedSite, FileSlurm, path_with
from tests.emulators.bmc.server import Emulator

from proofmark.machine.modes.drains import Drains, ModeResult
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
def make_site(tmp_path: Path) -> Iterator[MakeSite]:
    """Return a function that starts emulated machines."""
    with ExitStack() as stack:

        def make(count: int = 1, **settings: Any) -> EmulatedSite:
            names = [f"n{number}" for number in range(1, count + 1)]
            emulator = stack.enter_context(Emulator(names, tmp_path, **settings))
            (tmp_path / "run").mkdir()
            return EmulatedSite(emulator, FileSlurm(tmp_path / "bin"), tmp_path / "run")

        yield make


def outcomes(results: dict[str, ModeResult]) -> dict[str, str]:
    return {name: str(result.outcome) for name, result in results.items()}


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
def test_the_name_is_on_the_node_until_the_restore(make_site: MakeSite, scheduler: str) -> None:
    """Control: no fault is injected."""
    site = make_site()
    rollout = site.rollout(scheduler=scheduler)
    assert outcomes(rollout.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK"}
    (path,) = marks(site)
    name, since = path.read_text().splitlines()
    assert name == rollout.locks.mark and name.startswith("proofmark:test on head, run folder /")
    assert since.startswith("20")
    assert outcomes(rollout.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}
    assert path.read_text() == f"{name}\n{since}\n"
    assert outcomes(rollout.restore()) == {"n1": "OK"}
    assert marks(site) == []


@pytest.mark.core("one claim")
@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("mode", ["snc2-flat", "snc4-flat", "quadrant-flat"])
def test_the_second_controller_is_refused_until_the_first_restores(
    make_site: MakeSite, scheduler: str, mode: str
) -> None:
    """The story of two acceptances; also of a mode for which B would reset nothing."""
    site = make_site(2)
    a, b = two(site, scheduler)
    assert outcomes(a.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK", "n2": "OK"}
    assert site.slurm.drained == {}, "the nodes are in service"
    done = b.enter(site.nodes, site.target(mode))
    assert outcomes(done) == {"n1": "HELD", "n2": "HELD"}
    for words in ("proofmark:test on ctl-a", " since 20", "take_over=true"):
        assert words in done["n1"].text
    assert {machine.resets for machine in site.emulator.machines.values()} == {1}
    assert b.restore() == {}
    assert site.settings("n1") == ("SNC-4", "Flat")
    assert outcomes(a.restore()) == {"n1": "OK", "n2": "OK"}
    assert site.settings("n1") == BEFORE
    wanted = site.target(mode)
    assert outcomes(b.enter(site.nodes, wanted)) == {"n1": "OK", "n2": "OK"}
    assert outcomes(b.restore()) == {"n1": "OK", "n2": "OK"}
    assert site.settings("n1") == site.settings("n2") == BEFORE
    assert marks(site, "n1") == marks(site, "n2") == []


@pytest.mark.fault("node-of-another-controller")
def test_a_node_that_needs_no_reset_is_held_too(make_site: MakeSite) -> None:
    site = make_site()
    a, b = two(site)
    assert outcomes(a.enter(site.nodes, site.target("quadrant-flat"))) == {"n1": "OK"}
    assert site.emulator.machines["n1"].resets == 0
    assert outcomes(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "HELD"}
    assert outcomes(a.restore()) == {"n1": "OK"}
    assert outcomes(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}


@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_node_that_cannot_be_named_is_refused(make_site: MakeSite, scheduler: str) -> None:
    site = make_site()
    folder = site.run.parent / "nodes/n1/var/lib"
    folder.mkdir(parents=True)
    (folder / "proofmark").touch()  # a file, where the folder should be
    rollout = site.rollout(scheduler=scheduler)
    done = rollout.enter(site.nodes, site.target("snc4-flat"))
    assert outcomes(done) == {"n1": "UNEXPECTED"}
    assert "cannot be written; accepted: root on the node" in done["n1"].text
    assert site.emulator.machines["n1"].resets == 0 and site.slurm.drained == {}
    assert not (rollout.run / "journal").exists()
    (folder / "proofmark").unlink()
    assert rollout.restore() == {}
    assert not rollout.locks.holds("n1")


@pytest.mark.fault("mode-of-another-controller")
def test_a_restore_refuses_a_mode_that_somebody_else_has_set(make_site: MakeSite) -> None:
    """A node without a disk has lost the name, so B could change it meanwhile."""
    site = make_site()
    a, b = two(site)
    a.enter(site.nodes, site.target("snc4-flat"))
    for path in marks(site):
        path.unlink()
    assert outcomes(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}
    assert outcomes(a.restore()) == {"n1": "HELD"}, "B holds the node"
    for path in marks(site):
        path.unlink()
    done = a.restore()
    assert outcomes(done) == {"n1": "CHANGED"}
    assert "found ClusterMode=SNC-2; the run had set ClusterMode=SNC-4" in done["n1"].text
    assert "restore it there first" in done["n1"].text
    assert site.settings("n1") == ("SNC-2", "Flat") and site.emulator.machines["n1"].resets == 2
    again = a.enter(site.nodes, site.target("quadrant-cache"))
    assert outcomes(again) == {"n1": "CHANGED"}, "also before the next mode"
    # As the message says: first B, then A.
    assert outcomes(b.restore()) == {"n1": "OK"}
    assert site.settings("n1") == ("SNC-4", "Flat")
    assert outcomes(a.restore()) == {"n1": "OK"}
    assert site.settings("n1") == BEFORE


@pytest.mark.fault("mode-of-another-controller")
def test_a_person_who_changed_the_mode_is_overruled_by_the_option(make_site: MakeSite) -> None:
    site = make_site()
    rollout = site.rollout()
    rollout.enter(site.nodes, site.target("snc4-flat"))
    machine = site.emulator.machines["n1"]
    machine.current["ClusterMode"] = "SNC-2"
    node.boot(machine.folder, machine.current, machine.shape, machine.serial)
    assert outcomes(rollout.restore()) == {"n1": "CHANGED"}
    assert machine.resets == 1
    assert outcomes(taking(rollout).restore()) == {"n1": "OK"}
    assert site.settings("n1") == BEFORE and marks(site) == []


def test_a_mode_that_was_set_back_is_accepted(make_site: MakeSite) -> None:
    """Control: the node is in the mode in which the run found it."""
    site = make_site()
    rollout = site.rollout()
    rollout.enter(site.nodes, site.target("snc4-flat"))
    machine = site.emulator.machines["n1"]
    machine.current["ClusterMode"] = "Quadrant"
    node.boot(machine.folder, machine.current, machine.shape, machine.serial)
    assert outcomes(rollout.restore()) == {"n1": "OK"}
    assert machine.resets == 1 and site.settings("n1") == BEFORE and marks(site) == []


@pytest.mark.fault("node-of-another-controller")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_nodes_of_a_lost_controller_can_be_taken_over(
    make_site: MakeSite, scheduler: str
) -> None:
    site = make_site()
    a, b = two(site, scheduler)
    a.enter(site.nodes, site.target("snc4-flat"))
    assert outcomes(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "HELD"}
    assert outcomes(taking(b).enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}
    assert any("n1: taken over from proofmark:test on ctl-a" in line for line in site.lines)
    held = a.restore()
    assert outcomes(held) == {"n1": "HELD"} and "on ctl-b" in held["n1"].text
    assert outcomes(b.restore()) == {"n1": "OK"}, "the option is needed once"
    assert site.settings("n1") == ("SNC-4", "Flat") and marks(site) == []
    assert outcomes(a.restore()) == {"n1": "OK"}
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
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    site = make_site()
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
        assert outcomes(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "HELD"}
    assert a.restore() == {}
    assert not a.locks.holds("n1") and marks(site) == []
    assert outcomes(b.enter(site.nodes, site.target("snc2-flat"))) == {"n1": "OK"}


def test_a_restore_of_a_node_that_cannot_be_reached_keeps_its_claim(make_site: MakeSite) -> None:
    """The run has claimed the node and not changed it."""
    site = make_site()
    a, _ = two(site)
    a.claim("n1")
    down = site.emulator.machines["n1"].folder / "down"
    down.touch()
    assert outcomes(a.restore()) == {"n1": "UNREACHABLE"}
    assert a.locks.holds("n1")
    down.unlink()
    assert a.restore() == {}
    assert marks(site) == [] and not a.locks.holds("n1")


def test_two_controllers_that_claim_at_once_get_each_node_once(make_site: MakeSite) -> None:
    site = make_site()
    names = [f"ctl-{number}" for number in range(6)]
    rollouts = [site.rollout(scheduler="none", controller=name) for name in names]
    results: list[str] = []
    barrier = threading.Barrier(len(names))

    def enter(rollout: ModeRollout) -> None:
        barrier.wait()
        results.extend(outcomes(rollout.enter(site.nodes, site.target("snc4-flat"))).values())

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
