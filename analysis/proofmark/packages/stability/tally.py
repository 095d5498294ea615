"""Counts the jobs of a stability run by cause, its time, its availability and its risks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, get_args

from proofmark.cases.reader.engine import read_output
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.judge.additions import KindResult
from proofmark.judge.evidence import Doubt, Evidence
from proofmark.judge.judging import KindJudge
from proofmark.judge.verdict import Verdict
from proofmark.packages.stability.job_causes import INVALID, JobEnd, endings_of, nodes_lost
from proofmark.packages.stability.job_runs import (
    JobRun,
    Span,
    damaged_histories,
    job_runs,
    length,
    moment,
    seen_pairs,
    seen_spans,
)
from proofmark.packages.stability.sampling import (
    CASE,
    CONFIDENCE,
    Risks,
    mean_time_interval,
    risks_of,
)
from proofmark.packages.stability.stability_plan import KIND, StabilityTest, counted_plan, test_of
from proofmark.packages.stability.stability_run import weaker_terms
from proofmark.packages.stability.terms import JobCause, terms_of
from proofmark.records.columns import Record, Records
from proofmark.runs.job_folder import Look, StoppedJob, read_looks
from proofmark.runs.run import Run, site_of
from proofmark.site.contract_document import Contract, ContractItem


@dataclass(frozen=True)
class SeenNodes:
    """What looks at the nodes show of a time.

    Attributes:
        hours: from the begin to the end of the time.
        looked: the hours of it in which the controller looked at the nodes.
        unseen: the hours of it in which a node was not seen, mean of the nodes.
        up: the share of the time in which nodes were seen to be up, mean of the nodes; None if no
            node was seen. A node that nobody saw is not available.
        up_when_seen: the share of the time in which nodes were seen; None if no node was.
    """

    hours: float
    looked: float
    unseen: float
    up: float | None
    up_when_seen: float | None


def window_of(begin: float, end: float, runs: Sequence[JobRun], looks: Sequence[Look]) -> Span:
    """Return the time that is judged; of a run that is not over, until the last that is known."""
    if isfinite(end):
        return begin, end
    known = [look.time for look in looks[-1:]]
    for each in runs:
        # A job that has not started or ended has NaN, which is not equal to itself.
        known += [time for time in (each.started, each.ended) if time == time]
    return begin, max(known, default=begin)


def seen_nodes(hosts: Sequence[str], looks: Sequence[Look], window: Span) -> SeenNodes:
    """Return what `looks` show of `hosts` in a time. After a look nodes are as it saw them."""
    begin, end = window
    if not -inf < begin < end < inf:
        return SeenNodes(0.0, 0.0, 0.0, None, None)
    wall, looked = end - begin, length(seen_spans(looks, ()), *window)
    down_s = unknown_s = 0.0
    for one, other in seen_pairs(looks):
        seconds = length([(one.time, other.time)], *window)
        down = one.down.keys() & {*hosts}
        down_s += seconds * len(down)
        unknown_s += seconds * len({*one.unknown}.intersection(hosts) - down)
    whole_s, seen_s = len(hosts) * wall, len(hosts) * looked - unknown_s
    unseen_s = whole_s - seen_s
    up = 1 - (down_s + unseen_s) / whole_s if seen_s > 0 else None
    up_when_seen = 1 - down_s / seen_s if seen_s > 0 else None
    hours = wall / 3600, looked / 3600, unseen_s / len(hosts) / 3600
    return SeenNodes(*hours, up, up_when_seen)


OF_JOBS = (
    *("jobs_started", "jobs_finished", "jobs_failed", "interrupts", "mtbi", "mtbi_low"),
    *("nodes_lost", "load"),
)
"""The metrics that are counted from the histories of jobs."""
METRICS = (*OF_JOBS, "availability", "hours")


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
class JobTally(KindResult):
    """What a stability run counted, since the last failure that began its time again.

    Attributes:
        begin, end: the time that is judged, in seconds since 1970; `end` is infinite if the run is
            not over.
        hours: the time that counts: that in which the controller looked, or a job ran.
        wanted: the time that the run needs, in hours.
        started: the number of jobs that began.
        finished: those that ended with valid results.
        invalid: those whose results are no measurement. They did not finish, and did not fail.
        running: those that have not ended.
        failed: the number of failed jobs by cause; all causes.
        failures: each of them.
        restarts: how often a failure began the time again.
        nodes: the number of nodes.
        lost: the nodes that failed.
        seen: how long nodes were seen to be up, and how long nobody looked.
        load: the share of the time that nodes run jobs, mean of the nodes.
        load_seen: the same without the jobs of times in which nobody looked.
        lost_unseen: the nodes of failed jobs, beside `lost`, that ran while nobody looked.
        risks: of the items of the contract.
        damaged: what cannot be read of the looks at the nodes.
        damaged_jobs: what cannot be read of the histories of the jobs.
        weaker: the terms of the contract that the plan of the run does not meet.
    """

    kind = KIND
    can_repeat = False

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
    seen: SeenNodes
    load: float
    load_seen: float
    invalid: int = 0
    lost_unseen: tuple[str, ...] = ()
    risks: tuple[Risks, ...] = ()
    damaged: tuple[Message, ...] = ()
    damaged_jobs: tuple[Message, ...] = ()
    weaker: tuple[Message, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the time is over, and no job of it is left."""
        return isfinite(self.end) and not self.running

    @property
    def ended(self) -> int:
        """The number of jobs that ended."""
        return self.finished + self.invalid + sum(self.failed.values())

    @property
    def availability(self) -> float | None:
        """The share of the time in which nodes were seen to be up; None if nobody looked."""
        return self.seen.up

    @property
    def doubts(self) -> Mapping[str, Doubt]:
        """What the figures are without the time in which nobody looked, by metric.

        A figure of jobs whose history is damaged is not known.
        """
        seen, found = self.seen, dict[str, Doubt]()
        if seen.up is not None and seen.up_when_seen is not None and seen.up_when_seen > seen.up:
            found["availability"] = Doubt(100 * seen.up_when_seen, _unseen(seen.unseen, seen.hours))
        looked = min(self.hours, seen.looked)
        unseen = _unseen(seen.hours - seen.looked, seen.hours)
        if looked < self.hours:
            low = mean_time_interval(looked, self.interrupts)[0] if looked else 0.0
            found["hours"] = Doubt(looked, unseen)
            found["mtbi"] = Doubt(looked / max(1, self.interrupts), unseen)
            found["mtbi_low"] = Doubt(low, unseen)
            found["load"] = Doubt(100 * self.load_seen, unseen)
        if self.lost_unseen:
            found["nodes_lost"] = Doubt(len({*self.lost, *self.lost_unseen}), unseen)
        if self.damaged_jobs:
            why = Message("stability-damaged", text=self.damaged_jobs)
            found |= dict.fromkeys(OF_JOBS, Doubt(None, why))
        if self.weaker:
            why = Message("stability-weaker", text=self.weaker)
            found |= dict.fromkeys(METRICS, Doubt(None, why))
        return found

    @property
    def interrupts(self) -> int:
        """The jobs that failed, without those that are shown to have failed by their program."""
        return sum(self.failed.values()) - self.failed["program"]

    @property
    def mtbi(self) -> float:
        """The mean time between interrupts in hours; without one the hours."""
        return self.hours / max(1, self.interrupts)

    @property
    def interval(self) -> tuple[float, float]:
        """The `CONFIDENCE` interval of the mean time between interrupts in hours."""
        return mean_time_interval(self.hours, self.interrupts) if self.hours else (0.0, inf)

    @property
    def label(self) -> Message:
        """The counts, as the first line of a report has them."""
        about = {"finished": self.finished, "started": self.started, "running": self.running}
        about["invalid"] = self.invalid
        failed = ", ".join(f"{cause} {count}" for cause, count in self.failed.items() if count)
        hours = {"hours": f"{self.hours:.4g}", "wanted": f"{self.wanted:.4g}"}
        return Message("stability-counts", failed=failed or "0", **about, **hours)

    @property
    def last_line(self) -> Message:
        """Nothing: the counts are too long."""
        return NOTHING

    @property
    def failed_nodes(self) -> Mapping[str, str]:
        """The nodes that the run lost."""
        return dict.fromkeys(self.lost, "it failed during the stability run")

    def text(self) -> str:
        """Return the counts as the reader of the case `CASE` reads them."""
        values = {
            "jobs_started": f"{self.started} jobs",
            "jobs_finished": f"{100 * self.finished / max(1, self.ended)!r} %",
            "interrupts": f"{self.interrupts} jobs",
            "mtbi": f"{self.mtbi!r} h",
            "mtbi_low": f"{self.interval[0]!r} h",
            "nodes_lost": f"{len(self.lost)} nodes",
            "load": f"{100 * self.load!r} %",
            "hours": f"{self.hours!r} h",
        }
        if self.availability is not None:
            values["availability"] = f"{100 * self.availability!r} %"
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
            "invalid": self.invalid,
            "mtbi_interval": {
                "confidence": CONFIDENCE,
                "low": low,
                "high": high if isfinite(high) else None,
            },
            "failed": dict(self.failed),
            "availability": self.availability,
            "availability_when_seen": self.seen.up_when_seen,
            "hours_unseen": self.seen.unseen,
            **{
                name: [str(each) for each in found]
                for name in ("damaged", "damaged_jobs", "weaker")
                if (found := getattr(self, name))
            },
            "load": self.load,
            "nodes_lost": list(self.lost),
            "failures": [{**vars(each), "nodes": list(each.nodes)} for each in self.failures],
            "risks": [{**vars(each), "line": str(each.message)} for each in self.risks],
        }


def _unseen(unseen: float, hours: float) -> Message:
    return Message("stability-unseen", unseen=f"{unseen:.4g}", hours=f"{hours:.4g}")


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
    if signed := terms_of(contract):
        terms = test.hours / 24, test.load, test.restart_on
        for name, found, agreed in weaker_terms(signed, *terms):
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
        failed={cause: counts[cause] for cause in get_args(JobCause)},
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
        damaged = (*found.damaged, *found.damaged_jobs)
        evidence = replace(evidence, stopped=[StoppedJob("", each) for each in damaged])
        return replace(super().judge(run, evidence), of_kind=found)
