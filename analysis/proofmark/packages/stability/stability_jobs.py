"""Keeps the nodes of a stability run busy, round after round, until its time is over."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proofmark.common.input_limits import MAX_STEPS
from proofmark.common.text import duration
from proofmark.jobs.execute import poll_until_done
from proofmark.jobs.job_request import Arrivals, BatchQueue, JobSupply
from proofmark.jobs.scripts import Execution, KindJobs
from proofmark.jobs.watch import JobMonitor
from proofmark.machine.scheduler import (
    NodeState,
    Scheduler,
    SchedulerError,
    is_closed,
    scheduler,
)
from proofmark.packages.stability.job_causes import causes_of
from proofmark.packages.stability.job_runs import JobRun, job_runs, length, moment, seen_spans
from proofmark.packages.stability.stability_plan import (
    StabilityTest,
    next_round,
    round_s,
    test_of,
    with_round,
)
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import LOOK_S, JobFolder, Look, add_look, looks_at
from proofmark.runs.run import add_growth, site_of
from proofmark.runs.state import lock

_REPORT_EVERY_S = 30.0
DEPTH = 2
"""The number of jobs on a node that are submitted at a time: one runs, and one waits."""


class Rounds:
    """The rounds of a stability run.

    Args:
        asked: the run, and how its jobs are executed.

    Attributes:
        over: whether the time of the run is over.
    """

    def __init__(self, asked: Execution) -> None:
        run = asked.run
        self._run, self._prepare, self._say = run, asked.prepare, asked.say
        self._test: StabilityTest = test_of(run.plan)
        self._site = site_of(run)
        self._scheduler: Scheduler = scheduler(asked.scheduler, self._site.partition.queue)
        runs = job_runs(run)
        self._ended, self._restart = list[JobRun](), 0.0
        self._open = {job.id: job for job in run.plan.jobs()}
        ended = [each for each in runs if not each.open]
        for each in ended:
            if not each.withdrawn:
                self._open.pop(each.job.id, None)
        self._looks, self._last = looks_at(run.files), 0.0
        self._said: tuple[object, ...] = ()
        self._moment = 0.0
        self._seconds, self.over = 0.0, False
        self._take(ended)
        self.look()

    def supply(self) -> JobSupply:
        """Return the jobs that are left, and those that follow."""
        return _Supply([*self._open.values()], self.follow, arrivals=Arrivals(), rounds=self)

    def held(self, jobs: Sequence[Job], waits: Mapping[str, str]) -> dict[str, str]:
        """Return the jobs that are not submitted now, each with the reason.

        Args:
            jobs: those that are left.
            waits: those of them that wait for a node, with the reason.
        """
        if self.over:
            return dict.fromkeys((job.id for job in jobs), "the time is over")
        pending = {job.id for job in jobs}
        submitted = [job for name, job in self._open.items() if name not in pending]
        depth: Counter[str] = Counter()
        for job in submitted:
            depth.update(job.nodes)
        found = dict(waits)
        for job in jobs:
            if job.id not in found and max(depth[node] for node in job.nodes) >= DEPTH:
                found[job.id] = "other jobs are first"
            if job.id not in found:
                depth.update(job.nodes)
        return found

    def follow(self) -> list[Job]:
        """Return the jobs of a new round, if most jobs of the rounds before have ended."""
        self._take_ended()
        self._update()
        if self.over or not self._needed():
            return []
        up = [node for node in self._test.hosts if node not in self._down]
        jobs = next_round(self._run.plan, up)
        if not jobs:
            return []
        plan = with_round(self._run.plan, jobs)
        group = plan.groups[0].model_copy(update={"jobs": jobs})
        add_growth(self._run.folder, [group], self._site)
        self._prepare(replace(self._run, plan=plan.model_copy(update={"groups": [group]})))
        self._run = replace(self._run, plan=plan)
        self._open |= {job.id: job for job in jobs}
        return jobs

    def look(self) -> None:
        """Ask for the states of the nodes, if the last time was long ago; report the counts."""
        now = time.time()
        if now - self._last < min(LOOK_S, 36 * self._test.hours):
            return
        self._look(now)
        self._update()
        self._report()

    def _look(self, now: float) -> None:
        """Keep what the scheduler tells of the nodes. A node that it does not name is not seen."""
        self._last = now
        try:
            states = self._scheduler.nodes(self._test.hosts)
        except SchedulerError:
            return
        own = self._site.partition.queue.reservation
        down = {node: state for node, state in states.items() if is_closed(state, own)}
        seen = Look(now, down, tuple(node for node in self._test.hosts if node not in states))
        self._looks.append(seen)
        add_look(self._run.files, seen)

    @property
    def _down(self) -> Mapping[str, str]:
        return self._looks[-1].down if self._looks else {}

    def _needed(self) -> bool:
        """Return whether the open jobs of nodes that are up are less than half of a round."""
        left = [job for job in self._open.values() if not self._down.keys() & {*job.nodes}]
        busy = self._test.load * len(self._test.hosts) * round_s(self._test)
        return sum(job.wall_s * len(job.nodes) for job in left) < busy / 2

    def _take_ended(self) -> None:
        gone = [job for job in self._open.values() if JobFolder(self._run, job).history()]
        gone = [job for job in gone if not self._run.files.queued(job.id).ticket.exists()]
        group = self._run.plan.groups[0].model_copy(update={"jobs": gone})
        part = replace(self._run, plan=self._run.plan.model_copy(update={"groups": [group]}))
        ended = [each for each in job_runs(part) if not each.withdrawn]
        for each in ended:
            self._open.pop(each.job.id, None)
        self._take(ended)

    def _take(self, ended: Sequence[JobRun]) -> None:
        """Count jobs that ended; those that the kit withdrew only if they failed, as the verdict.

        Begin the time again after the last of the failures for which the terms want it.
        """
        causes: Sequence[str | None] = [None] * len(ended)
        if self._test.restart_on or any(each.withdrawn for each in ended):
            causes = causes_of(self._run, ended)
        for each, cause in zip(ended, causes, strict=True):
            if cause or not each.withdrawn:
                self._ended.append(each)
            if cause in self._test.restart_on:
                self._restart = max(self._restart, each.ended)

    def _update(self) -> None:
        started = [each.started for each in self._ended if each.started == each.started]
        if started:
            spans = seen_spans(self._looks, self._ended)
            begin = max(min(started), self._restart)
            self._seconds = length(spans, begin)
            now, was_over = time.time(), self.over
            self.over = moment(spans, begin, 3600 * self._test.hours) <= now
            if self.over and not was_over and self._last < now:
                self._look(now)  # no time before the end is without a look

    def _report(self) -> None:
        """Report the counts when they changed, at least every `_REPORT_EVERY_S`."""
        key = len(self._ended), len(self._down), self.over
        if key == self._said and time.monotonic() - self._moment < _REPORT_EVERY_S:
            return
        self._said, self._moment = key, time.monotonic()
        spent, whole = duration(self._seconds), duration(3600 * self._test.hours)
        self._say(f"stability: {spent} of {whole}, {key[0]} jobs ended, {key[1]} nodes down")


@dataclass(frozen=True, kw_only=True)
class _Supply(JobSupply):
    """The jobs of a stability run: one that waits stops no other one."""

    rounds: Rounds

    def held(self, jobs: Sequence[Job], nodes: Mapping[str, NodeState]) -> dict[str, str]:  # type: ignore[override]
        return self.rounds.held(jobs, super().held(jobs, nodes))

    def rests(self, free: int, quiet_s: float) -> bool:
        return self.rounds.over


class StabilityJobs(KindJobs):
    """Runs jobs until the time of the run is over."""

    def execute(self, asked: Execution) -> str:
        """Run rounds of jobs; continue the run if it was interrupted."""
        run = asked.run
        # `Rounds.held` decides how many jobs are submitted.
        queue = site_of(run).partition.queue.model_copy(update={"max_jobs": MAX_STEPS})
        batch = BatchQueue(asked.scheduler, queue)
        with lock(run.folder):
            rounds = Rounds(asked)
            while not rounds.over:
                jobs = JobMonitor(run, rounds.supply(), batch, asked.say, manner=asked.manner)
                poll_until_done(jobs, rounds.look)
                if jobs.stopped_early:
                    return jobs.stopped_early
                if not (rounds.follow() or rounds.over):
                    time.sleep(1)  # no node is up
                    rounds.look()
        return ""
