"""The counts of a stability run: its jobs by cause, its time, its availability, its risks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import inf, isfinite
from typing import Any

from proofmark.cases.reader.engine import read_output
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.evidence import Evidence
from proofmark.judge.stability.evidence_of_jobs import causes_of, nodes_lost
from proofmark.judge.stability.sampling import CASE, CONFIDENCE, Risks, mean_time_interval, risks_of
from proofmark.plan.plan import StabilityTest
from proofmark.plan.stability_plan import counted_plan
from proofmark.records.columns import Record, Records
from proofmark.runs.run import Run
from proofmark.runs.stability_log import (
    BLIND_S,
    JobRun,
    Look,
    Span,
    job_runs,
    length,
    looks_at,
    moment,
    seen_spans,
)
from proofmark.site.contract_document import ContractItem
from proofmark.site.stability_terms import CAUSES, JobCause


@dataclass(frozen=True)
class FailedJob:
    """A job that failed: when, on which nodes, and why."""

    job: str
    case: str
    nodes: tuple[str, ...]
    ended: float
    cause: JobCause
    state: str
    reason: str

    @property
    def time(self) -> str:
        """`ended` as ``2026-11-26 05:00:10 UTC``."""
        return f"{datetime.fromtimestamp(self.ended, UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Tally:
    """What a stability run counted, since the last failure that began its time again.

    Attributes:
        begin, end: the time that is judged, in seconds since 1970; `end` is infinite if the run is
            not over.
        hours: the time that counts: that in which the controller looked, or a job ran.
        wanted: the time that the run needs, in hours.
        started: the number of jobs that began.
        finished: those that ended with valid results.
        running: those that have not ended.
        failed: the number of failed jobs by cause; all causes.
        failures: each of them.
        restarts: how often a failure began the time again.
        nodes: the number of nodes.
        lost: the nodes that failed.
        availability: the share of the time that nodes are not down, mean of the nodes.
        load: the share of the time that nodes run jobs, mean of the nodes.
        risks: of the items of the contract.
    """

    begin: float
    end: float
    hours: float
    wanted: float
    started: int
    finished: int
    running: int
    failed: Mapping[JobCause, int]
    failures: tuple[FailedJob, ...]
    restarts: int
    nodes: int
    lost: tuple[str, ...]
    availability: float
    load: float
    risks: tuple[Risks, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the time is over, and no job of it is left."""
        return isfinite(self.end) and not self.running

    @property
    def interrupts(self) -> int:
        """The jobs that failed for another cause than their program."""
        return sum(self.failed.values()) - self.failed["program"]

    @property
    def mtbi(self) -> float:
        """The mean time between interrupts in hours; without one the hours, a lower bound."""
        return self.hours / max(1, self.interrupts)

    @property
    def interval(self) -> tuple[float, float]:
        """The `CONFIDENCE` interval of the mean time between interrupts in hours."""
        return mean_time_interval(self.hours, self.interrupts) if self.hours else (0.0, inf)

    @property
    def label(self) -> Message:
        """The counts, as the first line of a report has them."""
        about = {"finished": self.finished, "started": self.started, "running": self.running}
        failed = ", ".join(f"{cause} {count}" for cause, count in self.failed.items() if count)
        hours = {"hours": f"{self.hours:.4g}", "wanted": f"{self.wanted:.4g}"}
        return Message("stability-counts", failed=failed or "0", **about, **hours)

    def text(self) -> str:
        """Return the counts as the reader of the case `CASE` reads them."""
        ended = self.finished + sum(self.failed.values())
        values = {
            "jobs_started": f"{self.started} jobs",
            "jobs_finished": f"{100 * self.finished / max(1, ended)!r} %",
            "interrupts": f"{self.interrupts} jobs",
            "mtbi": f"{self.mtbi!r} h",
            "mtbi_low": f"{self.interval[0]!r} h",
            "availability": f"{100 * self.availability!r} %",
            "nodes_lost": f"{len(self.lost)} nodes",
            "load": f"{100 * self.load!r} %",
            "hours": f"{self.hours!r} h",
        }
        lines = [f"{name}: {value}" for name, value in values.items()]
        lines += [f"failed: {cause} {count}" for cause, count in self.failed.items()]
        return "\n".join(["stability counts", *lines, "end of stability", ""])

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        low, high = self.interval
        return {
            "over": self.over,
            **{name: getattr(self, name) for name in ("hours", "wanted", "started", "finished")},
            **{name: getattr(self, name) for name in ("running", "restarts", "interrupts", "mtbi")},
            "mtbi_interval": {
                "confidence": CONFIDENCE,
                "low": low,
                "high": high if isfinite(high) else None,
            },
            "failed": dict(self.failed),
            "availability": self.availability,
            "load": self.load,
            "nodes_lost": list(self.lost),
            "failures": [{**vars(each), "nodes": list(each.nodes)} for each in self.failures],
            "risks": [{**vars(each), "line": str(each.message)} for each in self.risks],
        }


def tally_of(run: Run, items: Sequence[ContractItem] = ()) -> Tally:
    """Return the counts of a stability run.

    Args:
        run: the run.
        items: the items of its contract.
    """
    test = run.plan.stability
    assert test is not None
    runs = [each for each in job_runs(run) if not each.withdrawn]
    found = tally(test, runs, causes_of(run, runs), looks_at(run.files))
    jobs = found.finished + sum(found.failed.values())
    of_items = (risks_of(item, found.hours, jobs, test.good, test.bad) for item in items)
    return replace(found, risks=tuple(each for each in of_items if each))


def tally(
    test: StabilityTest,
    runs: Sequence[JobRun],
    causes: Sequence[JobCause | None],
    looks: Sequence[Look],
) -> Tally:
    """Return the counts of jobs; `causes` has why each failed."""
    spans = seen_spans(looks, runs)
    starts = [each.started for each in runs if each.started == each.started]
    both = [*zip(runs, causes, strict=True)]
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
    failed = [(each, cause) for each, cause in within if cause]
    seconds = length(spans, begin, end)
    counts = Counter(cause for _, cause in failed)
    lost = {node for each, cause in failed if cause == "node" for node in _lost(each, looks)}
    return Tally(
        begin,
        end,
        seconds / 3600,
        test.hours,
        started=sum(each.started == each.started for each, _ in within),
        finished=sum(not cause and not each.open for each, cause in within),
        running=sum(each.open and each.started == each.started for each, _ in within),
        failed={cause: counts[cause] for cause in CAUSES},
        failures=tuple(_failed(each, cause) for each, cause in failed),
        restarts=len(again),
        nodes=len(test.hosts),
        lost=tuple(sorted(lost)),
        availability=_available(test.hosts, looks, (begin, end)),
        load=_load(test.hosts, [each for each, _ in within], spans, (begin, end)),
    )


def _failed(each: JobRun, cause: JobCause) -> FailedJob:
    case, nodes = each.job.steps[0].case, tuple(each.job.nodes)
    return FailedJob(each.job.id, case, nodes, each.ended, cause, each.state.value, each.reason)


def _lost(each: JobRun, looks: Sequence[Look]) -> set[str]:
    """Return the nodes that a job lost; the first one if no look shows which."""
    return nodes_lost(each, looks) or {each.job.nodes[0]}


def _available(hosts: Sequence[str], looks: Sequence[Look], window: Span) -> float:
    """Return the share of the time that nodes are not down; after a look they are as it saw them.

    A time in which the controller did not look is left out.
    """
    pairs = pairwise(looks)
    seen = [
        (len(one.down.keys() & {*hosts}), length([(one.time, other.time)], *window))
        for one, other in pairs
        if other.time - one.time <= BLIND_S
    ]
    total = len(hosts) * sum(seconds for _, seconds in seen)
    return 1 - sum(down * seconds for down, seconds in seen) / total if total else 1.0


def _load(
    hosts: Sequence[str], runs: Sequence[JobRun], spans: Sequence[Span], window: Span
) -> float:
    """Return the share of the time that nodes run jobs."""
    seconds = length(spans, *window)
    busy = sum(
        len(each.job.nodes) * length([(each.started, each.ended)], *window)
        for each in runs
        if each.started <= each.ended
    )
    return min(1.0, busy / (len(hosts) * seconds)) if seconds else 0.0


def counted(evidence: Evidence, found: Tally, origin: str) -> Evidence:
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
    return replace(evidence, plan=plan, records=Records.of(records, evidence.run))
