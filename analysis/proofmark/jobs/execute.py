"""Runs the jobs of a run through the scheduler of the site, and reports their progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from proofmark.common.errors import Stopped
from proofmark.common.input_limits import MAX_STEPS
from proofmark.common.nodesets import folded
from proofmark.common.signals import on_stop_signal
from proofmark.common.text import duration
from proofmark.jobs.job_parts import JobSupply, Rolling
from proofmark.jobs.job_request import BatchQueue, batch_of
from proofmark.jobs.job_script import Manner
from proofmark.jobs.ready import FigureReader, ReadySteps
from proofmark.jobs.stability_jobs import Rounds, StabilityWork
from proofmark.jobs.watch import JobMonitor
from proofmark.machine.scheduler import is_down, scheduler
from proofmark.plan.plan import Job
from proofmark.runs.busy_nodes import warning_of_job
from proofmark.runs.job_folder import JobFolder, complete
from proofmark.runs.journal import unverified
from proofmark.runs.progress import Progress, progress
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_lock import lock
from proofmark.runs.stability_log import LOOK_S, Look, add_look
from proofmark.runs.state import planned

_REPORT_EVERY_S = 30.0
ROLLING = Rolling()


class Pollable(Protocol):
    """A task that is polled until it is done, and can be cancelled."""

    @property
    def pause(self) -> float:
        """Seconds until the next poll."""

    def poll(self) -> bool:
        """Continue the task without waiting; return whether it is unfinished."""

    def cancel(self, why: str) -> None:
        """Stop the task; `why` is the reason."""

    def leave(self, why: str) -> None:
        """Stop polling; what goes on without this process goes on."""


def execute(
    run: Run,
    scheduler_name: str,
    say: Callable[[str], None],
    figures: FigureReader | None = None,
    *,
    manner: Manner = Manner.UNFINISHED,
    rolling: Rolling = ROLLING,
) -> str:
    """Run every unfinished job of `run` whose nodes are in its mode.

    Jobs of another mode are not run. If the site can set the firmware, the journal must prove the
    mode of each node: a node without this proof is excluded, and a step that needs it together with
    other nodes is not run. A job that is ended by its scheduler, or that exceeds a limit of the
    site, is reported and stops no other job; the same command continues it.

    A job of a rolling run is submitted when none of its nodes is down, and a script that fails
    stops no other job of it.

    Steps of a search, and steps that read files of others, are submitted when earlier steps of
    theirs have ended (`ReadySteps`).

    Args:
        run: the run.
        scheduler_name: name of the scheduler.
        say: called with one line when a step or a job starts or ends, and every 30 seconds.
        figures: reads the figures of a search; a plan without searches needs none.
        manner: which steps run, and when they stop.
        rolling: which jobs of a rolling run are submitted; other runs do not use it.

    Returns:
        The job and the step by which fail_fast stopped the run; empty if it did not.

    Raises:
        BadInput: another process runs it, or the script of a job failed.
        Stopped: SIGINT or SIGTERM was received; the jobs were cancelled.
    """
    scheduler(scheduler_name)
    batch = batch_of(run, scheduler_name)
    with lock(run.folder):
        for group in run.plan.to_run():
            ready = ReadySteps(run, group, figures, say)
            rolls = rolling if run.plan.rolling else None
            if early := _execute_group(ready, group.mode, batch, manner, rolls, say):
                return early
    return ""


def _execute_group(
    ready: ReadySteps,
    mode: str,
    batch: BatchQueue,
    manner: Manner,
    rolling: Rolling | None,
    say: Callable[[str], None],
) -> str:
    """Run the unfinished jobs of one mode; return as `execute` does."""
    run = ready.run
    excluded: dict[str, str] = {}

    def next_jobs() -> list[Job]:
        return _possible(run, ready.jobs(), mode, batch.scheduler, excluded, say)

    supply = JobSupply(next_jobs(), next_jobs, excluded, rolling)
    jobs = JobMonitor(run, supply, batch, say, manner=manner)
    warns = site_of(run).partition.origin == "measured"
    looks, reporter = NodeLooks(run, jobs), ProgressReporter(ready, jobs, say, warns=warns)

    def report() -> None:
        looks.look()
        reporter.report()

    looks.look()
    poll_until_done(jobs, report)
    looks.look(last=True)
    for job, nodes in jobs.held.items():
        say(f"job {job}: waits for {nodes}")
    return jobs.stopped_early


def execute_rounds(
    run: Run, scheduler_name: str, say: Callable[[str], None], work: StabilityWork, manner: Manner
) -> str:
    """Run the jobs of a stability run until its time is over; continue it if it was interrupted.

    Args:
        run: the run.
        scheduler_name: name of the scheduler.
        say: called with one line when the state of a job, or the counts, changed.
        work: what the run needs of other parts of the kit.
        manner: when its jobs stop.

    Returns, raises: see `execute`.
    """
    # `Rounds.held` decides how many jobs are submitted.
    queue = site_of(run).partition.queue.model_copy(update={"max_jobs": MAX_STEPS})
    batch = BatchQueue(scheduler_name, queue)
    with lock(run.folder):
        rounds = Rounds(run, scheduler_name, work, say)
        while not rounds.over:
            jobs = JobMonitor(run, rounds.supply(), batch, say, manner=manner)
            poll_until_done(jobs, rounds.look)
            if jobs.stopped_early:
                return jobs.stopped_early
            if not (rounds.follow() or rounds.over):
                time.sleep(1)  # no node is up
                rounds.look()
    return ""


def _possible(
    run: Run,
    jobs: Iterable[Job],
    mode: str,
    scheduler_name: str,
    excluded: dict[str, str],
    say: Callable[[str], None],
) -> list[Job]:
    """Return the parts of `jobs` whose nodes are proven to be in `mode`.

    The reasons for nodes that are excluded are added to `excluded`, by id of the job.
    """
    possible: list[Job] = []
    for job in jobs:
        missing = unverified_nodes(run, job.nodes, mode)
        rest = _without_nodes(job, missing)
        if missing and complete(run, job):
            continue  # disturbed steps of a mode that the nodes have left
        if missing:
            reason = excluded[job.id] = f"{format_reasons(missing)} (mode {mode})"
            say(f"job {job.id}: {'without' if rest else 'NOT RUN:'} {reason}")
        if rest:
            possible.append(rest)
        else:
            JobFolder(run, job).not_run(scheduler_name, excluded[job.id])
    return possible


def _without_nodes(job: Job, missing: Collection[str]) -> Job | None:
    """Return the part of `job` that can run without the nodes `missing`; None if there is none."""
    if not missing:
        return job
    nodes = [node for node in job.nodes if node not in missing]
    steps = [step for step in job.steps if step.scope != "job"]
    return job.model_copy(update={"nodes": nodes, "steps": steps}) if nodes and steps else None


def unverified_nodes(run: Run, nodes: Sequence[str], mode: str) -> dict[str, str]:
    """Return the nodes that are not verified in `mode`, each with the reason."""
    firmware = site_of(run).partition.firmware
    return unverified(planned(run).folder, nodes, mode) if firmware else {}


def format_reasons(missing: Mapping[str, str]) -> str:
    """Return nodes and reasons as text; nodes with the same reason are one entry."""
    by_reason: dict[str, list[str]] = {}
    for node, reason in missing.items():
        by_reason.setdefault(reason, []).append(node)
    return "; ".join(f"{folded(nodes)}: {reason}" for reason, nodes in by_reason.items())


def poll_until_done(task: Pollable, report: Callable[[], None]) -> None:
    """Poll `task` until it is done, and call `report` after each poll.

    Only a signal cancels the task. An exception leaves it: its jobs can be hours old.

    Raises:
        Stopped: SIGINT or SIGTERM was received; the task was cancelled.
    """
    received: list[str] = []
    with on_stop_signal(received.append):
        try:
            while task.poll():
                if received:
                    raise Stopped(received[0])
                report()
                time.sleep(task.pause)
        except Stopped as stopped:
            task.cancel(f"stopped by {stopped}")
            raise
        except Exception:
            task.leave("the process that started it has failed")
            raise
        except BaseException:
            task.cancel("stopped")
            raise
        report()
        if received:
            raise Stopped(received[0])


class NodeLooks:
    """Keeps what the scheduler says of the nodes of a run, when its jobs begin, run and end.

    Args:
        run: the run.
        jobs: asks the scheduler.
    """

    def __init__(self, run: Run, jobs: JobMonitor) -> None:
        self._run, self._jobs, self._next = run, jobs, 0.0

    def look(self, *, last: bool = False) -> None:
        """Ask for the states, if the last time was long ago, or if no look follows."""
        if time.monotonic() < self._next and not last:
            return
        self._next = time.monotonic() + LOOK_S
        hosts = self._run.plan.nodes()
        if states := self._jobs.node_states(hosts):
            down = {node: state for node, state in states.items() if is_down(state)}
            unknown = tuple(node for node in hosts if node not in states)
            add_look(self._run.files, Look(time.time(), down, unknown))


class ProgressReporter:
    """Reports the progress of a run when it changed, at least every 30 seconds.

    With `warns` it also reports the other processes on the nodes when a job has begun.
    """

    def __init__(
        self, ready: ReadySteps, jobs: JobMonitor, say: Callable[[str], None], *, warns: bool
    ) -> None:
        self._ready, self._jobs, self._say, self._warns = ready, jobs, say, warns
        self._warned: set[tuple[str, int]] = set()
        self._current: Progress | None = None
        self._last: object = None
        self._moment = 0.0

    def report(self) -> None:
        """Report the progress of the run and the state of its jobs."""
        if self._warns:
            self._warn()
        self._current = current = progress(self._ready.run, active=True, before=self._current)
        jobs = self._jobs.line
        key = (
            current.done,
            len(current.steps),
            tuple(step.step.id for step in current.running),
            current.repeats,
            jobs,
        )
        if key == self._last and time.monotonic() - self._moment < _REPORT_EVERY_S:
            return
        self._last, self._moment = key, time.monotonic()
        self._say(" · ".join(filter(None, (current.line(), jobs))))

    def _warn(self) -> None:
        """Report the other processes that the nodes of a job reported, once for each attempt."""
        for job, earlier in self._jobs.running.items():
            if (job, earlier) in self._warned:
                continue
            warning = warning_of_job(self._ready.run.files, job, earlier)
            if warning is not None:
                self._warned.add((job, earlier))
            if warning:
                self._say(f"job {job}: {warning}")


def summary(run: Run) -> str:
    """Return one line for the end of a run: its done, failed and disturbed steps, their time.

    The time is the sum over the steps. Steps can run at the same time, so that a run can take less.
    """
    states = progress(run, active=False)
    seconds = sum(step.seconds or 0.0 for step in states.steps)
    parts = [
        f"{states.done}/{len(states.steps)} steps done",
        f"{states.failed} failed (exit code not 0)",
        *([f"{len(states.repeats)} disturbed"] if states.repeats else []),
        f"{duration(seconds)} in total",
    ]
    return ", ".join(parts)
