"""Runs the jobs of a run through the site's scheduler, and says how far they are."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from proofmark.errors import bad_input
from proofmark.modes.journal import proven
from proofmark.plan import Job
from proofmark.progress import Progress, duration, progress, size
from proofmark.runs import Run, lock, site_of
from proofmark.schedulers import Scheduler, State, scheduler

_POLL_S = 0.2
_SAY_EVERY_S = 30.0


class Stopped(Exception):
    """The run was stopped from outside; the same command goes on with it."""


def execute(run: Run, scheduler_name: str, say: Callable[[str], None]) -> None:
    """Run every unfinished job of `run` whose nodes are in its mode, one after the other.

    Jobs of another mode are not run: their figures would be this mode's under another name. Where
    the firmware can be set, the journal must prove the mode of each node.

    `say` gets one line whenever a step starts or ends, and every half minute.

    Raises:
        BadInput: somebody else runs it, or a job failed; the message says why.
        Stopped: SIGINT or SIGTERM came; the job has been stopped in order.
    """
    chosen = scheduler(scheduler_name)
    speaker = _Speaker(run, say)
    with lock(run):
        for group in run.plan.to_run():
            for job in group.jobs:
                if _complete(run, job):
                    continue
                if why := unproven(run, job.nodes, group.mode):
                    say(f"job {job.id}: NOT RUN in mode {group.mode}: {why}")
                else:
                    _run_job(run, job, chosen, speaker)


def unproven(run: Run, nodes: Sequence[str], mode: str) -> str:
    """Return which of `nodes` are not proven to be in `mode`, and why; empty if all are."""
    if site_of(run).partition.firmware is None:
        return ""
    missing = proven(run.folder, nodes, mode)
    several = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return next((f"{node}: {why}{several}" for node, why in missing.items()), "")


def _complete(run: Run, job: Job) -> bool:
    return all((run.folder / "steps" / step.id / "rc").exists() for step in job.steps)


def _run_job(run: Run, job: Job, chosen: Scheduler, speaker: _Speaker) -> None:
    folder = run.folder / "jobs" / job.id
    state, reason = follow(chosen, folder / "job.sh", folder / "messages", speaker.look)
    if state is State.FAILED:
        messages = (folder / "messages").read_text(errors="replace").splitlines()[-3:]
        free = size(shutil.disk_usage(run.folder).free)
        found = f"{reason}; {' / '.join(messages) or 'no message'}; {free} free in {run.folder}"
        raise bad_input(f"job {job.id}", "", found, "a job that runs all its steps")


def follow(
    chosen: Scheduler, script: Path, log: Path, look: Callable[[], None]
) -> tuple[State, str]:
    """Run `script` to its end, looking now and then; return how it ended and why.

    Raises:
        Stopped: SIGINT or SIGTERM came; the script has been stopped in order.
    """
    with _noted_signals() as received:
        ticket = chosen.submit(script, log)
        try:
            while (state := chosen.state(ticket)) in (State.WAITING, State.RUNNING):
                if received:
                    raise Stopped(received[0])
                look()
                time.sleep(_POLL_S)
        except BaseException:
            chosen.cancel(ticket)
            raise
        look()
        if received:
            raise Stopped(received[0])
    return state, ticket.reason


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


class _Speaker:
    """Says the progress when it changed, or after half a minute of silence."""

    def __init__(self, run: Run, say: Callable[[str], None]) -> None:
        self._run, self._say = run, say
        self._current: Progress | None = None
        self._last: object = None
        self._moment = 0.0

    def look(self) -> None:
        self._current = current = progress(self._run, active=True, before=self._current)
        key = (current.done, tuple(step.step.id for step in current.running))
        if key == self._last and time.monotonic() - self._moment < _SAY_EVERY_S:
            return
        self._last, self._moment = key, time.monotonic()
        self._say(current.line())


def summary(run: Run) -> str:
    """Return one line for the end of the run stage."""
    states = progress(run, active=False)
    took = sum(step.seconds or 0.0 for step in states.steps)
    return f"{states.done}/{len(states.steps)} steps done, {states.failed} not 0, {duration(took)}"
