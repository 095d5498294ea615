"""What an administrator changes on a node between its check and the end of its mode change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.emulators.bmc.rollouts import EmulatedSite, FileSlurm, path_with
from tests.emulators.bmc.server import Emulator

from proofmark.machine.modes.drains import ModeResult
from proofmark.machine.schedulers import slurm

Act = Callable[[EmulatedSite], object]
MakeSite = Callable[[Act], EmulatedSite]
PSU = "leaking PSU, do not power on"


@pytest.fixture
def make_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSite]:
    """Return a function that starts two emulated machines.

    Its argument is what the administrator does while the BMC of n1 resets n1.
    """
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    monkeypatch.setattr(slurm, "folded", ",".join)
    with ExitStack() as stack:

        def make(act: Act) -> EmulatedSite:
            def hook(event: str, node: str) -> None:
                if (event, node) == ("off", "n1"):
                    act(site)

            emulator = stack.enter_context(Emulator(["n1", "n2"], tmp_path, hook=hook))
            (tmp_path / "run").mkdir()
            site = EmulatedSite(emulator, FileSlurm(tmp_path / "bin"), tmp_path / "run")
            return site

        yield make


def outcomes(results: dict[str, ModeResult]) -> dict[str, str]:
    return {node: str(result.outcome) for node, result in results.items()}


def test_nothing_meanwhile(make_site: MakeSite) -> None:
    """Control: no fault is injected."""
    site = make_site(lambda site: None)
    done = site.rollout(batch_size=1).enter(site.nodes, site.target("snc4-flat"))
    assert outcomes(done) == {"n1": "OK", "n2": "OK"}
    assert site.slurm.drained == {}
    assert {site.settings(node) for node in site.nodes} == {("SNC-4", "Flat")}


@pytest.mark.fault("drained-by-admin-meanwhile")
def test_a_node_that_an_admin_drains_during_its_change_is_not_resumed(make_site: MakeSite) -> None:
    site = make_site(lambda site: site.slurm.drain("n1", PSU))
    site.rollout(batch_size=2).enter(site.nodes, site.target("snc4-flat"))
    assert site.slurm.drained == {"n1": PSU}
    assert not any("n1" in call and "RESUME" in call for call in site.slurm.calls)


@pytest.mark.fault("drained-by-admin-meanwhile")
def test_a_node_that_an_admin_drains_during_the_restore_is_not_resumed(
    make_site: MakeSite,
) -> None:
    resets: list[str] = []

    def act(site: EmulatedSite) -> None:
        resets.append("n1")
        if len(resets) == 2:  # the first one is that of the mode change
            site.slurm.drain("n1", PSU)

    site = make_site(act)
    rollout = site.rollout()
    assert outcomes(rollout.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK", "n2": "OK"}
    rollout.restore()
    assert site.slurm.drained == {"n1": PSU}
    assert {site.settings(node) for node in site.nodes} == {("Quadrant", "Flat")}


@pytest.mark.fault("pending-meanwhile")
@pytest.mark.parametrize("name", ["Turbo", "MemoryMode"])
def test_a_setting_of_another_client_after_the_check_is_not_overwritten(
    make_site: MakeSite, name: str
) -> None:
    """All nodes are checked before the first change; n2 is changed after n1."""
    foreign = {"Turbo": "Disabled", "MemoryMode": "Cache"}[name]

    def act(site: EmulatedSite) -> None:
        site.emulator.machines["n2"].pending[name] = foreign

    site = make_site(act)
    done = site.rollout(batch_size=1).enter(site.nodes, site.target("snc4-flat"))
    assert outcomes(done) == {"n1": "OK", "n2": "FOREIGN_PENDING"}
    assert f"{name}={foreign}" in done["n2"].text
    other = site.emulator.machines["n2"]
    assert other.pending == {name: foreign}
    assert (other.patches, other.resets) == (0, 0)
    assert site.settings("n2") == ("Quadrant", "Flat")


@pytest.mark.parametrize(
    ("mode", "outcome"), [("quadrant-flat", "OK"), ("snc4-flat", "CANNOT_SET")]
)
def test_a_person_sets_the_mode_and_the_node_proves_it(
    make_site: MakeSite, mode: str, outcome: str
) -> None:
    site = make_site(lambda site: None)
    done = site.rollout(back_end="manual", max_failures=2).enter(site.nodes, site.target(mode))
    assert outcomes(done) == dict.fromkeys(site.nodes, outcome)
    assert not any(machine.resets for machine in site.emulator.machines.values())
