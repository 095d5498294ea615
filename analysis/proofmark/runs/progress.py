"""The progress of a run, from its folders, and how long its unfinished steps will take.

The expected time of a step is its cost in the plan, times measured ÷ planned time of the finished
steps of its case.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proofmark.common.grouping import gathered
from proofmark.common.text import duration
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.run import Run
from proofmark.runs.step_state import (
    EXECUTIONS,
    RUNNING,
    WAITING,
    Repeat,
    StepState,
    disturbing,
    needs_execution,
    pending,
    repeats_of_job,
    state_of,
)


def pace_of(states: Iterable[StepState]) -> float | None:
    """Return the measured ÷ the planned time of the finished steps; None if either is 0."""
    timed = [(each.step.wall_s, each.seconds) for each in states if each.seconds is not None]
    planned, measured = (sum(seconds) for seconds in zip(*timed, strict=True)) if timed else (0, 0)
    return measured / planned if planned and measured else None


def remaining(states: Sequence[StepState], moment: float) -> dict[str, float]:
    """Return the expected seconds of each step without a result, by id.

    Args:
        moment: the time of the states, seconds since 1970.
    """
    every = pace_of(states) or 1.0
    of_case = gathered((each.step.case, each) for each in states)
    paces = {case: pace_of(of) for case, of in of_case.items()}
    left = {}
    for each in states:
        if not each.finished:
            spent = moment - each.started if each.state == "running" and each.started else 0.0
            expected = each.step.wall_s * (paces[each.step.case] or every)
            left[each.step.id] = max(0.0, expected - spent)
    return left


def _time_of_jobs(plan: Plan, seconds: Mapping[str, float]) -> float:
    """Return the time of all jobs, `plan.at_once` of them at the same time."""
    longest = (
        max(sum(seconds.get(step.id, 0.0) for step in job.steps) for job in group.jobs)
        for group in plan.to_run()
        if group.jobs
    )
    every = sum(seconds.values())
    return every if plan.at_once == 1 else max(sum(longest), every / plan.at_once)


@dataclass(frozen=True)
class Progress:
    """A run at one moment.

    Attributes:
        active: whether a process works on the run.
        left: the expected seconds of each step without a result, by id.
        left_s: the expected remaining seconds of the run, with repetitions, without a queue.
        steps_per_hour: the rate of the done steps, if `Plan.at_once` jobs run at the same time; 0
            before the first step is done.
        repeats: the disturbed steps of which no execution counts.
        disturbed_by: what disturbs the running steps, else what disturbed them; empty if no sample
            names it.
        executed: whether the kit starts the steps (`proofmark.plan.kinds.RunKind`).
    """

    steps: Sequence[StepState]
    active: bool
    left: Mapping[str, float]
    left_s: float
    steps_per_hour: float
    repeats: tuple[Repeat, ...] = ()
    disturbed_by: str = ""
    executed: bool = True

    @property
    def done(self) -> int:
        """Number of finished steps."""
        return sum(step.finished for step in self.steps)

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

    def line(self, before: Progress | None = None) -> str:
        """Return one line: done steps, running steps, rate, remaining time.

        Args:
            before: the progress of the line before, which named what disturbed its steps.
        """
        if not self.executed:
            outputs = sum(step.step.measurements for step in self.steps)
            return f"{outputs} outputs that others produced; nothing runs"
        parts = [f"{self.done}/{len(self.steps)} steps"]
        if self.failed:
            parts.append(f"{self.failed} failed (exit code not 0)")
        parts += [f"running {step.step.id}" for step in self.running]
        parts += self._repeat_parts()
        if self.disturbed_by and not (before and before.disturbed_by):
            parts.append(f"disturbed by {self.disturbed_by}")
        if self.done < len(self.steps):
            parts.append(f"{self.steps_per_hour:.0f} steps/h" if self.done else "no rate yet")
        if not self.complete:
            parts.append(f"about {duration(self.left_s)} left")
            if not self.active:
                parts.append("nothing runs: the same command continues it")
        return " · ".join(parts)

    def _repeat_parts(self) -> list[str]:
        """Return what is repeated, what waits for it, what stays disturbed."""
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
        parts += [f"{n} step{'s' * (n > 1)} {text}" for text, n in counts.items() if n]
        return parts


def progress(
    run: Run,
    *,
    active: bool,
    now: float | None = None,
    before: Progress | None = None,
) -> Progress:
    """Return the progress of `run`.

    Args:
        active: whether a process holds its lock.
        now: the time in seconds since 1970; None is the time of this call.
        before: an earlier progress. Steps that were done and undisturbed then are not read again,
            so that the measurement is not disturbed.
    """
    if not run.executed:
        states = [StepState(step, run.plan.kind) for step in run.plan.steps()]
        return Progress(states, active, {}, 0.0, 0.0, executed=False)
    earlier = before.steps if before else ()
    known = {each.step.id: each for each in earlier if each.finished and not each.disturbed}
    states = [
        known.get(step.id) or state_of(run.files.step(step.id), step, active=active)
        for step in run.plan.steps_to_run()
    ]
    # The clock is read after the states: a running step has begun before.
    moment = time.time() if now is None else now
    left = remaining(states, moment)
    took = sum(state.seconds or 0.0 for state in states)
    finished = sum(state.finished for state in states)
    rate = 3600 * finished / took * run.plan.at_once if took else 0.0
    repeats = _repeats(run, states)
    seconds = {state.step.id: state.seconds or state.step.wall_s for state in states}
    once = sum(seconds.get(each.step, 0.0) for each in pending(repeats)) / run.plan.at_once
    left_s = _time_of_jobs(run.plan, left) + once
    first = pending(repeats) or repeats
    running = [state.step for state in states if state.state == "running"] if repeats else []
    by = disturbing(run.files, first, running)
    return Progress(states, active, left, left_s, rate, tuple(repeats), by)


def _repeats(run: Run, states: Sequence[StepState]) -> list[Repeat]:
    """Return the disturbed steps that a job noted, and those that it has not noted yet.

    A note can be older than the newest execution of a step. A step of single nodes has only notes.
    """
    noted: dict[str, Repeat] = {}
    for job in run.plan.jobs_to_run():
        noted |= repeats_of_job(run.files, job.id)
    found = []
    for state in states:
        step = state.step
        first = Repeat(step.id, min(EXECUTIONS, 1 + state.disturbed), WAITING, step.id)
        if state.disturbed or (step.scope != "job" and step.id in noted):
            found.append(noted.get(step.id, first))
    return found


def due_nodes(run: Run) -> list[str]:
    """Return the nodes of a stage; if nodes arrive, those with waiting steps of any mode."""
    if not kind_of(run.plan).nodes_arrive:
        return run.plan.nodes()
    return waiting_nodes(run, *(group.mode for group in run.plan.groups))


def waiting_nodes(run: Run, *modes: str) -> list[str]:
    """Return the nodes with a step of `modes` that a job has to run, each once."""
    waiting = []
    for group in run.plan.needed():
        if group.mode in modes:
            for job in group.jobs:
                if any(needs_execution(run.files, step) for step in job.steps):
                    waiting += job.nodes
    return list(dict.fromkeys(waiting))


@dataclass(frozen=True)
class CaseProgress:
    """The steps of one case in one mode.

    Attributes:
        done: the number of steps with a result, also of those that failed.
        failed: the number of results other than exit code 0.
        waiting: the number of steps without a result that do not run, also of interrupted ones.
        measured_s: the seconds of the results together.
        left_s: the expected seconds of the other steps.
    """

    mode: str
    case: str
    steps: int
    done: int
    failed: int
    running: int
    waiting: int
    measured_s: float
    left_s: float


def case_progress(run: Run, current: Progress) -> list[CaseProgress]:
    """Return the progress of each case in each mode, in the order of the plan."""
    of_step = {state.step.id: state for state in current.steps}
    groups: dict[tuple[str, str], list[StepState]] = {}
    for group in run.plan.to_run():
        for step in group.steps():
            groups.setdefault((group.mode, step.case), []).append(of_step[step.id])
    return [_of_case(mode, case, states, current.left) for (mode, case), states in groups.items()]


def _of_case(
    mode: str, case: str, states: Sequence[StepState], left: Mapping[str, float]
) -> CaseProgress:
    done = sum(state.finished for state in states)
    running = sum(state.state == "running" for state in states)
    return CaseProgress(
        mode=mode,
        case=case,
        steps=len(states),
        done=done,
        failed=sum(state.failed for state in states),
        running=running,
        waiting=len(states) - done - running,
        measured_s=sum(state.seconds or 0.0 for state in states),
        left_s=sum(left.get(state.step.id, 0.0) for state in states),
    )


def other_modes(run: Run) -> dict[str, int]:
    """Return the number of steps of each mode that the run does not enter."""
    entered = {group.mode for group in run.plan.to_run()}
    return {
        group.mode: sum(len(job.steps) for job in group.jobs)
        for group in run.plan.needed()
        if group.mode not in entered
    }


def unfinished_jobs(run: Run, current: Progress) -> dict[str, str]:
    """Return the last state of each submitted job with a step that has no result, by its id."""
    open_steps = {state.step.id for state in current.steps if not state.finished}
    found: dict[str, str] = {}
    for job in run.plan.jobs_to_run():
        unfinished = any(step.id in open_steps for step in job.steps)
        if unfinished and (state := last_state(JobFolder(run, job))):
            found[job.id] = state
    return found


def span(current: Progress) -> tuple[float, float] | None:
    """Return the start of the first and the end of the last result, seconds since 1970.

    None if no result has both.
    """
    started = [state.started for state in current.steps if state.started and state.ended]
    ended = [state.ended for state in current.steps if state.ended]
    return (min(started), max(ended)) if started and ended else None
