"""Counts the jobs of a stability run by cause, its time, its availability and its risks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import Any

from proofmark.cases.reader.engine import read_output
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import KindJudge
from proofmark.judge.verdict import Verdict
from proofmark.packages.stability.counts import FailedJob
from proofmark.packages.stability.counts import JobTally as JobTally
from proofmark.packages.stability.evidence_of_jobs import endings_of, nodes_lost
from proofmark.packages.stability.job_causes import INVALID, JobEnd
from proofmark.packages.stability.sampling import CASE, risks_of
from proofmark.packages.stability.seen_nodes import seen_nodes, window_of
from proofmark.packages.stability.stability_plan import StabilityTest, counted_plan, test_of
from proofmark.records.columns import Record, Records
from proofmark.runs.run import Run, site_of
from proofmark.runs.stability_log import (
    JobRun,
    Look,
    Span,
    damaged_histories,
    job_runs,
    length,
    moment,
    read_looks,
    seen_spans,
)
from proofmark.site.contract_document import CAUSES, Contract, ContractItem, JobCause, weaker_terms

_MOST = 5
"""The number of damaged lines that a message names."""


def tally_of(run: Run, items: Sequence[ContractItem] = ()) -> JobTally:
    """Return the counts of a stability run."""
    test, contract = test_of(run.plan), site_of(run).contract
    runs, (looks, lines) = job_runs(run), read_looks(run.files)
    causes, faulty = endings_of(run, runs)
    found = tally(test, runs, causes, looks, faulty)
    of_items = (risks_of(item, found.hours, found.ended, test.good, test.bad) for item in items)
    numbers = ", ".join(map(str, lines[:_MOST]))
    about: dict[str, str | int] = {
        "file": run.files.node_states.name,
        "count": len(lines),
        "lines": numbers,
    }
    return replace(
        found,
        risks=tuple(each for each in of_items if each),
        damaged=(Message("stability-lines", **about),) if lines else (),
        damaged_jobs=tuple(damaged_histories(run)),
        weaker=tuple(_weaker(test, contract)),
    )


def _weaker(test: StabilityTest, contract: Contract | None) -> Iterator[Message]:
    """Yield the terms of the contract that a plan does not meet."""
    if contract and contract.stability:
        terms = test.hours / 24, test.load, test.restart_on
        for name, found, agreed in weaker_terms(contract.stability, *terms):
            yield Message("stability-term", name=name, found=found, agreed=agreed)


def tally(
    test: StabilityTest,
    runs: Sequence[JobRun],
    causes: Sequence[JobEnd | None],
    looks: Sequence[Look],
    faulty: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> JobTally:
    """Return the counts of jobs; a job that the kit withdrew counts only if it failed.

    Args:
        test: what the run counts.
        causes: why each did not finish.
        looks: at the nodes.
        faulty: the nodes whose hardware failed, by the id of the job.
    """
    both = [
        (each, cause)
        for each, cause in zip(runs, causes, strict=True)
        if cause or not each.withdrawn
    ]
    spans = seen_spans(looks, [each for each, _ in both])
    starts = [each.started for each, _ in both if each.started == each.started]
    again = [each.ended for each, cause in both if cause in test.restart_on]
    begin = max([min(starts, default=inf), *again])
    end = moment(spans, begin, 3600 * test.hours)
    # A job that never ran counts from its end: the scheduler refused or lost it.
    within = [
        (each, cause)
        for each, cause in both
        if begin <= (each.ended if each.started != each.started else each.started) <= end
        and not (each.ended <= begin and again)
    ]
    jobs = [each for each, _ in within]
    failed = [(each, cause) for each, cause in within if cause and cause != INVALID]
    seconds = length(spans, begin, end)
    counts = Counter(cause for _, cause in failed)
    nodes_failed = [each for each, cause in failed if cause == "node"]
    lost = set(chain.from_iterable(_lost(each, looks, faulty) for each in nodes_failed))
    window, looked = window_of(begin, end, jobs, looks), seen_spans(looks, ())
    others = (each for each, cause in failed if cause != "node")
    blind = set(chain.from_iterable(each.job.nodes for each in others if _ran_unseen(each, looked)))
    return JobTally(
        begin,
        end,
        seconds / 3600,
        test.hours,
        started=sum(each.started == each.started for each in jobs),
        finished=sum(not cause and not each.open for each, cause in within),
        invalid=sum(cause == INVALID for _, cause in within),
        running=sum(each.open and each.started == each.started for each in jobs),
        failed={cause: counts[cause] for cause in CAUSES},
        failures=tuple(_failed(each, cause) for each, cause in failed),
        restarts=len(again),
        nodes=len(test.hosts),
        lost=tuple(sorted(lost)),
        lost_unseen=tuple(sorted(blind - lost)),
        seen=seen_nodes(test.hosts, looks, window),
        load=_load(test.hosts, jobs, seconds, [window]),
        load_seen=_load(test.hosts, jobs, seconds, _within(looked, window)),
    )


def _failed(each: JobRun, cause: JobCause) -> FailedJob:
    case, nodes = each.job.steps[0].case, tuple(each.job.nodes)
    return FailedJob(each.job.id, case, nodes, each.ended, cause, each.state.value, each.reason)


def _lost(each: JobRun, looks: Sequence[Look], faulty: Mapping[str, Collection[str]]) -> set[str]:
    """Return the nodes that a job lost; the first one if nothing shows which."""
    return {*nodes_lost(each, looks), *faulty.get(each.job.id, ())} or {each.job.nodes[0]}


def _within(spans: Sequence[Span], window: Span) -> list[Span]:
    return [(max(low, window[0]), min(high, window[1])) for low, high in spans]


def _ran_unseen(each: JobRun, looked: Sequence[Span]) -> bool:
    """Return whether nobody looked for a part of the time of a job."""
    return each.started <= each.ended and length(looked, each.started, each.ended) < (
        each.ended - each.started
    )


def _load(
    hosts: Sequence[str], runs: Sequence[JobRun], seconds: float, spans: Sequence[Span]
) -> float:
    """Return the share of `seconds` that nodes run jobs within `spans`."""
    busy = sum(
        len(each.job.nodes) * length(spans, each.started, each.ended)
        for each in runs
        if each.started <= each.ended
    )
    return min(1.0, busy / (len(hosts) * seconds)) if seconds else 0.0


def counted(evidence: Evidence, found: JobTally, origin: str) -> Evidence:
    """Return the evidence of a stability run: its counts, once its time is over.

    Its programs are the load: their rates are no figures of the verdict.
    """
    plan = counted_plan(evidence.plan)
    step, case = next(plan.steps()), evidence.benchmarks.case(CASE)
    of_run = {"run": evidence.run, "step": step.id, "system": plan.system, "origin": origin}
    where = {"partition": plan.partition, "node": folded(step.nodes), "mode": plan.current_mode}
    fixed: dict[str, Any] = {**of_run, **where, "placement": "", "environment_hash": ""}
    readings = read_output(case.reader(), CASE, found.text(), None) if found.over else ()
    records = [
        Record(
            **fixed,
            attempt=1,
            repeat=1,
            case=each.case,
            benchmark=each.benchmark,
            metric=each.metric,
            value=each.value,
            unit=each.unit,
            parameters=each.parameters,
            valid=each.valid,
            reason=each.reason,
        )
        for each in readings
    ]
    if found.over and found.availability is None:
        why = Message("stability-not-seen", hours=f"{found.seen.hours:.4g}")
        fixed |= {"case": CASE, "benchmark": CASE, "metric": "availability", "unit": "%"}
        fixed |= {"attempt": 1, "repeat": 1, "value": None, "parameters": {}, "valid": False}
        records.append(Record(**fixed, reason=why))
    doubts = {(CASE, metric): doubt for metric, doubt in found.doubts.items()}
    made = Records.of(records, evidence.run)
    return replace(evidence, plan=plan, records=made, doubts=doubts)


class StabilityJudge(KindJudge):
    """Judges the counts of the jobs, not what they measured."""

    def judge(self, run: Run, evidence: Evidence) -> Verdict:
        """Return the verdict with its `JobTally`."""
        site = site_of(run)
        found = tally_of(run, [*site.items.values()])
        evidence = counted(evidence, found, site.partition.origin)
        evidence = replace(evidence, stopped=(*found.damaged, *found.damaged_jobs))
        return replace(super().judge(run, evidence), of_kind=found)
