"""Validity conditions: the mode and the file system of a node while it measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.judge.judging import judge_run
from proofmark.plan.plan import SCRATCH, Step
from proofmark.records.run_facts import Conditions
from proofmark.runs.attempts import Attempt
from proofmark.runs.journal import Journal
from proofmark.runs.nodes import DamagedProbe, Node, nodes_of
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site
from proofmark.site.node.parts import MountedFileSystem, mount_of
from proofmark.site.partition import Partition

RATES = {f"n{number:02d}": 100.0 + number / 10 for number in range(8)}

NODE = "pack:2 [numa(memory={0}GiB)] core:20 pu:1"

LUSTRE = "| 10.1.1.1@o2ib:/scratch /scratch lustre rw,flock 0 0"

BOOT = "0b3c8a1e-6f6a-4d0e-9d44-aaaabbbbcccc"

NO_PROBE = "no probe before or after the step reports the boot"

OF_THE_PROBES = "2a0c0f5e-1111-4222-8333-444455556666"

RECORDED = {"attempt": "{job}/attempt-1", "boot": OF_THE_PROBES}

HOUR = {"date: 2026-11-21T10": "date: 2026-11-21T11"}

ERROR = {"edac/mc0/ue_count: 0": "edac/mc0/ue_count: 1"}

LATER_BOOT = "1c4d9b2f-7a7b-4e1f-8e55-bbbbccccdddd"

MODES = {"flat": {"topology": NODE.format(94)}, "cache": {"topology": NODE.format(9)}}

BY_HAND: dict[str, Any] = {"firmware": {"back_end": "manual"}}

SCRATCH_MOUNT = MountedFileSystem(source="a:/s", target="/scratch", kind="lustre", options="")


def run_of(folder: Path, partition: Mapping[str, Any], **how: Any) -> Run:
    return fleet_run(folder, RATES, partition=partition, one_boot=True, **how)


def reasons(run: Run) -> dict[str, str]:
    """Return the reasons of INVALID results, by node."""
    return {each.record.node: each.reason for each in judge_run(run).of("INVALID")}


def declared(gigabytes: int) -> dict[str, Any]:
    """Return a partition whose nodes have two sockets with `gigabytes` GiB of memory each."""
    return {"modes": {"flat": {"topology": NODE.format(gigabytes)}}, "current_mode": "flat"}


@pytest.mark.fault("another-mode-meanwhile")
@pytest.mark.parametrize("injected", [True, False])
def test_a_node_with_other_domains_than_its_mode_has(tmp_path: Path, injected: bool) -> None:
    """One node has less memory than its mode; the results of the others are valid."""
    changes = {"n03": {"node1 meminfo: ": "node1 meminfo: 9"}} if injected else {}
    found = reasons(run_of(tmp_path, declared(94), changes=changes))
    assert list(found) == (["n03"] if injected else [])
    assert not injected or "n03 reported" in found["n03"]
    assert not injected or found["n03"].endswith("mode flat has 2 × 94 GiB with 20 CPUs")


@pytest.mark.fault("another-mode-meanwhile")
@pytest.mark.parametrize(("verified", "reason"), [("flat", ""), ("cache", "planned in flat")])
def test_the_journal_has_the_mode_of_a_boot(tmp_path: Path, verified: str, reason: str) -> None:
    run = run_of(tmp_path, declared(94))
    (boot_id,) = {node.boot_id for node in facts_of(run)}
    Journal(run.folder, "n05").result("verified", mode=verified, seen={"boot_id": boot_id})
    Journal(run.folder, "n06").result("verified", mode="cache", seen={"boot_id": BOOT})
    found = reasons(run)
    assert list(found) == (["n05"] if reason else [])
    assert not reason or found["n05"] == f"n05 was in mode cache, {reason}"


@pytest.mark.parametrize("modes", [("original",), ("cache", "flat"), ("flat", "original")])
def test_a_boot_with_an_ambiguous_mode_is_not_invalid(
    tmp_path: Path, modes: tuple[str, ...]
) -> None:
    run = run_of(tmp_path, declared(94))
    (boot_id,) = {node.boot_id for node in facts_of(run)}
    for mode in modes:
        Journal(run.folder, "n05").result("verified", mode=mode, seen={"boot_id": boot_id})
    assert reasons(run) == {}


@pytest.mark.fault("another-file-system-meanwhile")
@pytest.mark.parametrize("injected", [True, False])
def test_a_node_whose_scratch_was_not_mounted(tmp_path: Path, injected: bool) -> None:
    """The folder exists, but on the local disk of the node."""
    scratch = {"path": "/scratch/runs", "type": "lustre", "source": "10.1.1.1@o2ib:/scratch"}
    changes = {"n02": {LUSTRE: "| /dev/sda1 /scratch xfs rw 0 0"}} if injected else {}
    found = reasons(run_of(tmp_path, {"scratch": scratch}, changes=changes, writes=True))
    assert list(found) == (["n02"] if injected else [])
    assert not injected or found["n02"] == (
        "n02 had xfs (/dev/sda1) at /scratch/runs, planned on lustre 10.1.1.1@o2ib:/scratch"
    )


def test_a_step_that_writes_nothing_needs_no_file_system(tmp_path: Path) -> None:
    scratch = {"path": "/scratch/runs", "type": "gpfs"}
    assert reasons(run_of(tmp_path, {"scratch": scratch})) == {}
    assert len(reasons(run_of(tmp_path / "writes", {"scratch": scratch}, writes=True))) == 8


def test_a_run_keeps_the_topologies_for_its_verdict(tmp_path: Path) -> None:
    """The verdict needs only the folder of the run, not the inventory."""
    changes = {"n03": {"node1 meminfo: ": "node1 meminfo: 9"}}
    run = run_of(tmp_path, declared(94), changes=changes)
    assert not site_of(run).inventory.exists()
    assert list(reasons(run)) == ["n03"]


@pytest.mark.parametrize(
    ("path", "target"),
    [("/scratch/a", "/scratch"), ("/scratchy", "/"), ("/scratch", "/scratch"), ("/a", "/")],
)
def test_a_path_is_on_the_deepest_mount(path: str, target: str) -> None:
    targets = ("/", "/scratch", "/scratch/deep", "/")
    mounts = [
        MountedFileSystem(source=f"{number}", target=each, kind="x", options="")
        for number, each in enumerate(targets)
    ]
    found = mount_of(path, mounts)
    assert found is not None
    assert (found.target, found.source) == (target, {"/": "3", "/scratch": "1"}[target])


def test_without_mounts_a_path_has_no_mount() -> None:
    assert mount_of("/scratch", []) is None


FIRMWARE = {**declared(94), "firmware": {"back_end": "manual"}}


class TestProof:
    """With firmware, the mode must be verified for the boot in which a step ran."""

    def run_of(self, folder: Path, *, proven: Iterable[str] = RATES, **of_n03: str) -> Run:
        """Return a run; the executions of n03 recorded something else."""
        executions = dict.fromkeys(RATES, RECORDED) | {"n03": {**RECORDED, **of_n03}}
        run = run_of(folder, FIRMWARE, executions=executions)
        for host in proven:
            seen = {"boot_id": OF_THE_PROBES}
            Journal(run.folder, host).result("verified", mode="flat", seen=seen)
        return run

    def test_a_proven_step_is_valid(self, tmp_path: Path) -> None:
        assert reasons(self.run_of(tmp_path)) == {}

    @pytest.mark.fault("mode-of-another-boot")
    @pytest.mark.parametrize(
        ("lines", "verified"),
        [
            ([], "no mode"),
            ([("flat", BOOT)], "no mode"),
            ([("original", OF_THE_PROBES)], "no mode"),
            ([("cache", OF_THE_PROBES), ("snc4", OF_THE_PROBES)], "cache, snc4"),
        ],
    )
    def test_a_boot_without_the_mode_is_no_proof(
        self, tmp_path: Path, lines: list[tuple[str, str]], verified: str
    ) -> None:
        run = self.run_of(tmp_path, proven=set(RATES) - {"n03"})
        for mode, boot in lines:
            Journal(run.folder, "n03").result("verified", mode=mode, seen={"boot_id": boot})
        problem = f"n03: mode flat is not proven for boot {OF_THE_PROBES}"
        assert reasons(run) == {"n03": f"{problem}; verified in it: {verified}"}

    @pytest.mark.fault("mode-of-another-boot")
    @pytest.mark.parametrize(
        ("recorded", "reason"),
        [
            ({"boot": BOOT}, f"it ran in boot {BOOT}, the probes report {OF_THE_PROBES}"),
            ({"attempt": "{job}/attempt-2"}, NO_PROBE),
            ({"attempt": "other/attempt-1"}, NO_PROBE),
            ({"attempt": "", "boot": BOOT}, NO_PROBE),
        ],
    )
    def test_a_step_of_another_boot_or_attempt_is_not_proven(
        self, tmp_path: Path, recorded: dict[str, str], reason: str
    ) -> None:
        run = self.run_of(tmp_path, **recorded)
        missing = "the state of n03 is not proven: nodes/n03.json has no report of the job; "
        before = missing if reason == NO_PROBE else ""
        assert reasons(run) == {"n03": f"{before}n03: mode flat is not proven: {reason}"}

    def test_a_step_by_hand_has_the_probes_of_its_boot(self, tmp_path: Path) -> None:
        assert reasons(self.run_of(tmp_path, attempt="")) == {}

    @pytest.mark.parametrize(
        "damage", ["garbage", "5", '{"state": "verified", "event": "result", "mode": "flat"}']
    )
    def test_a_damaged_journal_proves_nothing_for_its_node(
        self, tmp_path: Path, damage: str
    ) -> None:
        run = self.run_of(tmp_path)
        with Journal(run.folder, "n03").path.open("a") as file:
            file.write(f"{damage}\n")
        found = reasons(run)
        assert list(found) == ["n03"] and "n03.jsonl" in found["n03"]

    def test_a_run_of_an_earlier_version_is_judged_as_before(self, tmp_path: Path) -> None:
        assert reasons(run_of(tmp_path, FIRMWARE)) == {}

    @pytest.mark.fault("clock-shifted")
    @pytest.mark.parametrize("attempt", [RECORDED["attempt"], ""], ids=["job", "by hand"])
    @pytest.mark.parametrize("clock", [HOUR, {}], ids=["an hour later", "right"])
    def test_the_clock_of_a_node_does_not_hide_a_memory_error(
        self, tmp_path: Path, attempt: str, clock: dict[str, str]
    ) -> None:
        executions = {key: {**RECORDED, "attempt": attempt} for key in RATES}
        run = run_of(
            tmp_path,
            declared(94),
            changes={"n03": clock},
            after={"n03": ERROR},
            executions=executions,
        )
        found = reasons(run)
        assert list(found) == ["n03"] and "uncorrected memory errors" in found["n03"]


def facts_of(run: Run) -> list[Any]:
    return [node.newest for node in nodes_of(run).values()]


@dataclass
class Case:
    """A run of one step on real nodes whose partition declares two modes."""

    run: Run
    site: Site
    step: Step
    sound: Node

    def node(self, host: str = "n1", number: int = 1, boot: str = BOOT, **facts: Any) -> Node:
        """Return a node with one attempt of the job, and with `facts` in its report."""
        (job,) = self.sound.jobs
        given = job.provenance.model_copy(
            update={
                "facts": job.provenance.facts.model_copy(update={"boot_id": boot, **facts}),
                "before": job.provenance.before.model_copy(update={"boot_id": boot or None}),
                "after": None,
            }
        )
        changes = {"job": "j", "attempt": number, "provenance": given}
        return Node(host=host, jobs=(job.model_copy(update=changes),))

    def conditions(
        self,
        *nodes: Node,
        verified: Sequence[tuple[str, str]] = (),
        **partition: Any,
    ) -> Conditions:
        """Return the conditions; `verified` has nodes with a mode that was verified in `BOOT`."""
        for node, mode in verified:
            Journal(self.run.folder, node).result("verified", mode=mode, seen={"boot_id": BOOT})
        facts = {**self.site.partition.model_dump(), **partition}
        site = self.site.model_copy(update={"partition": Partition.model_validate(facts)})
        return Conditions(self.run, site, {node.host: node for node in nodes})

    def reason(
        self,
        conditions: Conditions,
        mode: str = "flat",
        hosts: Sequence[str] = ("n1",),
        step: Mapping[str, Any] | None = None,
        **execution: Any,
    ) -> str:
        made = self.step.model_copy(update=step or {})
        return conditions.invalid_reason(made, mode, hosts, executed(**execution))


def executed(**changes: Any) -> Attempt:
    """Return an execution on n1 in the first attempt of the job."""
    usual: dict[str, Any] = {
        **{"number": 1, "path": "", "rc": 0, "host": "n1", "start": "2026", "end": "2026"},
        **{"timed_out": False, "seconds": 1.0, "binding": b"[]"},
        **{"job_attempt": "j/attempt-1", "boot_id": BOOT},
    }
    return Attempt(**{**usual, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Case:
    partition = {"modes": MODES, "current_mode": "flat"}
    run = fleet_run(tmp_path_factory.mktemp("run"), {"n1": 100.0}, partition=partition)
    (step,) = run.plan.steps()
    return Case(run, site_of(run), step, nodes_of(run)["n1"])


@pytest.fixture
def case(made: Case, tmp_path: Path) -> Case:
    """Return the case in a folder without journals."""
    return replace(made, run=replace(made.run, folder=tmp_path))


class TestProofOfAMode:
    def test_a_verified_mode_is_a_proof(self, case: Case) -> None:
        found = case.conditions(case.node(), verified=[("n1", "flat")], **BY_HAND)
        assert case.reason(found) == ""
        assert case.reason(found, hosts=["n1.site.org"]) == ""

    def test_without_firmware_no_proof_is_needed(self, case: Case) -> None:
        assert case.reason(case.conditions(case.node())) == ""

    @pytest.mark.parametrize(
        ("facts", "needed"),
        [
            ({}, True),
            ({"origin": "emulated"}, False),
            ({"origin": "emulated", "host_cpus": list(range(40))}, True),
        ],
    )
    def test_an_emulated_node_has_a_boot_only_as_a_virtual_node(
        self, case: Case, facts: dict[str, Any], needed: bool
    ) -> None:
        found = case.conditions(case.node(), **BY_HAND, **facts)
        assert (case.reason(found) != "") is needed

    def test_each_other_mode_of_the_boot_is_named(self, case: Case) -> None:
        verified = [("n1", "snc4"), ("n1", "a2a")]
        found = case.conditions(case.node(), verified=verified, **BY_HAND)
        assert case.reason(found) == (
            f"n1: mode flat is not proven for boot {BOOT}; verified in it: a2a, snc4"
        )

    def test_a_node_without_a_report_is_not_proven(self, case: Case) -> None:
        found = case.conditions(verified=[("n1", "flat")], **BY_HAND)
        reason = "n1: mode flat is not proven: no probe before or after the step reports the boot"
        missing = (
            "the state of n1 is not proven: nodes/n1.json is missing (proofmark stage collect)"
        )
        assert case.reason(found) == f"{missing}; {reason}"
        assert case.reason(found, boot_id=None) == missing
        assert case.reason(case.conditions()) == missing
        assert case.reason(case.conditions(origin="predicted")) == ""

    def test_a_node_without_a_journal_is_not_proven(self, case: Case) -> None:
        found = case.conditions(case.node(), verified=[("n2", "flat")], **BY_HAND)
        reason = f"n1: mode flat is not proven for boot {BOOT}; verified in it: no mode"
        assert case.reason(found) == reason

    def test_only_the_node_of_the_launcher_recorded_its_boot(self, case: Case) -> None:
        """The boot in ``when.json`` is that of the node that ran the command."""
        nodes = case.node("n1"), case.node("n2")
        verified = [("n1", "flat"), ("n2", "flat")]
        found = case.conditions(*nodes, verified=verified, **BY_HAND)
        assert case.reason(found, hosts=["n1", "n2"]) == ""
        assert case.reason(found, hosts=["n2"], boot_id=LATER_BOOT) == ""
        assert case.reason(found, boot_id=LATER_BOOT) == (
            f"n1: mode flat is not proven: it ran in boot {LATER_BOOT}, the probes report {BOOT}"
        )

    def test_each_node_of_a_step_is_checked(self, case: Case) -> None:
        nodes = case.node("n1"), case.node("n2")
        found = case.conditions(*nodes, **BY_HAND)
        problem = f"mode flat is not proven for boot {BOOT}; verified in it: no mode"
        assert case.reason(found, hosts=["n1", "n2"]) == f"n1: {problem}; n2: {problem}"

    @pytest.mark.parametrize(
        "line", ['{"state": "verified", "event": "result", "mode": "flat"}', "garbage"]
    )
    def test_a_damaged_journal_is_the_reason(self, case: Case, line: str) -> None:
        conditions = case.conditions(verified=[("n1", "flat")])
        with Journal(case.run.folder, "n1").path.open("a") as file:
            file.write(f"{line}\n")
        conditions = case.conditions(case.node(), **BY_HAND)
        reason = case.reason(conditions)
        assert reason.startswith("n1: mode flat is not proven: ")
        assert "n1.jsonl" in reason

    @pytest.mark.parametrize(
        ("state", "event", "mode"),
        [
            ("verified", "intent", "flat"),
            ("staged", "result", "flat"),
            ("verified", "result", "original"),
        ],
    )
    def test_only_the_result_of_a_verification_is_a_proof(
        self, case: Case, state: str, event: str, mode: str
    ) -> None:
        journal = Journal(case.run.folder, "n1")
        write = journal.intent if event == "intent" else journal.result
        write(state, mode=mode, seen={"boot_id": BOOT})
        found = case.conditions(case.node(), **BY_HAND)
        assert case.reason(found).endswith("verified in it: no mode")


class TestOtherMode:
    def test_one_other_verified_mode_is_another_mode(self, case: Case) -> None:
        found = case.conditions(case.node(numa=()), verified=[("n1", "cache")])
        assert case.reason(found) == "n1 was in mode cache, planned in flat"
        assert case.reason(found, "cache") == ""

    def test_two_verified_modes_are_ambiguous(self, case: Case) -> None:
        verified = [("n1", "cache"), ("n1", "snc4")]
        assert case.reason(case.conditions(case.node(numa=()), verified=verified)) == ""

    def test_a_report_without_its_boot_has_no_mode(self, case: Case) -> None:
        found = case.conditions(case.node(boot="", numa=()), verified=[("n1", "cache")])
        assert case.reason(found, boot_id=None) == ""

    def test_other_domains_than_those_of_the_mode(self, case: Case) -> None:
        found = case.conditions(case.node())
        assert case.reason(found, "flat") == ""
        reason = "n1 reported 2 × 93 GiB with 20 CPUs; mode cache has 2 × 9 GiB with 20 CPUs"
        assert case.reason(found, "cache") == reason
        assert case.reason(found, "unknown") == ""

    def test_a_domain_without_cpus_is_another_domain(self, case: Case) -> None:
        domains = case.sound.newest.numa
        more = domains[0].model_copy(update={"cpus": type(domains[0].cpus)()})
        found = case.conditions(case.node(numa=(*domains, more)))
        shown = "n1 reported 2 × 93 GiB with 20 CPUs, 1 × 93 GiB with no CPUs; mode flat has "
        assert case.reason(found).startswith(shown)
        assert case.reason(case.conditions(case.node(numa=tuple(reversed(domains))))) == ""

    @pytest.mark.parametrize(
        "facts",
        [
            {"origin": "emulated"},
            {"origin": "emulated", "host_cpus": list(range(40))},
        ],
    )
    def test_a_virtual_node_has_the_domains_of_another_machine(
        self, case: Case, facts: dict[str, Any]
    ) -> None:
        assert case.reason(case.conditions(case.node(), **facts), "cache") == ""

    def test_an_unreadable_topology_declares_no_domains(self, case: Case) -> None:
        modes = {**MODES, "flat": {"topology": "lost.xml"}}
        assert case.reason(case.conditions(case.node(), modes=modes)) == ""


class TestFileSystem:
    def conditions(self, case: Case, *mounts: MountedFileSystem, **scratch: Any) -> Conditions:
        facts = {"path": "/scratch/runs", "type": "lustre", "source": "a:/s", **scratch}
        return case.conditions(case.node(mounts=mounts), scratch=facts)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({}, ""),
            ({"kind": "xfs"}, "xfs (a:/s)"),
            ({"source": "b:/s"}, "lustre (b:/s)"),
            ({"kind": "xfs", "source": "b:/s"}, "xfs (b:/s)"),
        ],
    )
    def test_type_and_source_must_be_as_planned(
        self, case: Case, changes: dict[str, str], reason: str
    ) -> None:
        mount = SCRATCH_MOUNT.model_copy(update=changes)
        found = case.reason(self.conditions(case, mount), step={"bytes": 1})
        planned = f"n1 had {reason} at /scratch/runs, planned on lustre a:/s"
        assert found == (planned if reason else "")

    @pytest.mark.parametrize(
        ("scratch", "planned"),
        [
            ({"type": None}, "b:/s"),
            ({"source": None}, ""),
            ({"type": None, "source": None}, ""),
        ],
    )
    def test_only_what_is_planned_is_compared(
        self, case: Case, scratch: dict[str, None], planned: str
    ) -> None:
        other = SCRATCH_MOUNT.model_copy(update={"source": "c:/s"})
        found = case.reason(self.conditions(case, other, **scratch), step={"bytes": 1})
        assert found == (
            "n1 had lustre (c:/s) at /scratch/runs, planned on a:/s" if planned else ""
        )

    @pytest.mark.parametrize(
        ("off_root", "target", "wrong"),
        [(True, "/", True), (True, "/scratch", False), (False, "/", False)],
    )
    def test_a_scratch_may_have_to_be_on_another_mount_than_the_root(
        self, case: Case, off_root: bool, target: str, wrong: bool
    ) -> None:
        mount = SCRATCH_MOUNT.model_copy(update={"target": target})
        facts = {"type": None, "source": None, "off_root": off_root}
        found = case.reason(self.conditions(case, mount, **facts), step={"bytes": 1})
        planned = "n1 had lustre (a:/s) at /scratch/runs, planned on another than /"
        assert found == (planned if wrong else "")

    @pytest.mark.parametrize(
        ("step", "writes"),
        [
            ({}, False),
            ({"bytes": 1}, True),
            ({"arguments": ["-o", f"{SCRATCH}/file"]}, True),
            ({"environment": {"OUT": SCRATCH}}, True),
            ({"inputs": {"in.txt": f"out = {SCRATCH}\n"}}, True),
            ({"arguments": ["-o", "file"], "inputs": {"in.txt": SCRATCH}}, True),
        ],
    )
    def test_only_a_step_that_uses_the_scratch_folder_is_checked(
        self, case: Case, step: dict[str, Any], writes: bool
    ) -> None:
        other = SCRATCH_MOUNT.model_copy(update={"kind": "xfs"})
        found = case.reason(self.conditions(case, other), step=step)
        assert (found != "") is writes

    def test_a_node_without_mounts_is_not_judged(self, case: Case) -> None:
        assert case.reason(self.conditions(case), step={"bytes": 1}) == ""

    @pytest.mark.parametrize(
        ("of_step", "declared", "checked"),
        [("fast", True, False), ("fast", False, True), (None, True, True)],
    )
    def test_a_further_file_system_is_not_compared_with_the_scratch(
        self, case: Case, of_step: str | None, declared: bool, checked: bool
    ) -> None:
        other = case.node(mounts=(SCRATCH_MOUNT.model_copy(update={"kind": "xfs"}),))
        scratch = {"path": "/scratch/runs", "type": "lustre"}
        facts: dict[str, Any] = {"scratch": scratch}
        if declared:
            facts["file_systems"] = [{"name": "fast", "path": "/fast"}]
        found = case.conditions(other, **facts)
        step = {"bytes": 1, "file_system": of_step}
        assert (case.reason(found, step=step) != "") is checked


class TestReasons:
    def test_the_attempts_of_other_steps_do_not_count(self, case: Case) -> None:
        bad = case.node(numa=(), number=1)
        found = case.conditions(bad, verified=[("n1", "cache")])
        assert case.reason(found, job_attempt="j/attempt-2") == (
            "the state of n1 is not proven: nodes/n1.json has no report of the job"
        )
        assert case.reason(found, job_attempt="j/attempt-1") == (
            "n1 was in mode cache, planned in flat"
        )

    def test_each_mode_and_step_is_checked_by_itself(self, case: Case) -> None:
        """The checks of a node are cached."""
        mounts = (SCRATCH_MOUNT.model_copy(update={"kind": "xfs"}),)
        scratch = {"path": "/scratch/runs", "type": "lustre"}
        found = case.conditions(case.node(mounts=mounts), scratch=scratch)
        writes = {"bytes": 1, "id": "other"}
        for _ in range(2):
            assert case.reason(found) == ""
            assert case.reason(found, step=writes).startswith("n1 had xfs (a:/s)")
            assert case.reason(found, "cache").startswith("n1 reported 2 × 93 GiB")

    def test_the_same_reason_of_two_attempts_is_reported_once(self, case: Case) -> None:
        first, second = (case.node(numa=(), number=number).jobs[0] for number in (1, 2))
        node = Node(host="n1", jobs=(first, second))
        found = case.conditions(node, verified=[("n1", "cache")])
        reason = case.reason(found, job_attempt="")  # by hand, in the boot of both attempts
        assert reason == "n1 was in mode cache, planned in flat"

    def test_a_damaged_probe_is_the_reason(self, case: Case) -> None:
        steps = (case.step.id,)
        what = {"file": "n1.before", "problem": "cut"}
        probe = DamagedProbe(job="j", attempt=1, steps=steps, code="cut", **what)
        node = Node(host="n1", jobs=(), damaged=(probe,))
        assert case.reason(case.conditions(node)) == "n1.before is damaged: cut"
        assert case.reason(case.conditions(node), hosts=["n1.site"]) == "n1.before is damaged: cut"

    def test_an_error_of_the_node_precedes_its_mode(self, case: Case) -> None:
        node = case.node(numa=())
        (job,) = node.jobs
        what = {"file": "p", "problem": "cut"}
        probe = DamagedProbe(job="j", attempt=1, steps=job.steps, code="cut", **what)
        other = {"damaged": (probe,)}
        found = case.conditions(node.model_copy(update=other), verified=[("n1", "cache")])
        assert case.reason(found) == "p is damaged: cut; n1 was in mode cache, planned in flat"

    @pytest.mark.parametrize("name", ["n1", "n1.site.org"])
    def test_a_node_and_its_journal_may_have_the_whole_name(self, case: Case, name: str) -> None:
        found = case.conditions(case.node(name, numa=()), verified=[(name, "cache")], **BY_HAND)
        assert case.reason(found, "cache", hosts=["n1.site.org"]) == ""
        reason = case.reason(found, hosts=["n1.site.org"])
        assert reason.startswith(f"{name} was in mode cache, planned in flat; n1.site.org: mode ")


class TestMount:
    def mount(self, target: str, source: str) -> MountedFileSystem:
        return MountedFileSystem(source=source, target=target, kind="x", options="")

    @pytest.mark.parametrize(
        ("path", "source"),
        [("/a/b/c", "deep"), ("/a/b", "deep"), ("/a/bc", "last"), ("/a", "last"), ("/b", "root")],
    )
    def test_the_deepest_and_last_mount_counts(self, path: str, source: str) -> None:
        mounts = [
            self.mount("/a/b/", "deep"),
            self.mount("/a", "first"),
            self.mount("/", "root"),
            self.mount("/a", "last"),
        ]
        found = mount_of(path, mounts)
        assert found is not None and found.source == source
