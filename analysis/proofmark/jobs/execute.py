"""Runs the jobs of a run through the site's scheduler, and says how far they are."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from proofmark.common.errors import Stopped
from proofmark.common.nodesets import folded
from proofmark.common.text import duration
from proofmark.jobs.watch import JobMonitor
from proofmark.machine.scheduler import scheduler
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import JobFolder, complete
from proofmark.runs.journal import proven
from proofmark.runs.lock import lock
from proofmark.runs.progress import Progress, progress
from proofmark.runs.run import Run, site_of

_SAY_EVERY_S = 30.0


class Pollable(Protocol):
    """A task that is polled until it is done, and can be cancelled."""

    @property
    def pause(self) -> float:
        """Seconds until the next turn."""

    def poll(self) -> bool:
        """Do what can be done now; return whether anything is left."""

    def cancel(self, why: str) -> None:
        """Stop all that was started."""


def execute(run: Run, scheduler_name: str, say: Callable[[str], None]) -> None:
    """Run every unfinished job of `run` whose nodes are in its mode.

    Jobs of another mode are not run: their figures would be this mode's under another name. Where
    the firmware can be set, the journal must prove the mode of each node: a node without that proof
    measures nothing, and a step that needs it together with others is not run. A job
    that its scheduler ends, or that comes to nothing within the site's bounds, is named and stops
    no other; the same command goes on with it.

    `say` gets one line whenever a step or a job starts or ends, and every half minute.

    Raises:
        BadInput: somebody else runs it, or a job's script failed; the message says why.
        Stopped: SIGINT or SIGTERM came; the jobs have been stopped in order.
    """
    scheduler(scheduler_name)
    with lock(run):
        queue = site_of(run).partition.queue
        for group in run.plan.to_run():
            unfinished: list[Job] = []
            without: dict[str, str] = {}
            for job in group.jobs:
                if complete(run, job):
                    continue
                missing = unverified_nodes(run, job.nodes, group.mode)
                rest = _without_nodes(job, missing)
                rest = rest if rest and not complete(run, rest) else None
                if missing:
                    why = without[job.id] = f"{format_reasons(missing)} (mode {group.mode})"
                    say(f"job {job.id}: {'without' if rest else 'NOT RUN:'} {why}")
                if rest:
                    unfinished.append(rest)
                else:
                    JobFolder(run, job).not_run(scheduler_name, without[job.id])
            jobs = JobMonitor(run, unfinished, scheduler_name, queue, say, without=without)
            poll_until_done(jobs, ProgressReporter(run, jobs, say).look)


def _without_nodes(job: Job, missing: Collection[str]) -> Job | None:
    """Return what of `job` can do without the nodes `missing`, if anything."""
    if not missing:
        return job
    nodes = [node for node in job.nodes if node not in missing]
    steps = [step for step in job.steps if step.scope != "job"]
    return job.model_copy(update={"nodes": nodes, "steps": steps}) if nodes and steps else None


def unverified_nodes(run: Run, nodes: Sequence[str], mode: str) -> dict[str, str]:
    """Return those of `nodes` that are not proven to be in `mode`, each with the reason."""
    firmware = site_of(run).partition.firmware
    return proven(run.folder, nodes, mode) if firmware else {}


def format_reasons(missing: Mapping[str, str]) -> str:
    """Return nodes and reasons in words, nodes of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for node, why in missing.items():
        by_reason.setdefault(why, []).append(node)
    return "; ".join(f"{folded(nodes)}: {why}" for why, nodes in by_reason.items())


def poll_until_done(work: Pollable, look: Callable[[], None]) -> None:
    """Do `work` to its end, looking after each turn.

    Raises:
        Stopped: SIGINT or SIGTERM came; the work has been stopped in order.
    """
    with _noted_signals() as received:
        try:
            while work.poll():
                if received:
                    raise Stopped(received[0])
                look()
                time.sleep(work.pause)
        except BaseException as error:
            work.cancel(f"stopped by {error}" if isinstance(error, Stopped) else "stopped")
            raise
        look()
        if received:
            raise Stopped(received[0])


@contextmanager
def _noted_signals() -> Iterator[list[str]]:
    """Note SIGINT and SIGTERM by name; what was started has to be stopped in order first."""
    received: list[str] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(signal.Signals(number).name)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class ProgressReporter:
    """Says the progress when it changed, or after half a minute of silence."""

    def __init__(self, run: Run, jobs: JobMonitor, say: Callable[[str], None]) -> None:
        self._run, self._jobs, self._say = run, jobs, say
        self._current: Progress | None = None
        self._last: object = None
        self._moment = 0.0

    def look(self) -> None:
        """Report the progress of the run and the state of its jobs."""
        self._current = current = progress(self._run, active=True, before=self._current)
        jobs = self._jobs.line
        key = (current.done, tuple(step.step.id for step in current.running), jobs)
        if key == self._last and time.monotonic() - self._moment < _SAY_EVERY_S:
            return
        self._last, self._moment = key, time.monotonic()
        self._say(" · ".join(filter(None, (current.line(), jobs))))


def summary(run: Run) -> str:
    """Return one line for the end of the run stage."""
    states = progress(run, active=False)
    took = sum(step.seconds or 0.0 for step in states.steps)
    failed = f"{states.failed} failed (exit code not 0)"
    return f"{states.done}/{len(states.steps)} steps done, {failed}, {duration(took)}"
