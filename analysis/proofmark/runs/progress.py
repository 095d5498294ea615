"""The progress of a run, from its folders."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.common.files import read_bytes
from proofmark.common.json_text import parse_json
from proofmark.common.limits import MAX_SMALL_BYTES
from proofmark.common.text import duration
from proofmark.plan.plan import Step
from proofmark.plan.searches import uncounted
from proofmark.runs.attempts import has_result, results, running_execution
from proofmark.runs.binding_file import UNREADABLE
from proofmark.runs.files import StepFiles
from proofmark.runs.run import Run


@dataclass(frozen=True)
class StepState:
    """One step: ``waiting``, ``running``, ``interrupted`` or ``done`` (with any exit code).

    It is ``imported`` if others ran it.
    """

    step: Step
    state: str
    rc: int | None = None
    seconds: float | None = None
    started: float | None = None


@dataclass(frozen=True)
class Progress:
    """A run at one moment.

    Attributes:
        steps: the states of the steps.
        active: whether a process works on the run.
        left_s: the remaining seconds: the costs of the plan, scaled by those of the done steps. A
            search needs the steps that the plan counts (`uncounted`).
        steps_per_hour: the rate of the done steps; 0 before the first one.
    """

    steps: Sequence[StepState]
    active: bool
    left_s: float
    steps_per_hour: float

    @property
    def done(self) -> int:
        """Number of finished steps."""
        return sum(step.state == "done" for step in self.steps)

    @property
    def failed(self) -> int:
        """Number of finished steps that did not exit 0."""
        return sum(step.state == "done" and step.rc != 0 for step in self.steps)

    @property
    def running(self) -> list[StepState]:
        """The running steps."""
        return [step for step in self.steps if step.state == "running"]

    def line(self) -> str:
        """Return one line: done steps, running steps, rate, remaining time."""
        if any(step.state == "imported" for step in self.steps):
            outputs = sum(step.step.measurements for step in self.steps)
            return f"{outputs} outputs that others produced; nothing runs"
        parts = [f"{self.done}/{len(self.steps)} steps"]
        if self.failed:
            parts.append(f"{self.failed} failed (exit code not 0)")
        parts += [f"running {step.step.id}" for step in self.running]
        if self.done < len(self.steps):
            parts.append(f"{self.steps_per_hour:.0f} steps/h" if self.done else "no rate yet")
            parts.append(f"about {duration(self.left_s)} left")
            if not self.active:
                parts.append("nothing runs: the same command continues it")
        return " · ".join(parts)


def progress(
    run: Run, *, active: bool, now: float | None = None, before: Progress | None = None
) -> Progress:
    """Return the progress of `run`; `active` is whether a process holds its lock.

    Steps that were done `before` are not read again, so that the measurement is not disturbed.
    """
    if run.plan.imported:
        return Progress([StepState(step, "imported") for step in run.plan.steps()], active, 0, 0)
    moment = time.time() if now is None else now
    known = (
        {state.step.id: state for state in before.steps if state.state == "done"} if before else {}
    )
    states = [
        known.get(step.id) or _state(run.files.step(step.id), step, active=active)
        for step in run.plan.steps_to_run()
    ]
    took = sum(state.seconds or 0.0 for state in states)
    expected = sum(state.step.wall_s for state in states if state.state == "done")
    pace = took / expected if expected and took else 1.0
    left = 0.0
    unlikely = uncounted(run.plan.searches, {state.step.id: state.step for state in states})
    for state in states:
        if state.state != "done" and state.step.id not in unlikely:
            spent = moment - state.started if state.started and state.state == "running" else 0.0
            left += max(0.0, state.step.wall_s * pace - spent)
    finished = sum(state.state == "done" for state in states)
    rate = 3600 * finished / took if took else 0.0
    return Progress(states, active, left, rate)


def _state(files: StepFiles, step: Step, *, active: bool) -> StepState:
    if finished := results(files):
        newest = finished[-1]
        try:
            rc = int(read_bytes(newest.exit_code, MAX_SMALL_BYTES))
            when = parse_json(read_bytes(newest.when, MAX_SMALL_BYTES))
            seconds = float(when["seconds"])
        except (OSError, *UNREADABLE):
            return StepState(step, "done")
        if not math.isfinite(seconds):
            return StepState(step, "done", rc=rc)
        return StepState(step, "done", rc=rc, seconds=seconds)
    running = running_execution(files)
    if running is None:
        return StepState(step, "waiting")
    try:
        started = running.started.stat().st_mtime
    except FileNotFoundError:  # it is being started, or it has just ended
        started = None
    return StepState(step, "running" if active else "interrupted", started=started)


def waiting_nodes(run: Run, mode: str) -> list[str]:
    """Return the nodes with a step of `mode` that has no result, each once."""
    waiting = (
        node
        for group in run.plan.needed()
        if group.mode == mode
        for job in group.jobs
        if any(not has_result(run.files.step(step.id)) for step in job.steps)
        for node in job.nodes
    )
    return list(dict.fromkeys(waiting))
