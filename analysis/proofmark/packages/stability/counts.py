"""What a stability run counted, and what of it nobody saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isfinite
from typing import Any

from proofmark.common.message import NOTHING, Message
from proofmark.judge.additions import KindResult
from proofmark.judge.evidence import Doubt
from proofmark.packages.stability.sampling import CONFIDENCE, Risks, mean_time_interval
from proofmark.packages.stability.seen_nodes import SeenNodes
from proofmark.packages.stability.stability_plan import KIND
from proofmark.site.contract_document import JobCause

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
