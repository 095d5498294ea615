"""Validity conditions: the mode and the file system of a node while it measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.judge.judging import judge_run
from proofmark.records.scratch_files import mount_of
from proofmark.runs.journal import Journal
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, site_of
from proofmark.site.node.parts import Mount

RATES = {f"n{number:02d}": 100.0 + number / 10 for number in range(8)}
NODE = "pack:2 [numa(memory={0}GiB)] core:20 pu:1"
LUSTRE = "| 10.1.1.1@o2ib:/scratch /scratch lustre rw,flock 0 0"
BOOT = "0b3c8a1e-6f6a-4d0e-9d44-aaaabbbbcccc"


NO_PROBE = "no probe before or after the step reports the boot"


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
    assert not injected or found["n03"].endswith("mode flat has 2 × 94 GiB with cpus")


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
    mounts = [Mount(source=f"{i}", target=each, kind="x", options="") for i, each in enumerate(
        ("/", "/scratch", "/scratch/deep", "/")
    )]  # fmt: skip
    found = mount_of(path, mounts)
    assert found is not None
    assert (found.target, found.source) == (target, {"/": "3", "/scratch": "1"}[target])


def test_without_mounts_a_path_has_no_mount() -> None:
    assert mount_of("/scratch", []) is None


OF_THE_PROBES = "2a0c0f5e-1111-4222-8333-444455556666"
RECORDED = {"attempt": "{job}/attempt-1", "boot": OF_THE_PROBES}
FIRMWARE = {**declared(94), "firmware": {"back_end": "manual"}}
HOUR = {"date: 2026-11-21T10": "date: 2026-11-21T11"}
ERROR = {"edac/mc0/ue_count: 0": "edac/mc0/ue_count: 1"}


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
