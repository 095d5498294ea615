"""Mode changes and restores over emulated BMCs: every outcome that a node can have."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.emulators.bmc import node
from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.rollouts import (
    EmulatedSite,
    emulated_sites,
    outcomes_of,
)
from tests.emulators.bmc.server import PASSWORD, ROOT, SETTINGS, SYSTEM, Timing

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import Host
from proofmark.machine.modes.drains import failures, summary
from proofmark.machine.modes.rollout import forecast
from proofmark.machine.outcome import NodeError
from proofmark.runs.journal import Journal, journals, unverified

BEFORE = ("Quadrant", "Flat")
MakeSite = Callable[..., EmulatedSite]


@pytest.fixture
def make_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSite]:
    """Return a function that starts emulated machines, with the fault of each node."""
    with emulated_sites(tmp_path, monkeypatch) as started:

        def make(
            nodes: int = 2, faults: dict[str, str] | None = None, **timing: float
        ) -> EmulatedSite:
            names = [f"n{number}" for number in range(1, nodes + 1)]
            return started(names, faults=faults, timing=Timing(**timing))

        yield make


def unchanged(site: EmulatedSite) -> bool:
    machines = site.emulator.machines.values()
    return not any(machine.patches or machine.resets for machine in machines)


def states(site: EmulatedSite, node: str) -> list[str]:
    return [f"{line['state']} {line['event']}" for line in Journal(site.run, node).lines()]


class TestModeChange:
    def test_nodes_enter_a_mode_and_are_restored(self, make_site: MakeSite) -> None:
        site = make_site(3)
        rollout = site.rollout()
        done = rollout.enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == dict.fromkeys(site.nodes, "OK")
        assert {site.settings(node) for node in site.nodes} == {("SNC-4", "Flat")}
        assert site.slurm.drained == {}
        assert unverified(site.run, site.nodes, "snc4-flat") == {}
        back = rollout.restore()
        assert outcomes_of(back) == dict.fromkeys(site.nodes, "OK")
        assert {site.settings(node) for node in site.nodes} == {BEFORE}
        assert site.slurm.drained == {}
        assert rollout.restore() == {}

    def test_the_journal_has_each_intent_before_its_result(self, make_site: MakeSite) -> None:
        site = make_site(1)
        site.rollout().enter(site.nodes, site.target("snc2-flat"))
        seen = [state for state in states(site, "n1") if state != "down result"]
        assert seen == [
            "drain intent",
            "drain result",
            "original result",
            "stage intent",
            "stage result",
            "reset intent",
            "reset result",
            "up result",
            "verified result",
            "open intent",
            "open result",
        ]

    def test_a_repeated_command_changes_nothing(self, make_site: MakeSite) -> None:
        site = make_site(2)
        rollout = site.rollout()
        rollout.enter(site.nodes, site.target("snc2-flat"))
        written = [journal.path.read_text() for journal in journals(site.run)]
        again = rollout.enter(site.nodes, site.target("snc2-flat"))
        assert not any(result.changed for result in again.values())
        assert [journal.path.read_text() for journal in journals(site.run)] == written
        assert {machine.resets for machine in site.emulator.machines.values()} == {1}

    def test_a_node_that_booted_by_itself_is_verified_again(self, make_site: MakeSite) -> None:
        """A verification is that of one boot."""
        site = make_site(1)
        target = site.target("snc2-flat")
        site.rollout().enter(site.nodes, target)
        machine = site.emulator.machines["n1"]
        before = Journal(site.run, "n1").history().boot_id
        node.boot(machine.folder, machine.current, machine.shape, machine.serial)
        done = site.rollout().enter(site.nodes, target)
        assert done["n1"].changed and machine.resets == 1
        after = Journal(site.run, "n1").history()
        booted = (machine.folder / "proc/sys/kernel/random/boot_id").read_text().strip()
        assert (after.mode, after.boot_id) == ("snc2-flat", booted) and booted != before

    def test_restore_after_several_modes_returns_to_the_first(self, make_site: MakeSite) -> None:
        site = make_site(1)
        rollout = site.rollout()
        for mode in ("a2a-flat", "quadrant-hybrid50", "snc4-cache"):
            assert outcomes_of(rollout.enter(site.nodes, site.target(mode))) == {"n1": "OK"}
            assert unverified(site.run, site.nodes, mode) == {}
            assert unverified(site.run, site.nodes, "snc2-flat") == {"n1": f"in mode {mode}"}
        rollout.restore()
        assert site.settings("n1") == BEFORE
        assert site.emulator.machines["n1"].current["MemoryModeHybridPercent"] == "25"

    def test_a_check_changes_nothing_and_lists_the_changes(self, make_site: MakeSite) -> None:
        site = make_site(2)
        rollout = site.rollout(batch_size=1, boot_s=1200)
        good, bad = rollout.check(site.nodes, lambda _: site.target("snc4-flat"))
        lines, seconds = forecast(rollout, good)
        assert bad == {}
        assert lines == ["n[1-2]: ClusterMode: Quadrant → SNC-4, drain, reset, resume"]
        assert seconds == 2400
        assert unchanged(site)
        assert not (site.run / "journal").exists()

    def test_a_mode_change_works_with_redfish_sessions(self, make_site: MakeSite) -> None:
        site = make_site(1)
        done = site.rollout(auth="session").enter(site.nodes, site.target("snc2-cache"))
        assert outcomes_of(done) == {"n1": "OK"}

    @pytest.mark.parametrize("fault", ["race", "wants-apply-time", "busy-twice"])
    def test_etag_conflicts_apply_times_and_status_503_are_handled(
        self, make_site: MakeSite, fault: str
    ) -> None:
        site = make_site(1, {"n1": fault})
        done = site.rollout().enter(site.nodes, site.target("snc2-cache"))
        assert outcomes_of(done) == {"n1": "OK"}
        assert site.emulator.machines["n1"].patches == 1


class TestChecksBeforeTheChange:
    @pytest.mark.parametrize(
        ("fault", "outcome", "words"),
        [
            pytest.param(
                "unreachable",
                "UNREACHABLE",
                "refused",
                marks=pytest.mark.fault("bmc-unreachable"),
            ),
            pytest.param(
                "wrong-password",
                "DENIED",
                "no valid session",
                marks=pytest.mark.fault("bmc-wrong-password"),
            ),
            pytest.param(
                "expired",
                "BAD_CERTIFICATE",
                "expired",
                marks=pytest.mark.fault("bmc-expired-certificate"),
            ),
            pytest.param("hang", "NO_ANSWER", "within 3 s", marks=pytest.mark.fault("bmc-hang")),
            pytest.param("busy", "BUSY", "503", marks=pytest.mark.fault("bmc-503-storm")),
            pytest.param(
                "foreign",
                "FOREIGN_PENDING",
                "Turbo=Disabled",
                marks=pytest.mark.fault("mode-foreign-pending"),
            ),
            pytest.param("no-registry", "REFUSED", "no attribute registry"),
        ],
    )
    def test_one_failed_bmc_stops_the_change(
        self, make_site: MakeSite, fault: str, outcome: str, words: str
    ) -> None:
        site = make_site(3, {"n2": fault})
        done = site.rollout(timeout_s=3 if fault == "hang" else 60).enter(
            site.nodes, site.target("snc4-flat")
        )
        assert outcomes_of(done) == {"n1": "STOPPED", "n2": outcome, "n3": "STOPPED"}
        assert words in done["n2"].text
        assert unchanged(site) and site.slurm.drained == {}

    def test_up_to_max_failures_the_other_nodes_are_changed(self, make_site: MakeSite) -> None:
        """The control of the faults above: the nodes without a fault are changed."""
        site = make_site(3, {"n2": "wrong-password"})
        done = site.rollout(max_failures=1).enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": "DENIED", "n3": "OK"}
        assert site.emulator.machines["n2"].resets == 0
        assert unverified(site.run, site.nodes, "snc4-flat") == {"n2": "not verified"}

    @pytest.mark.parametrize(
        ("attributes", "words"),
        [
            pytest.param(
                {"cluster": "ClusterMod"},
                "ClusterMod: no such attribute, did you mean 'ClusterMode'?",
                marks=pytest.mark.fault("mode-attribute-misspelt"),
            ),
            pytest.param(
                {"cluster": "BiosVersion"},
                "BiosVersion: read-only",
                marks=pytest.mark.fault("mode-attribute-read-only"),
            ),
            pytest.param(
                {"cluster": {"SNC-4": {"ClusterMode": "SNC4"}}},
                "ClusterMode: no value 'SNC4', did you mean 'SNC-4'?",
                marks=pytest.mark.fault("mode-value-not-offered"),
            ),
            pytest.param({"cluster": {"SNC-4": {"BootTimeout": 61}}}, "61 is not between 0 and 60"),
        ],
    )
    def test_a_setting_that_the_firmware_does_not_offer_is_refused(
        self, make_site: MakeSite, attributes: dict[str, Any], words: str
    ) -> None:
        """Common Ansible modules report a misspelt attribute as set; here no node is changed."""
        site = make_site(2)
        changes = {"attributes": {"memory": "MemoryMode", **attributes}}
        with pytest.raises(BadInput) as refused:
            site.rollout().enter(site.nodes, site.target("snc4-flat", **changes))
        assert words in str(refused.value)
        assert "on n[1-2]" in str(refused.value)
        assert unchanged(site) and site.slurm.drained == {}

    @pytest.mark.fault("mode-drained-by-admin")
    @pytest.mark.parametrize("reason", ["bad DIMM in slot 3", ""])
    def test_a_node_that_an_admin_drained_stays_drained(
        self, make_site: MakeSite, reason: str
    ) -> None:
        site = make_site(2)
        site.slurm.drain("n2", reason)
        rollout = site.rollout(max_failures=1)
        done = rollout.enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": "HELD"}
        assert (reason or "no reason") in done["n2"].text
        rollout.restore()
        assert site.slurm.drained == {"n2": reason}
        assert site.emulator.machines["n2"].resets == 0

    def test_a_node_that_an_admin_drains_later_is_not_restored(self, make_site: MakeSite) -> None:
        site = make_site(1)
        rollout = site.rollout()
        rollout.enter(site.nodes, site.target("snc4-flat"))
        site.slurm.drain("n1", "drained by hand")
        assert outcomes_of(rollout.restore()) == {"n1": "HELD"}
        assert site.slurm.drained == {"n1": "drained by hand"}


class TestAfterTheReset:
    @pytest.mark.parametrize(
        ("fault", "outcome", "words"),
        [
            pytest.param(
                "silent",
                "NOT_APPLIED",
                "ClusterMode=Quadrant",
                marks=pytest.mark.fault("mode-not-applied"),
            ),
            pytest.param("deaf", "NOT_APPLIED", "accepted and not pending"),
            pytest.param(
                "no-return", "NO_RETURN", "not back", marks=pytest.mark.fault("mode-no-return")
            ),
            pytest.param(
                "other-mode",
                "OTHER_MODE",
                "ClusterMode=All2All",
                marks=pytest.mark.fault("mode-other-mode"),
            ),
            pytest.param("stuck", "NOT_RESET", "still up"),
        ],
    )
    def test_a_failed_node_stays_drained_with_its_outcome(
        self, make_site: MakeSite, fault: str, outcome: str, words: str
    ) -> None:
        site = make_site(2, {"n2": fault})
        rollout = site.rollout(boot_timeout_s=3) if fault == "no-return" else site.rollout()
        done = rollout.enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": outcome}
        assert words in done["n2"].text
        assert site.slurm.drained == {"n2": f"proofmark:test on head {outcome}"}
        assert unverified(site.run, site.nodes, "snc4-flat").keys() == {"n2"}
        last = Journal(site.run, "n2").lines()[-1]
        assert (last["state"], last["outcome"]) == ("fail", outcome)

    def test_a_failed_batch_stops_the_next_batch(self, make_site: MakeSite) -> None:
        site = make_site(3, {"n1": "silent"})
        done = site.rollout(batch_size=1).enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "NOT_APPLIED", "n2": "STOPPED", "n3": "STOPPED"}
        assert site.emulator.machines["n2"].resets == 0

    def test_up_to_max_failures_the_next_batch_is_changed(self, make_site: MakeSite) -> None:
        site = make_site(3, {"n1": "silent"})
        done = site.rollout(batch_size=1, max_failures=1).enter(
            site.nodes, site.target("snc4-flat")
        )
        assert outcomes_of(done) == {"n1": "NOT_APPLIED", "n2": "OK", "n3": "OK"}

    def test_a_node_that_boots_late_is_not_reset_again(self, make_site: MakeSite) -> None:
        site = make_site(1, boot=2.0)
        rollout = site.rollout(boot_timeout_s=0.3)
        assert outcomes_of(rollout.enter(site.nodes, site.target("snc4-flat"))) == {
            "n1": "NO_RETURN"
        }
        longer = site.rollout(boot_timeout_s=60)
        assert outcomes_of(longer.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK"}
        assert site.emulator.machines["n1"].resets == 1
        assert site.slurm.drained == {}

    def test_a_stopped_change_is_resumed_without_a_second_reset(self, make_site: MakeSite) -> None:
        site = make_site(1, boot=5.0)
        machine, stop = site.emulator.machines["n1"], threading.Event()

        def stop_after_the_reset() -> None:
            while not machine.resets:
                time.sleep(0.01)
            stop.set()

        stopping = threading.Thread(target=stop_after_the_reset)
        stopping.start()
        stopped = site.rollout(stop=stop, boot_timeout_s=60)
        assert outcomes_of(stopped.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "STOPPED"}
        stopping.join()
        again = site.rollout(boot_timeout_s=60).enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(again) == {"n1": "OK"}
        assert machine.resets == 1


class TestOddAnswers:
    """Answers that are odd only after the check, when the nodes are drained."""

    ODD: ClassVar[dict[str, Callable[[dict[str, Any]], object]]] = {
        "actions-list": lambda body: body[SYSTEM].update(Actions=["x"]),
        "settings-list": lambda body: body[SETTINGS].update(Attributes=["x"]),
        "no-attributes": lambda body: body[f"{SYSTEM}/Bios"].pop("Attributes"),
        "number": lambda body: body[f"{SYSTEM}/Bios"].update(AttributeRegistry=5),
        "deep": lambda body: body[SYSTEM].update(Oem=nested(500)),
        "link": lambda body: body[SYSTEM].update(Bios={"@odata.id": "https://192.0.2.1/x"}),
    }

    @pytest.mark.fault("bmc-odd-during-change")
    @pytest.mark.parametrize("odd", ODD)
    def test_one_odd_answer_is_the_failure_of_its_node(
        self, make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, odd: str
    ) -> None:
        site = make_site(3)
        change_answers(
            monkeypatch, site, "n2", lambda body: site.slurm.drained and self.ODD[odd](body)
        )
        done = site.rollout().enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": "UNEXPECTED", "n3": "OK"}
        assert "/redfish/v1/" in done["n2"].text and "found " in done["n2"].text
        assert site.slurm.drained == {"n2": "proofmark:test on head UNEXPECTED"}
        assert Journal(site.run, "n2").history().failed == f"UNEXPECTED: {done['n2'].text}"
        monkeypatch.undo()

    @pytest.mark.fault("node-work-exception")
    def test_an_exception_of_the_work_on_a_node_is_in_its_journal(
        self, make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A back end of the site has an error: it raises what no back end should raise."""
        site = make_site(3)
        rollout = site.rollout()
        plain = rollout.transition.back_end.stage

        def stage(host: Host, *rest: Any) -> None:
            if host.node == "n2":
                raise MemoryError
            plain(host, *rest)

        monkeypatch.setattr(rollout.transition.back_end, "stage", stage)
        done = rollout.enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": "UNEXPECTED", "n3": "OK"}
        assert Journal(site.run, "n2").history().failed == "UNEXPECTED: MemoryError"
        assert site.slurm.drained == {"n2": "proofmark:test on head UNEXPECTED"}

    def test_whole_answers(self, make_site: MakeSite) -> None:
        """Control: no fault is injected."""
        site = make_site(3)
        done = site.rollout().enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == dict.fromkeys(site.nodes, "OK") and site.slurm.drained == {}

    @pytest.mark.fault("bmc-registry-damaged")
    @pytest.mark.parametrize("first", ["n1", "n2", "n3"])
    def test_the_registry_of_one_bmc_is_not_that_of_the_others(
        self, make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, first: str
    ) -> None:
        """Nodes share a copy of the registry; in that of `first` an attribute has another name."""
        site = make_site(3)
        change_answers(monkeypatch, site, first, rename_cluster_mode)
        rollout = site.rollout(max_parallel=1)
        nodes = [first, *(node for node in site.nodes if node != first)]
        good, bad = rollout.check(nodes, lambda _: site.target("snc4-flat"))
        assert outcomes_of(bad) == {first: "REFUSED"} and len(good) == 2
        assert "ClusterMode: no such attribute" in bad[first].text

    @pytest.mark.fault("bmc-registry-damaged-others-silent")
    def test_the_registry_of_the_only_bmc_that_answers(
        self, make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A minority of the nodes is no proof that the inventory is wrong."""
        site = make_site(3, {"n1": "unreachable", "n3": "unreachable"})
        change_answers(monkeypatch, site, "n2", rename_cluster_mode)
        good, bad = site.rollout().check(site.nodes, lambda _: site.target("snc4-flat"))
        assert good == {}
        assert outcomes_of(bad) == {"n1": "UNREACHABLE", "n2": "REFUSED", "n3": "UNREACHABLE"}


def rename_cluster_mode(body: dict[str, Any]) -> None:
    path = f"{ROOT}/Registries/knl.v1_0_0.json"
    (body[path]["RegistryEntries"]["Attributes"][0])["AttributeName"] = "odd"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def change_answers(
    monkeypatch: pytest.MonkeyPatch,
    site: EmulatedSite,
    node: str,
    change: Callable[[dict[str, Any]], object],
) -> None:
    """Change the resources of one BMC."""
    plain = site.emulator._resources

    def changed(machine: Machine) -> dict[str, dict[str, Any]]:
        body = plain(machine)
        if machine.name == node:
            change(body)
        return body

    monkeypatch.setattr(site.emulator, "_resources", changed)


class TestRestore:
    def entered(self, make_site: MakeSite) -> EmulatedSite:
        site = make_site(3)
        site.rollout().enter(site.nodes, site.target("snc4-flat"))
        return site

    @pytest.mark.parametrize(
        ("fault", "outcome", "requests"),
        [
            pytest.param(
                "wrong-password", "DENIED", 1, marks=pytest.mark.fault("restore-one-denied")
            ),
            pytest.param(
                "hang", "NO_ANSWER", 2, marks=pytest.mark.fault("restore-bmc-unreachable")
            ),
        ],
    )
    def test_one_bmc_does_not_prevent_the_restore_of_the_others(
        self, make_site: MakeSite, fault: str, outcome: str, requests: int
    ) -> None:
        """After DENIED there is no second attempt: BMCs lock accounts."""
        site = self.entered(make_site)
        machine = site.emulator.machines["n2"]
        machine.fault, machine.requests = fault, 0
        done = site.rollout(timeout_s=2, max_attempts=1).restore()
        assert outcomes_of(done) == {"n1": "OK", "n2": outcome, "n3": "OK"}
        assert machine.requests == requests
        assert [site.settings(node) == BEFORE for node in site.nodes] == [True, False, True]
        machine.fault = ""
        assert outcomes_of(site.rollout().restore()) == {"n2": "OK"}
        assert site.settings("n2") == BEFORE and site.slurm.drained == {}

    def test_a_node_that_recovers_is_tried_again(self, make_site: MakeSite) -> None:
        """The control of the faults of restore: the second attempt of the command succeeds."""
        site = self.entered(make_site)
        machine = site.emulator.machines["n2"]
        machine.fault, machine.requests = "busy-twice", 1
        done = site.rollout(max_attempts=1).restore()
        assert outcomes_of(done) == dict.fromkeys(site.nodes, "OK")
        assert any("n2: 1 node is tried again" in line for line in site.lines)
        assert {site.settings(node) for node in site.nodes} == {BEFORE}

    @pytest.mark.fault("restore-one-held")
    def test_a_node_that_an_admin_drained_does_not_prevent_the_others(
        self, make_site: MakeSite
    ) -> None:
        site = self.entered(make_site)
        site.slurm.drain("n2", "bad DIMM")
        done = site.rollout().restore()
        assert outcomes_of(done) == {"n1": "OK", "n2": "HELD", "n3": "OK"}
        assert failures(done) == ["n2: HELD: already drained: bad DIMM"]
        assert site.emulator.machines["n2"].resets == 1

    @pytest.mark.fault("restore-journal-damaged")
    @pytest.mark.parametrize(
        "damage", [b"garbage\n", b"[1]\n", b'{"state": "drain"}\n', b"\xff\n", b"[" * 9999 + b"\n"]
    )
    def test_a_damaged_journal_does_not_prevent_the_others(
        self, make_site: MakeSite, damage: bytes
    ) -> None:
        site = self.entered(make_site)
        path = Journal(site.run, "n2").path
        whole = path.read_bytes()
        path.write_bytes(damage + whole)
        done = site.rollout().restore()
        assert outcomes_of(done) == {"n2": "BAD_JOURNAL", "n1": "OK", "n3": "OK"}
        assert "n2.jsonl:1: found " in done["n2"].text
        assert site.settings("n2") != BEFORE
        path.write_bytes(whole)
        assert outcomes_of(site.rollout().restore()) == {"n2": "OK"}

    def test_a_journal_line_without_a_fact_is_that_of_its_node(self, make_site: MakeSite) -> None:
        site = self.entered(make_site)
        with Journal(site.run, "n2").path.open("a") as file:
            file.write('{"state": "verified", "event": "result"}\n')
        done = site.rollout().restore()
        assert outcomes_of(done) == {"n2": "BAD_JOURNAL", "n1": "OK", "n3": "OK"}

    @pytest.mark.fault("restore-node-not-in-scheduler")
    def test_a_node_that_the_scheduler_lost_does_not_prevent_the_others(
        self, make_site: MakeSite, tmp_path: Path
    ) -> None:
        """Slurm refuses a command for several nodes if it does not have one of them."""
        site = self.entered(make_site)
        script = tmp_path / "bin" / "scontrol"
        whole = script.read_text()
        lost = 'case ",$2,$4," in *[,=]n2,*) echo "Invalid node name specified" >&2; exit 1 ;; esac'
        script.write_text(whole.replace("case $1 in", f"{lost}\ncase $1 in", 1))
        done = site.rollout().restore()
        assert outcomes_of(done) == {"n1": "OK", "n2": "UNEXPECTED", "n3": "OK"}
        assert "Invalid node name" in done["n2"].text
        assert site.slurm.drained == {}
        script.write_text(whole)
        assert outcomes_of(site.rollout().restore()) == {"n2": "OK"}

    def test_no_number_of_failures_stops_a_restore(self, make_site: MakeSite) -> None:
        site = self.entered(make_site)
        for name in ("n1", "n2"):
            site.emulator.machines[name].fault = "silent"
        done = site.rollout(batch_size=1).restore()
        assert outcomes_of(done) == {"n1": "NOT_APPLIED", "n2": "NOT_APPLIED", "n3": "OK"}


class TestRestorable:
    @pytest.mark.fault("mode-not-restorable")
    @pytest.mark.parametrize("value", [None, "odd", 5])
    def test_a_value_that_cannot_be_restored_is_not_replaced(
        self, make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, value: object
    ) -> None:
        """The BIOS reports no value, or one that it does not offer."""
        site = make_site(2)

        def change(body: dict[str, Any]) -> None:
            bios = body[f"{SYSTEM}/Bios"]
            bios["Attributes"] = {**bios["Attributes"], "ClusterMode": value}

        change_answers(monkeypatch, site, "n2", change)
        done = site.rollout(max_failures=1).enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": "CANNOT_RESTORE"}
        assert "ClusterMode" in done["n2"].text
        machine = site.emulator.machines["n2"]
        assert (machine.patches, machine.resets, site.slurm.drained) == (0, 0, {})

    def test_a_reported_value_is_changed(self, make_site: MakeSite) -> None:
        """The control: an attribute that the mode does not set need not be reported."""
        site = make_site(1)
        del site.emulator.machines["n1"].current["MemoryModeHybridPercent"]
        site.emulator.machines["n1"].current["MemoryModeHybridPercent"] = "odd"
        target = site.target("snc4-flat")
        assert outcomes_of(site.rollout().enter(site.nodes, target)) == {"n1": "OK"}
        original = Journal(site.run, "n1").history().original
        assert original == {"ClusterMode": "Quadrant", "MemoryMode": "Flat"}
        later = site.rollout().enter(site.nodes, site.target("quadrant-hybrid50"))
        assert outcomes_of(later) == {"n1": "CANNOT_RESTORE"}
        assert outcomes_of(site.rollout().restore()) == {"n1": "OK"}
        assert site.settings("n1") == BEFORE

    @pytest.mark.fault("node-replaced")
    @pytest.mark.parametrize("then", ["restore", "enter"])
    @pytest.mark.parametrize("known", ["BMC", "SMBIOS"])
    def test_a_replaced_node_is_not_changed(
        self, make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, then: str, known: str
    ) -> None:
        site = make_site(2)
        if known == "SMBIOS":
            change_answers(monkeypatch, site, "n2", lambda body: body[SYSTEM].pop("SerialNumber"))
        site.rollout().enter(site.nodes, site.target("snc4-flat"))
        machine = site.emulator.machines["n2"]
        machine.serial, resets, patches = "SN-new", machine.resets, machine.patches
        node.boot(machine.folder, machine.current, machine.shape, machine.serial)
        rollout = site.rollout(max_failures=1)
        if then == "restore":
            done = rollout.restore()
        else:
            done = rollout.enter(site.nodes, site.target("snc2-flat"))
        assert outcomes_of(done) == {"n2": "REPLACED", "n1": "OK"}
        assert "SN-new" in done["n2"].text and "SN-n2" in done["n2"].text
        assert known in done["n2"].text
        assert (machine.resets, machine.patches) == (resets, patches)

    def test_an_original_of_which_two_readings_differ_is_not_recorded(
        self, make_site: MakeSite
    ) -> None:
        """An odd answer could give a wrong value, to which restore would set the node."""
        site = make_site(1)
        rollout = site.rollout()
        machine, host = site.emulator.machines["n1"], rollout.hosts["n1"]
        target, journal = site.target("snc4-flat"), Journal(site.run, "n1")
        checked, _ = rollout.transition.check(host, journal.history(), target)
        machine.current["MemoryMode"] = "Cache"
        with pytest.raises(NodeError, match=r"changed since the check from .*Flat.* to .*Cache"):
            rollout.transition.run(host, target, journal, checked)
        assert journal.history().original is None
        machine.current["MemoryMode"], machine.serial = "Flat", "SN-other"
        with pytest.raises(NodeError, match="SN-other"):
            rollout.transition.run(host, target, journal, checked)
        assert journal.history().original is None and not machine.patches


class TestSecrets:
    @pytest.mark.parametrize("fault", ["leak", "wrong-password", "silent", ""])
    @pytest.mark.parametrize("auth", ["basic", "session"])
    def test_no_message_or_file_contains_the_password(
        self, make_site: MakeSite, fault: str, auth: str
    ) -> None:
        site = make_site(1, {"n1": fault})
        rollout = site.rollout(auth=auth)
        done = rollout.enter(site.nodes, site.target("snc4-flat"))
        encoded = "b3BlcmF0b3I6"  # the user, as in the header Authorization
        files = [path.read_text() for path in site.run.rglob("*") if path.is_file()]
        texts = [
            *site.lines,
            *summary(done).values(),
            repr(done),
            repr(rollout),
            *files,
            *site.slurm.calls,
        ]
        if fault == "leak" and auth == "basic":
            assert "***" in done["n1"].text
        assert [text for text in texts if PASSWORD in text or encoded in text] == []


@contextmanager
def drained_at_reset(site: EmulatedSite, node: str, reason: str) -> Iterator[None]:
    """Drain `node` for `reason` when its next reset has begun, beside the block."""
    machine = site.emulator.machines[node]
    resets = machine.resets

    def drain() -> None:
        while machine.resets == resets:
            time.sleep(0.01)
        site.slurm.drain(node, reason)

    thread = threading.Thread(target=drain)
    thread.start()
    yield
    thread.join()


@contextmanager
def killed_at(number: int, *, after: bool) -> Iterator[list[str]]:
    """Kill this process before, or after, it writes the line `number` of a journal."""
    write = Journal._append
    count = [0]

    def counted(self: Journal, state: str, kind: str, facts: Any) -> None:
        count[0] += 1
        if count[0] == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, state, kind, facts)
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_append", counted)
        yield []


def killed(number: int, after: bool, work: Callable[[], object]) -> bool:
    """Run `work` in a process that is killed at a journal line; return whether it was killed."""
    child = os.fork()
    if not child:
        with killed_at(number, after=after):
            work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


LINES = 13
"""Journal lines of a mode change: the eleven above, ``down`` if it is observed, and one more."""
CHANGES, RESTORES = (1, 4, 6, 10, 11), (1, 3, 5, 9, 10)
"""The lines of intents of a mode change and of a restore, with and without ``down``."""


def kills(last: int, intents: tuple[int, ...]) -> list[object]:
    """Return where a process is killed: before each line, and after each intent.

    Between a result and the next line nothing is done: that moment is the one before this line.
    """
    before = [pytest.param(number, False, id=f"before {number}") for number in range(1, last + 1)]
    after = [pytest.param(number, True, id=f"after {number}") for number in intents]
    return [*before, *after]


@pytest.mark.rest("a kill at each step of a change")
@pytest.mark.slow
@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize(("number", "after"), kills(LINES, CHANGES))
@pytest.mark.parametrize("then", ["resume", "restore"])
def test_a_mode_change_that_is_killed_is_resumed_or_restored(
    make_site: MakeSite, number: int, after: bool, then: str
) -> None:
    """The same command resumes the change; restore needs only the journal."""
    site = make_site(1)
    site.slurm.drain("other", "not ours")
    target = site.target("snc4-flat")
    was_killed = killed(number, after, lambda: site.rollout().enter(site.nodes, target))
    assert was_killed or number >= LINES - 1, "the journal has fewer lines"
    assert not was_killed or number < LINES, "the journal has more lines"
    if then == "resume":
        assert outcomes_of(site.rollout().enter(site.nodes, target)) == {"n1": "OK"}
        assert site.settings("n1") == ("SNC-4", "Flat")
        assert unverified(site.run, site.nodes, "snc4-flat") == {}
        # No kill may cause a second reset.
        assert site.emulator.machines["n1"].resets == 1
    assert set(outcomes_of(site.rollout().restore()).values()) <= {"OK"}
    machine = site.emulator.machines["n1"]
    assert (site.settings("n1"), machine.pending) == (BEFORE, {})
    assert site.slurm.drained == {"other": "not ours"}
    assert site.rollout().restore() == {}


@pytest.mark.rest("a kill at each step of a restore")
@pytest.mark.slow
@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize(("number", "after"), kills(LINES - 1, RESTORES))
def test_a_restore_that_is_killed_is_resumed(make_site: MakeSite, number: int, after: bool) -> None:
    site = make_site(1)
    site.rollout().enter(site.nodes, site.target("snc4-flat"))
    was_killed = killed(number, after, lambda: site.rollout().restore())
    assert was_killed or number >= LINES - 2, "the journal has fewer lines"
    site.rollout().restore()
    machine = site.emulator.machines["n1"]
    assert (site.settings("n1"), machine.pending) == (BEFORE, {})
    assert site.slurm.drained == {}
    assert site.rollout().restore() == {}


def test_an_incomplete_last_line_of_a_journal_is_ignored(tmp_path: Path) -> None:
    log = Journal(tmp_path, "n1")
    log.intent("drain", address="a", tag="t")
    with log.path.open("a") as file:
        file.write('{"state": "orig')
    assert len(log.lines()) == 1
    log.result("drain", address="a", tag="t")
    assert [line["event"] for line in log.lines()] == ["intent", "result"]


def test_a_damaged_line_of_a_journal_is_named(tmp_path: Path) -> None:
    log = Journal(tmp_path, "n1")
    log.intent("drain", address="a", tag="t")
    log.path.write_text("nonsense\n" + log.path.read_text())
    with pytest.raises(BadInput, match=r"n1\.jsonl:1"):
        log.history()


def test_journal_lines_are_json_with_time_and_node(tmp_path: Path) -> None:
    log = Journal(tmp_path, "n1")
    log.result("up", boot_id="x")
    (line,) = map(json.loads, log.path.read_text().splitlines())
    assert line["node"] == "n1" and line["at"].startswith(time.strftime("%Y"))


PSU = "leaking PSU, do not power on; was State=IDLE"


class TestOwnership:
    """A node belongs to the run whose whole reason drained it, or whose claim is recorded."""

    def test_a_node_with_a_reason_of_the_run_is_changed(self, make_site: MakeSite) -> None:
        """The control: the run was interrupted after the drain."""
        site = make_site(1)
        reason = site.claims("acc1").reason("to snc4-flat")
        rollout = site.rollout(run="acc1")
        Journal(rollout.run, "n1").intent("drain", address="a", reasons=[reason])
        site.slurm.drain("n1", reason)
        assert outcomes_of(rollout.enter(site.nodes, site.target("snc4-flat"))) == {"n1": "OK"}
        assert site.slurm.drained == {}

    @pytest.mark.fault("drain-of-another-run")
    @pytest.mark.parametrize(
        "reason",
        [
            "proofmark:acc10 on head to snc4-flat",
            "proofmark:acc1 on other to snc4-flat",
            "proofmark:acc1 on head to snc4-flat and more",
            "proofmark:acc1 on head",
            "proofmark:acc1",
            PSU,
        ],
    )
    def test_a_node_with_another_reason_is_held(self, make_site: MakeSite, reason: str) -> None:
        """Also the name of this run in another reason does not make it a drain of this run."""
        site = make_site(1)
        rollout = site.rollout(run="acc1")
        ours = site.claims("acc1").reason("to snc4-flat")
        Journal(rollout.run, "n1").intent("drain", address="a", reasons=[ours])
        site.slurm.drain("n1", reason)
        done = rollout.enter(site.nodes, site.target("snc4-flat"))
        assert (outcomes_of(done), unchanged(site)) == ({"n1": "HELD"}, True)
        assert reason in done["n1"].text
        assert outcomes_of(rollout.restore()) == {"n1": "HELD"}
        assert (site.slurm.drained, unchanged(site)) == ({"n1": reason}, True)

    @pytest.mark.fault("node-of-another-run")
    def test_a_second_run_is_refused_with_the_name_of_the_first(self, make_site: MakeSite) -> None:
        site = make_site(2)
        first, second = site.rollout(run="acc10"), site.rollout(run="acc1", max_failures=1)
        assert outcomes_of(first.enter(["n1"], site.target("snc4-flat"))) == {"n1": "OK"}
        done = second.enter(site.nodes, site.target("snc2-flat"))
        assert outcomes_of(done) == {"n1": "HELD", "n2": "OK"}
        assert f"held by run acc10 in {site.run.parent}/runs/acc10 since 20" in done["n1"].text
        assert site.emulator.machines["n1"].resets == 1
        assert outcomes_of(second.restore()) == {"n2": "OK"}
        assert site.settings("n1") == ("SNC-4", "Flat")
        assert outcomes_of(first.restore()) == {"n1": "OK"}
        done = second.enter(site.nodes, site.target("snc2-flat"))
        assert outcomes_of(done) == {"n1": "OK", "n2": "OK"}, "the control: the first is restored"

    @pytest.mark.fault("node-of-another-run")
    def test_two_runs_that_claim_at_once_get_each_node_once(self, make_site: MakeSite) -> None:
        site = make_site(1)
        names = [f"r{number}" for number in range(8)]
        results: list[str] = []
        barrier = threading.Barrier(len(names))

        def claim(run: str) -> None:
            barrier.wait()
            results.append(site.claims(run).claim("n1"))

        threads = [threading.Thread(target=claim, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(bool(other) for other in results) == [False] + [True] * 7

    @pytest.mark.parametrize("text", ["{", "[]", "", '{"run": "acc1"}'])
    def test_a_damaged_record_holds_its_node_only(self, make_site: MakeSite, text: str) -> None:
        site = make_site(2)
        site.claims().claim("n2")
        (site.claims().folder / "n1.json").write_text(text)
        done = site.rollout(max_failures=1).enter(site.nodes, site.target("snc4-flat"))
        assert outcomes_of(done) == {"n1": "HELD", "n2": "OK"}
        assert "n1.json" in done["n1"].text

    @pytest.mark.fault("drained-between-enter-and-restore")
    @pytest.mark.parametrize("reason", [PSU, "", "proofmark:test on head"])
    def test_a_node_that_an_admin_drains_does_not_stop_the_restore(
        self, make_site: MakeSite, reason: str
    ) -> None:
        site = make_site(3)
        rollout = site.rollout()
        rollout.enter(site.nodes, site.target("snc4-flat"))
        site.slurm.drain("n2", reason)
        done = rollout.restore()
        assert outcomes_of(done) == {"n1": "OK", "n2": "HELD", "n3": "OK"}
        assert (reason or "no reason is given") in done["n2"].text
        assert site.settings("n1") == site.settings("n3") == BEFORE
        assert site.slurm.drained == {"n2": reason}
        assert site.emulator.machines["n2"].resets == 1
        (site.slurm.folder / "slurm/n2").unlink()
        assert outcomes_of(rollout.restore()) == {"n2": "OK"}
        assert site.settings("n2") == BEFORE

    @pytest.mark.parametrize("verb", ["enter", "restore"])
    def test_a_drain_of_the_run_that_loses_its_reason_in_the_reset_ends_with_the_change(
        self, make_site: MakeSite, verb: str
    ) -> None:
        site = make_site(2, boot=1.0)
        target = site.target("snc4-flat")
        rollout = site.rollout()
        if verb == "restore":
            rollout.enter(site.nodes, target)
        with drained_at_reset(site, "n1", ""):
            done = rollout.enter(site.nodes, target) if verb == "enter" else rollout.restore()
        assert outcomes_of(done) == {"n1": "OK", "n2": "OK"}
        assert site.slurm.drained == {}

    @pytest.mark.fault("drained-between-enter-and-restore")
    @pytest.mark.parametrize("verb", ["enter", "restore"])
    def test_a_reason_that_an_admin_replaces_during_the_change_stays(
        self, make_site: MakeSite, verb: str
    ) -> None:
        site = make_site(2, boot=1.0)
        target = site.target("snc4-flat")
        rollout = site.rollout()
        if verb == "restore":
            rollout.enter(site.nodes, target)
        with drained_at_reset(site, "n1", PSU):
            done = rollout.enter(site.nodes, target) if verb == "enter" else rollout.restore()
        assert outcomes_of(done) == {"n1": "HELD", "n2": "OK"}
        assert PSU in done["n1"].text
        assert site.slurm.drained == {"n1": PSU}
        if verb == "enter":
            assert PSU in unverified(site.run, site.nodes, "snc4-flat")["n1"]
        else:
            assert site.settings("n1") == BEFORE
            assert rollout.restore() == {}
            assert site.claims("acc2").other("n1") == "", "the run holds the node no longer"

    @pytest.mark.fault("journal-damaged")
    @pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"state": 1}', "\x00"])
    def test_a_damaged_journal_affects_its_node_only(self, make_site: MakeSite, line: str) -> None:
        site = make_site(2)
        rollout = site.rollout()
        rollout.enter(site.nodes, site.target("snc4-flat"))
        path = Journal(site.run, "n1").path
        path.write_text(f"{line}\n{path.read_text()}")
        done = rollout.restore()
        assert outcomes_of(done) == {"n1": "BAD_JOURNAL", "n2": "OK"}
        assert "n1.jsonl" in done["n1"].text
        assert site.settings("n2") == BEFORE
        assert list(unverified(site.run, ["n1"], "snc4-flat")) == ["n1"]

    def test_a_node_that_is_no_longer_in_the_inventory_stops_no_other(
        self, make_site: MakeSite
    ) -> None:
        site = make_site(2)
        rollout = site.rollout()
        rollout.enter(site.nodes, site.target("snc4-flat"))
        rest = replace(rollout, hosts={"n2": rollout.hosts["n2"]})
        assert outcomes_of(rest.restore()) == {"n1": "UNREACHABLE", "n2": "OK"}
        assert outcomes_of(rollout.restore()) == {"n1": "OK"}
