"""From the folder of a run to its verdict and the files of the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from proofmark.common.files import replacing, write_whole, write_whole_bytes
from proofmark.common.parallel import gc_paused, parallel_map
from proofmark.common.parquet import parquet
from proofmark.judge.baseline.circumstances import Circumstances
from proofmark.judge.baseline.of_run import BaselineOfRun
from proofmark.judge.claims_of_runs import answers_of
from proofmark.judge.degraded import degraded
from proofmark.judge.diagnosis.bad_nodes import bad_nodes
from proofmark.judge.diagnosis.disagreeing import disagreements
from proofmark.judge.diagnosis.file_system_faults import file_system_faults, of_servers
from proofmark.judge.diagnosis.rma import as_csv, rma
from proofmark.judge.diagnosis.slow_targets import of_target, slow_targets
from proofmark.judge.links.paths import paths_of
from proofmark.judge.verdict import Verdict, judge
from proofmark.judge.verdict_files import write_junit, write_verdict
from proofmark.records.columns import Records
from proofmark.records.read import read_run, table
from proofmark.runs.adopted import sources_of
from proofmark.runs.job_folder import stopped_jobs
from proofmark.runs.nodes import nodes_of
from proofmark.runs.predicted import read_expected
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.runs.stage_faults import read_stage_faults
from proofmark.software.software import software_of

MANY = 20_000
"""From this number of results on, each file is written by another process."""


def judge_run(run: Run) -> Verdict:
    """Return the verdict of `run`. Writes nothing."""
    return read_and_judge(run)[1]


def judge_and_write(run: Run) -> Verdict:
    """Return the verdict of `run`; write records.parquet, verdict.json, junit.xml and rma.csv."""
    records, verdict = read_and_judge(run)
    write_results(run, records, verdict)
    return verdict


def write_results(run: Run, records: Records, verdict: Verdict) -> None:
    """Write records.parquet, verdict.json, junit.xml and rma.csv."""
    with gc_paused():
        _write_results(run, records, verdict)


def _write_results(run: Run, records: Records, verdict: Verdict) -> None:
    claims = answers_of([(run, verdict)])
    files: dict[Path, Callable[[TextIO], None]] = {
        run.files.verdict: lambda file: write_verdict(file, verdict, claims),
        run.files.junit: lambda file: write_junit(file, verdict),
    }

    def write(path: Path) -> None:
        with replacing(path) as file:
            files[path](file)

    for _ in parallel_map(write, files, large=len(verdict.results) > MANY):
        pass
    write_whole_bytes(run.files.records, parquet(table(records)))
    facts = {host: node.newest for host, node in nodes_of(run).items() if node.jobs}
    write_whole(run.files.vendor_list, as_csv(rma(verdict.bad.nodes, facts)))


def read_and_judge(run: Run) -> tuple[Records, Verdict]:
    """Return the records and the verdict of `run`. Writes nothing."""
    with gc_paused():
        return _read_and_judge(run)


def _read_and_judge(run: Run) -> tuple[Records, Verdict]:
    benchmarks, site = benchmarks_of(run), site_of(run)
    software = software_of(run)
    nodes = nodes_of(run)
    records = read_run(run, benchmarks, site, software, nodes)
    partition = site.partition
    facts = {host: node.newest for host, node in nodes.items() if node.jobs}
    verdict = judge(
        run.id,
        run.plan,
        records,
        benchmarks,
        partition.limits,
        facts,
        partition.family_level,
        stopped_jobs(run),
        partition.rated_hardware,
        site.distance,
        paths_of(partition.fabric, site.partition_hosts or site.hosts),
        BaselineOfRun(run.files.baseline, Circumstances(site, facts, software))
        if run.files.baseline.is_dir()
        else None,
        partition.fabric.network is not None,
        read_expected(run.files.expected) if run.files.expected.exists() else None,
    )
    places = {host: site.location(host) for host in site.hosts}
    failed = list(verdict.of("FAIL"))
    broken = file_system_faults(run.files, run.plan, verdict.results, partition.scratch.path)
    of_nodes = [
        result for result in failed if not of_target(result) and not of_servers(broken, result)
    ]
    slow_ends = verdict.links.hosts if verdict.links else {}
    measured, judged = verdict.measured(), verdict.judged()
    bad = bad_nodes(of_nodes, measured, nodes, places, slow_ends, judged, verdict.lost)
    unmeasured = {each.step for each in verdict.coverage.missing}
    hosts = site.partition_hosts or site.hosts
    lacking = degraded(run.plan, hosts, measured, unmeasured)
    found = replace(
        verdict,
        bad=bad,
        targets=slow_targets(failed),
        disagreements=disagreements(verdict.results.aggregates, verdict.fleet.of, sources_of(run)),
        file_systems=broken,
        stage_faults=read_stage_faults(run),
    )
    return records, found.labelled(lacking)
