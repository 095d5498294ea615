"""What an administrator changes on a node between its check and the end of its mode change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.emulators.bmc.rollouts import (
    EmulatedSite,
    emulated_sites,
    outcomes_of,
)

Act = Callable[[EmulatedSite], object]
MakeSite = Callable[[Act], EmulatedSite]
PSU = "leaking PSU, do not power on"


@pytest.fixture
def site_with_act(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSite]:
    """Return a function that starts two emulated machines.

    Its argument is what the administrator does while the BMC of n1 resets n1.
    """
    with emulated_sites(tmp_path, monkeypatch) as started:

        def make(act: Act) -> EmulatedSite:
            def hook(event: str, node: str) -> None:
                if (event, node) == ("off", "n1"):
                    act(site)

            site = started(["n1", "n2"], hook=hook)
            return site

        yield make


def test_nothing_meanwhile(site_with_act: MakeSite) -> None:
    """Control: no fault is injected."""
    site = site_with_act(lambda site: None)
    done = site.rollout(batch_size=1).enter(site.nodes, site.target("snc4-flat"))
    assert outcomes_of(done) == {"n1": "OK", "n2": "OK"}
    assert site.slurm.drained == {}
    assert {site.settings(node) for node in site.nodes} == {("SNC-4", "Flat")}


@pytest.mark.fault("drained-by-admin-meanwhile")
def test_a_node_that_an_admin_drains_during_its_change_is_not_resumed(
    site_with_act: MakeSite,
) -> None:
    site = site_with_act(lambda site: site.slurm.drain("n1", PSU))
    site.rollout(batch_size=2).enter(site.nodes, site.target("snc4-flat"))
    assert site.slurm.drained == {"n1": PSU}
    assert not any("n1" in call and "RESUME" in call for call in site.slurm.calls)


@pytest.mark.fault("drained-by-admin-meanwhile")
def test_a_node_that_an_admin_drains_during_the_restore_is_not_resumed(
    site_with_act: MakeSite,
) -> None:
    resets: list[str] = []

    def act(site: EmulatedSite) -> None:
        resets.append("n1")
        if len(resets) == 2:  # the first one is that of the mode change
            site.slurm.drain("n1", PSU)

    site = site_with_act(act)
    rollout = site.rollout()
    assert outcomes_of(rollout.enter(site.nodes, site.target("snc4-flat"))) == {
        "n1": "OK",
        "n2": "OK",
    }
    rollout.restore()
    assert site.slurm.drained == {"n1": PSU}
    assert {site.settings(node) for node in site.nodes} == {("Quadrant", "Flat")}


@pytest.mark.fault("pending-meanwhile")
@pytest.mark.parametrize("name", ["Turbo", "MemoryMode"])
def test_a_setting_of_another_client_after_the_check_is_not_overwritten(
    site_with_act: MakeSite, name: str
) -> None:
    """All nodes are checked before the first change; n2 is changed after n1."""
    foreign = {"Turbo": "Disabled", "MemoryMode": "Cache"}[name]

    def act(site: EmulatedSite) -> None:
        site.emulator.machines["n2"].pending[name] = foreign

    site = site_with_act(act)
    done = site.rollout(batch_size=1).enter(site.nodes, site.target("snc4-flat"))
    assert outcomes_of(done) == {"n1": "OK", "n2": "FOREIGN_PENDING"}
    assert f"{name}={foreign}" in done["n2"].text
    other = site.emulator.machines["n2"]
    assert other.pending == {name: foreign}
    assert (other.patches, other.resets) == (0, 0)
    assert site.settings("n2") == ("Quadrant", "Flat")


@pytest.mark.parametrize(
    ("mode", "outcome"), [("quadrant-flat", "OK"), ("snc4-flat", "CANNOT_SET")]
)
def test_a_person_sets_the_mode_and_the_node_proves_it(
    site_with_act: MakeSite, mode: str, outcome: str
) -> None:
    site = site_with_act(lambda site: None)
    done = site.rollout(back_end="manual", max_failures=2).enter(site.nodes, site.target(mode))
    assert outcomes_of(done) == dict.fromkeys(site.nodes, outcome)
    assert not any(machine.resets for machine in site.emulator.machines.values())
