"""Validity conditions of each job of a node: its reports, its mode and its file systems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import write_execution, write_probes, write_software
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import SYMBOLS, make_kit, topology
from tests.folders import PROBES
from tests.unit.records.test_conditions import LUSTRE, declared, facts_of, reasons, run_of

from proofmark.judge.judging import judge_run
from proofmark.plan.expansion import make_plan
from proofmark.records.run_facts import Conditions
from proofmark.runs.attempts import Attempt
from proofmark.runs.journal import Journal
from proofmark.runs.nodes import JobOnNode, Node, nodes_of
from proofmark.runs.run import Run, site_of
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.machines import Machine
from proofmark.site.node.cpu import cpu_list_text
from proofmark.site.node.provenance import node_provenance

EARLY, LATE = ("2026-11-21T10:18:00Z", "2026-11-21T10:19:00Z"), ("2026-11-21T12:00:00Z",) * 2
KNL = """pack:1 [numa(memory=98207MiB)] [numa(memory=16384MiB)]
    l2:34(size=1MiB) core:2 pu:4(indexes=4*68:68*1)"""


def conditions(run: Run, nodes: Mapping[str, Node]) -> Conditions:
    return Conditions(run, site_of(run), nodes)


def test_an_error_of_an_interrupted_job_does_not_affect_the_next_one(tmp_path: Path) -> None:
    """Both attempts have the same step; each has its own error counters."""
    run = run_of(tmp_path, {}, after={"n03": {"edac/mc0/ue_count: 0": "edac/mc0/ue_count: 1"}})
    (job,) = nodes_of(run)["n03"].jobs
    sound = nodes_of(run)["n02"].jobs[0].provenance

    def at(provenance: Any, number: int, times: tuple[str, ...]) -> JobOnNode:
        first = provenance.before.model_copy(update={"date": times[0]})
        last = provenance.after.model_copy(update={"date": times[1]})
        given = provenance.model_copy(update={"before": first, "after": last})
        return job.model_copy(update={"attempt": number, "provenance": given})

    node = Node(host="n03", jobs=(at(job.provenance, 1, EARLY), at(sound, 2, LATE)))
    (step,) = run.plan.steps()
    check = conditions(run, {"n03": node})
    found = [
        check.invalid_reason(step, "current", ["n03"], executed(*times)) for times in (EARLY, LATE)
    ]
    assert found == ["uncorrected memory errors: edac/mc0/ue_count +1", ""]


def executed(start: str, end: str) -> Attempt:
    """Return an execution of an earlier version, which recorded no attempt of a job."""
    return Attempt(1, "", 0, "n03", start, end, False, 1.0, b"[]")


def test_a_state_before_the_mode_change_proves_no_mode(tmp_path: Path) -> None:
    """The journal of a real change has the original state and failures, too."""
    run = run_of(tmp_path, declared(94))
    (boot_id,) = {node.boot_id for node in facts_of(run)}
    journal = Journal(run.folder, "n05")
    seen = {"boot_id": boot_id}
    journal.result("original", address="a", attributes={}, seen=seen)
    journal.result("fail", outcome="OTHER_MODE", text="x", mode="cache", seen=seen)
    assert reasons(run) == {}
    journal.result("verified", mode="cache", seen=seen)
    assert reasons(run) == {"n05": "n05 was in mode cache, planned in flat"}


def test_two_other_modes_of_one_boot_are_ambiguous(tmp_path: Path) -> None:
    run = run_of(tmp_path, declared(94))
    (boot_id,) = {node.boot_id for node in facts_of(run)}
    for mode in ("cache", "hybrid"):
        Journal(run.folder, "n05").result("verified", mode=mode, seen={"boot_id": boot_id})
    assert reasons(run) == {}


@pytest.mark.parametrize(("origin", "invalid"), [("measured", 8), ("emulated", 0)])
def test_an_emulated_node_shows_the_domains_of_the_machine_below_it(
    tmp_path: Path, origin: str, invalid: int
) -> None:
    assert len(reasons(run_of(tmp_path, {**declared(9), "origin": origin}))) == invalid


@pytest.mark.parametrize("injected", [True, False])
def test_a_scratch_that_must_not_be_on_the_root_file_system(tmp_path: Path, injected: bool) -> None:
    scratch = {"path": "/scratch/runs", "off_root": True}
    root = LUSTRE.replace(" /scratch ", " /elsewhere ")
    changes = {"n02": {LUSTRE: root}} if injected else {}
    found = reasons(run_of(tmp_path, {"scratch": scratch}, changes=changes, writes=True))
    assert list(found) == (["n02"] if injected else [])
    assert not injected or found["n02"].endswith(" at /scratch/runs, planned on another than /")


@pytest.mark.parametrize(("mcdram", "invalid"), [(16384, False), (8192, True)])
def test_domains_without_processors_are_part_of_the_mode(
    tmp_path: Path, mcdram: int, invalid: bool
) -> None:
    """In Flat mode a Xeon Phi has a NUMA domain of MCDRAM. This domain has no CPUs."""
    topology = KNL.replace("16384", str(mcdram))
    partition = {"modes": {"flat": {"topology": topology}}, "current_mode": "flat"}
    run = fleet_run(tmp_path, {"n1": 100.0}, partition=partition, one_boot=True)
    (step,) = run.plan.steps()
    text = (PROBES / "knl-7250-quadrant-flat.txt").read_text(encoding="utf-8")
    job = JobOnNode(
        job="j", attempt=1, steps=(step.id,), provenance=node_provenance(text, None, "n1")
    )
    check = conditions(run, {"n1": Node(host="n1", jobs=(job,))})
    reason = check.invalid_reason(step, "flat", ["n1"], executed("2030", "2031"))
    assert bool(reason) == invalid
    expected = "mode flat has 1 × 96 GiB with 272 CPUs, 1 × 8 GiB with no CPUs"
    assert not invalid or reason.endswith(expected)


@pytest.mark.fault("memory-error-uncorrected")
@pytest.mark.parametrize("injected", [True, False])
def test_an_error_of_any_node_of_a_step_makes_it_invalid(tmp_path: Path, injected: bool) -> None:
    """The step of both nodes was started on n1; the error is on n2."""
    kit = make_kit(tmp_path)
    sweep = {"size": 1, "nodes": 2, "ranks": 2, "placement": "other-node"}
    kit.case(suites={"quick": {"sweep": sweep}}, launch="mpi")
    site = kit.site(hosts=("n1", "n2"))
    machine = Machine({**SYMBOLS, "nodes": 2}, topology())
    plan = make_plan(kit.benchmarks(), "quick", site, machine)
    run, _ = start_or_continue(kit.folder / "runs", RunInputs(plan, kit.benchmarks(), site, ""))
    write_software(run, kit.software())
    (step,) = plan.steps()
    binding = [
        {"rank": number, "host": f"n{rank.node + 1}", "cpus": cpu_list_text(rank.cpus)}
        for number, rank in enumerate(step.cpus)
    ]
    assert {entry["host"] for entry in binding} == {"n1", "n2"}
    output = {"stdout": "size 1\nrate 100\nEND\n"}
    write_execution(run.files.step(step.id).folder, "n1", output, binding=binding)
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    name = next(line for line in probe.splitlines() if line.startswith("| hostname: "))
    for host in ("n1", "n2"):
        before = probe.replace(name, f"| hostname: {host}")
        after = before
        if injected and host == "n2":
            after = before.replace("edac/mc0/ue_count: 0", "edac/mc0/ue_count: 1")
        write_probes(run, plan.groups[0].jobs[0].id, host, before, after)
    (result,) = judge_run(run).results
    assert result.record.node == "n[1-2]"
    assert result.record.valid is not injected
    assert not injected or result.reason == "uncorrected memory errors: edac/mc0/ue_count +1"
