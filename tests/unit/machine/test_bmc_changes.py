"""A change that a BMC applies late, in another way or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.rollouts import EmulatedSite, emulated_sites

from proofmark.common.errors import BadInput
from proofmark.machine.modes.drains import ModeResult
from proofmark.machine.node_commands import PROBE
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.runs.journal import Journal

pytestmark = pytest.mark.rest("changes that an emulated BMC applies late")

BEFORE = ("Quadrant", "Flat")
MakeSite = Callable[[str], EmulatedSite]


@pytest.fixture
def site_with_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSite]:
    """Return a function that starts one emulated machine with a fault."""
    with emulated_sites(tmp_path, monkeypatch) as started:
        yield lambda fault: started(["n1"], faults={"n1": fault}, network=58)


def outcome(results: dict[str, ModeResult]) -> tuple[str, str]:
    return str(results["n1"].outcome), results["n1"].text


def machine(site: EmulatedSite) -> Machine:
    return site.emulator.machines["n1"]


def enter(site: EmulatedSite, mode: str = "snc4-flat", **facts: Any) -> tuple[str, str]:
    return outcome(site.rollout(**facts).enter(site.nodes, site.target(mode)))


class TestResets:
    @pytest.mark.parametrize(
        ("fault", "sent"),
        [
            ("reset-in-action-info", ["ForceRestart"]),
            ("reset-off-on", ["GracefulShutdown", "ForceOff", "On"]),
            ("reset-off-on-late", ["ForceOff", "On"]),
            ("reset-graceful-refused", ["GracefulRestart", "ForceRestart"]),
            ("reset-task-fails", ["GracefulRestart", "ForceRestart"]),
        ],
    )
    def test_the_reset_types_that_the_bmc_lists(
        self, site_with_fault: MakeSite, fault: str, sent: list[str]
    ) -> None:
        site = site_with_fault(fault)
        assert enter(site)[0] == "OK"
        assert machine(site).sent == sent
        assert outcome(site.rollout().restore())[0] == "OK"
        assert (site.settings("n1"), site.slurm.drained) == (BEFORE, {})

    @pytest.mark.fault("bmc-no-reset")
    @pytest.mark.parametrize(
        ("fault", "facts", "said"),
        [
            ("reset-unlisted", {}, "lists no reset types"),
            ("reset-in-action-info", {"reset_type": "GracefulRestart"}, "offered: On, ForceOff"),
            ("host-off", {}, "the host is Off"),
        ],
    )
    def test_a_node_that_cannot_be_reset_is_not_touched(
        self, site_with_fault: MakeSite, fault: str, facts: dict[str, Any], said: str
    ) -> None:
        site = site_with_fault(fault)
        with pytest.raises(BadInput, match=said):
            enter(site, **facts)
        assert (machine(site).patches, machine(site).sent, site.slurm.drained) == (0, [], {})

    def test_a_named_type_is_sent_to_a_bmc_that_lists_none(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("reset-unlisted")
        assert enter(site, reset_type="ForceRestart")[0] == "OK"

    def test_what_was_staged_is_withdrawn_if_each_reset_is_refused(
        self, site_with_fault: MakeSite
    ) -> None:
        site = site_with_fault("reset-refused")
        result, text = enter(site)
        assert result == "UNEXPECTED" and "firmware.reset_type names another" in text
        assert machine(site).sent == ["GracefulRestart", "ForceRestart", "PowerCycle"]
        assert machine(site).pending == {}
        assert outcome(site.rollout().restore())[0] == "OK"
        assert site.slurm.drained == {}

    def test_a_host_that_was_left_off_is_switched_on(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("reset-off-on")
        target, journal = site.target("snc4-flat"), Journal(site.run, "n1")
        rollout = site.rollout()
        good, _ = rollout.check(site.nodes, lambda _: target)
        seen = good["n1"].observation
        assert seen is not None
        facts = {"address": "x", "reasons": []}
        journal.intent("drain", **facts)
        original = rollout.transition.original(good["n1"].state)
        journal.result("original", **facts, attributes=original, seen=seen.as_json())
        journal.intent("reset", boot_id=seen.boot_id)
        machine(site).go_down()  # the command was killed before it sent On
        assert enter(site)[0] == "OK"
        assert machine(site).sent[0] == "On"


class TestTasks:
    @pytest.mark.parametrize("fault", ["task", "task-unnamed", "task-for-boot"])
    def test_a_change_that_is_pending_later_is_waited_for(
        self, site_with_fault: MakeSite, fault: str
    ) -> None:
        site = site_with_fault(fault)
        assert enter(site)[0] == "OK"
        assert site.settings("n1") == ("SNC-4", "Flat")
        assert outcome(site.rollout().restore())[0] == "OK"
        assert (site.settings("n1"), machine(site).pending) == (BEFORE, {})

    @pytest.mark.fault("bmc-task-fails")
    def test_the_message_of_a_task_that_fails(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("task-fails")
        result, text = enter(site)
        assert result == "NOT_APPLIED"
        assert "is Exception: the setting was rejected by the host" in text
        assert machine(site).sent == []

    def test_a_restore_waits_for_a_task_that_has_not_ended(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("task-endless")
        result, text = enter(site, timeout_s=2.0)
        assert result == "BUSY" and "is Running after" in text
        restored = outcome(site.rollout(timeout_s=2.0).restore())
        assert restored[0] == "BUSY" and "n1" in site.slurm.drained
        machine(site).fault = "task"  # it ends now
        assert outcome(site.rollout().restore())[0] == "OK"
        assert (machine(site).pending, site.slurm.drained) == ({}, {})


class TestPartOfAChange:
    """What a BMC took of a change that failed does not wait for the next boot."""

    @pytest.mark.fault("bmc-partial-stage")
    @pytest.mark.parametrize(
        ("fault", "outcomes"),
        [("partial", ("NOT_APPLIED",)), ("patch-closes", ("UNREACHABLE", "NO_ANSWER"))],
    )
    def test_it_is_withdrawn(
        self, site_with_fault: MakeSite, fault: str, outcomes: tuple[str, ...]
    ) -> None:
        site = site_with_fault(fault)
        result, text = enter(site, "snc4-cache")
        assert result in outcomes and "the next boot" not in text
        assert (machine(site).pending, machine(site).sent) == ({}, [])
        past, now = Journal(site.run, "n1").history(), site.rollout().transition.observe("n1")
        assert not past.awaits_boot(now.boot_id, "snc4-cache") and not past.unsettled

    @pytest.mark.fault("bmc-partial-stage")
    def test_what_cannot_be_withdrawn_is_named(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("partial-once")
        result, text = enter(site, "snc4-cache")
        assert result == "NOT_APPLIED"
        assert "accepted and not pending: " in text and "; the next boot may set " in text
        (name,) = machine(site).pending
        assert name in text.partition("the next boot may set")[2]

    @pytest.mark.fault("bmc-task-fails")
    def test_after_a_task_that_failed_nothing_waits(self, site_with_fault: MakeSite) -> None:
        """Verify compares the modes; restore sends nothing, and drains no node."""
        site = site_with_fault("task-fails")
        assert enter(site)[0] == "NOT_APPLIED"
        transition, target = site.rollout().transition, site.target("snc4-flat")
        past, printed = Journal(site.run, "n1").history(), transition.shell("n1", PROBE)
        with pytest.raises(NodeError) as raised:
            transition.prove(site.rollout().hosts["n1"], target, printed, past)
        assert raised.value.outcome is Outcome.OTHER_MODE
        assert outcome(site.rollout().restore())[0] == "OK"
        assert (site.slurm.drained, machine(site).sent) == ({}, [])


class TestProof:
    @pytest.mark.fault("bmc-values-before-boot")
    def test_values_before_the_boot_prove_nothing(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("early-stuck")
        limits: dict[str, Any] = {"reset_timeout_s": 0.2}
        for _ in range(2):  # the second command finds the new values
            assert enter(site, "hemisphere-flat", **limits)[0] == "NOT_RESET"
        machine(site).fault = "early"
        assert enter(site, "hemisphere-flat")[0] == "OK"
        machine(site).fault = "early-stuck"
        assert outcome(site.rollout(**limits).restore())[0] == "NOT_RESET"
        machine(site).fault = "early"
        assert outcome(site.rollout().restore())[0] == "OK"
        assert (site.settings("n1"), site.slurm.drained) == (BEFORE, {})

    def test_verify_asks_for_the_boot(self, site_with_fault: MakeSite) -> None:
        site = site_with_fault("early-stuck")
        target = site.target("hemisphere-flat")
        assert enter(site, "hemisphere-flat", reset_timeout_s=0.2)[0] == "NOT_RESET"
        transition = site.rollout().transition
        now = transition.observe("n1").boot_id
        history = Journal(site.run, "n1").history()
        assert history.awaits_boot(now, target.mode)
        assert not history.awaits_boot("another", target.mode)
        assert not history.awaits_boot(now, "original")


@pytest.mark.parametrize("fault", ["settings-write-only", "no-settings", "busy-after-boot"])
def test_what_a_bmc_may_lack(site_with_fault: MakeSite, fault: str) -> None:
    site = site_with_fault(fault)
    assert enter(site)[0] == "OK"
    assert outcome(site.rollout().restore())[0] == "OK"
    assert (site.settings("n1"), site.slurm.drained) == (BEFORE, {})
