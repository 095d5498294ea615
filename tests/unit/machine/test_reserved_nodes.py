"""Nodes in a reservation of others are not changed: modes, scratch, and the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from tests.emulators.bmc.rollouts import EmulatedSite, FileSlurm, path_with
from tests.emulators.bmc.server import Emulator

from proofmark.machine.outcome import Outcome
from proofmark.machine.scheduler import kept_for_others
from proofmark.machine.schedulers import slurm
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.machine.schedulers.slurm import Slurm
from proofmark.packages.service.gates import NodeGate, begin_gate


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedSite]:
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    monkeypatch.setattr(slurm, "folded", ",".join)
    with Emulator(["n1", "n2"], tmp_path) as emulator:
        (tmp_path / "run").mkdir()
        yield EmulatedSite(emulator, FileSlurm(tmp_path / "bin"), tmp_path / "run")


def outcomes(site: EmulatedSite, reservation: str = "") -> dict[str, str]:
    rollout = site.rollout(max_failures=1, reservation=reservation)
    done = rollout.enter(site.nodes, site.target("snc4-flat"))
    return {node: f"{result.outcome}: {result.text}" for node, result in done.items()}


def untouched(site: EmulatedSite, node: str) -> bool:
    """Return whether nobody has drained or reset a node."""
    return node not in site.slurm.drained and not site.emulator.machines[node].resets


@pytest.mark.fault("node-reserved-by-others")
def test_a_node_in_maintenance_of_others_is_not_changed(site: EmulatedSite) -> None:
    site.slurm.reserve("service", "n2")
    done = outcomes(site)
    assert done["n2"] == "HELD: in the reservation service of another person"
    assert done["n1"].startswith("OK")
    assert untouched(site, "n2")


def test_the_reservation_of_the_site_is_no_obstacle(site: EmulatedSite) -> None:
    site.slurm.reserve("acceptance", "n2")
    done = outcomes(site, reservation="acceptance")
    assert done["n2"].startswith("OK")
    assert site.emulator.machines["n2"].resets == 1
    assert site.slurm.drained == {}


@pytest.mark.fault("node-reserved-by-others")
def test_a_second_reservation_beside_that_of_the_site_is_respected(site: EmulatedSite) -> None:
    site.slurm.reserve("acceptance", "n2")
    site.slurm.reserve("service", "n2")
    done = outcomes(site, reservation="acceptance")
    assert done["n2"] == "HELD: in the reservation service of another person"
    assert untouched(site, "n2")


@pytest.mark.fault("node-reserved-by-others")
def test_a_node_that_others_reserve_after_its_change_is_not_restored(site: EmulatedSite) -> None:
    assert outcomes(site)["n2"].startswith("OK")
    site.slurm.reserve("service", "n2")
    done = site.rollout().restore()
    assert (done["n1"].outcome, done["n2"].outcome) == (Outcome.OK, Outcome.HELD)
    assert site.emulator.machines["n2"].resets == 1
    (site.slurm.folder / "slurm.reservations").unlink()
    site.slurm.flag("n2", "")
    assert site.rollout().restore()["n2"].outcome is Outcome.OK


@pytest.mark.fault("slurm-node-state-unknown")
@pytest.mark.parametrize("flag", ["maintenance", "powered_down", "not_responding", "sleepy"])
def test_a_node_that_is_not_in_service_is_not_changed(site: EmulatedSite, flag: str) -> None:
    site.slurm.flag("n2", f"+{flag}")
    done = outcomes(site)
    assert done["n2"].startswith("HELD: not in service: state ")
    assert flag in done["n2"]
    assert untouched(site, "n2")


def test_reservations_that_cannot_be_read_keep_all_nodes(site: EmulatedSite) -> None:
    (site.slurm.folder / "scontrol").write_text("#!/bin/sh\necho 'no answer' >&2; exit 1\n")
    done = outcomes(site)
    assert [*done] == site.nodes
    assert all("no answer" in text for text in done.values())
    assert all(untouched(site, node) for node in site.nodes)


@pytest.mark.parametrize("flag", ["maintenance", "sleepy", "not_responding"])
@pytest.mark.parametrize("take_over", [True, False])
def test_the_gate_takes_over_drains_and_no_other_state(
    site: EmulatedSite, tmp_path: Path, flag: str, take_over: bool
) -> None:
    site.slurm.flag("n2", f"+{flag}")
    site.slurm.drain("n1", "")
    state = begin_gate("here", "knl", tmp_path / "runs", "root", "test", ["n1", "n2"])
    gate = NodeGate(state, Slurm(), lambda line: None, Event())
    free, refused = gate.check(["n1", "n2"], {}, take_over=take_over)
    assert set(free) == ({"n1"} if take_over else set())
    assert flag in refused["n2"].text


def test_without_a_scheduler_nobody_reserves_nodes() -> None:
    assert kept_for_others(NoScheduler(), ["n1"], "") == {}
