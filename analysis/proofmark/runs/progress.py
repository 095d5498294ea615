"""The progress of a run, from its folders."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proofmark.common.text import duration
from proofmark.plan.kinds import kind_of
from proofmark.plan.search import uncounted
from proofmark.runs.disturbed_steps import (
    EXECUTIONS,
    RUNNING,
    WAITING,
    Repeat,
    disturbing,
    needs_execution,
    pending,
    repeat_seconds,
    repeats_of_job,
)
from proofmark.runs.prediction import RemainingTime, predict
from proofmark.runs.run import Run
from proofmark.runs.step_state import StepState as StepState
from proofmark.runs.step_state import state_of


@dataclass(frozen=True)
class Progress:
    """A run at one moment.

    Attributes:
        active: whether a process works on the run.
        left: the remaining time. A search needs the steps that the plan counts (`uncounted`).
        steps_per_hour: the rate of the done steps, if `Plan.at_once` jobs run at the same time; 0
            before the first step is done.
        repeats: the disturbed steps of which no execution counts.
        disturbed_by: what disturbs the running steps, else what disturbed them; empty if no sample
            names it.
    """

    steps: Sequence[StepState]
    active: bool
    left: RemainingTime
    steps_per_hour: float
    repeats: tuple[Repeat, ...] = ()
    disturbed_by: str = ""

    @property
    def left_s(self) -> float:
        """The expected remaining seconds."""
        return self.left.expected_s

    @property
    def done(self) -> int:
        """Number of finished steps."""
        return sum(step.state == "done" for step in self.steps)

    @property
    def failed(self) -> int:
        """Number of finished steps that did not exit 0."""
        return sum(step.failed for step in self.steps)

    @property
    def pending_repeats(self) -> list[Repeat]:
        """The repetitions of disturbed steps that run or wait, the running ones first."""
        return pending(self.repeats)

    @property
    def complete(self) -> bool:
        """Whether each step has a result, and no disturbed step waits for its repetition."""
        return self.done == len(self.steps) and not self.pending_repeats

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
        parts += self._repeat_parts()
        if self.done < len(self.steps):
            parts.append(f"{self.steps_per_hour:.0f} steps/h" if self.done else "no rate yet")
        if not self.complete:
            parts.append(f"about {duration(self.left_s)} left")
            if not self.active:
                parts.append("nothing runs: the same command continues it")
        return " · ".join(parts)

    def _repeat_parts(self) -> list[str]:
        """Return what is repeated, what waits for it, what stays disturbed, and by what."""
        unfinished = self.pending_repeats
        parts = [
            f"repeating {each.step} (execution {each.execution} of {EXECUTIONS})"
            for each in unfinished
            if each.state == RUNNING and self.active
        ]
        counts = {
            "will be repeated": len(unfinished) - len(parts),
            "disturbed in all executions": len(self.repeats) - len(unfinished),
        }
        parts += [f"{_steps(count)} {text}" for text, count in counts.items() if count]
        return [*parts, f"disturbed by {self.disturbed_by}"] if self.disturbed_by else parts


def progress(
    run: Run,
    *,
    active: bool,
    now: float | None = None,
    before: Progress | None = None,
    earlier: Mapping[str, float] | None = None,
) -> Progress:
    """Return the progress of `run`.

    Args:
        active: whether a process holds its lock.
        now: the time in seconds since 1970; None is the time of this call.
        before: an earlier progress. Steps that were done and undisturbed then are not read again,
            so that the measurement is not disturbed.
        earlier: the seconds of steps in earlier runs, by id.
    """
    if run.plan.imported:
        states = [StepState(step, "imported") for step in run.plan.steps()]
        return Progress(states, active, RemainingTime(), 0.0)
    known = (
        {
            state.step.id: state
            for state in before.steps
            if state.state == "done" and not state.disturbed
        }
        if before
        else {}
    )
    states = [
        known.get(step.id) or state_of(run.files.step(step.id), step, active=active)
        for step in run.plan.steps_to_run()
    ]
    # The clock is read after the states: a running step has begun before.
    moment = time.time() if now is None else now
    unlikely = uncounted(run.plan.searches, {state.step.id: state.step for state in states})
    left = predict(run.plan, states, unlikely, moment, earlier)
    took = sum(state.seconds or 0.0 for state in states)
    finished = sum(state.state == "done" for state in states)
    rate = 3600 * finished / took * run.plan.at_once if took else 0.0
    repeats = _repeats(run, states)
    seconds = {state.step.id: state.seconds or state.step.wall_s for state in states}
    once = repeat_seconds(repeats, seconds) / run.plan.at_once
    most = repeat_seconds(repeats, seconds, all_executions=True)
    left = replace(
        left,
        expected_s=left.expected_s + once,
        least_s=left.least_s + once,
        most_s=left.most_s + most,
    )
    first = pending(repeats) or repeats
    running = [state.step for state in states if state.state == "running"] if repeats else []
    by = disturbing(run.files, first, running)
    return Progress(states, active, left, rate, tuple(repeats), by)


def _repeats(run: Run, states: Sequence[StepState]) -> list[Repeat]:
    """Return the disturbed steps that a job noted, and those that it has not noted yet.

    A note can be older than the newest execution of a step. A step of single nodes has only notes.
    """
    noted: dict[str, Repeat] = {}
    for group in run.plan.to_run():
        for job in group.jobs:
            noted |= repeats_of_job(run.files, job.id)
    found = []
    for state in states:
        step = state.step
        first = Repeat(step.id, min(EXECUTIONS, 1 + state.disturbed), WAITING, step.id)
        if state.disturbed or (step.scope != "job" and step.id in noted):
            found.append(noted.get(step.id, first))
    return found


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def due_nodes(run: Run) -> list[str]:
    """Return the nodes of a stage; if nodes arrive, those with waiting steps of any mode."""
    if not kind_of(run.plan).nodes_arrive:
        return run.plan.nodes()
    waiting = []
    for mode in dict.fromkeys(group.mode for group in run.plan.groups):
        waiting += waiting_nodes(run, mode)
    return list(dict.fromkeys(waiting))


def waiting_nodes(run: Run, mode: str) -> list[str]:
    """Return the nodes with a step of `mode` that a job has to run, each once."""
    waiting = []
    for group in run.plan.needed():
        if group.mode == mode:
            for job in group.jobs:
                if any(needs_execution(run.files, step) for step in job.steps):
                    waiting += job.nodes
    return list(dict.fromkeys(waiting))
