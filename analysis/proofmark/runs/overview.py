"""The progress of a run by mode and case, its end, and its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.progress import Progress
from proofmark.runs.run import Run
from proofmark.runs.step_state import StepState


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
        for job in group.jobs:
            for step in job.steps:
                groups.setdefault((group.mode, step.case), []).append(of_step[step.id])
    return [_of_case(mode, case, states, current.left) for (mode, case), states in groups.items()]


def _of_case(
    mode: str, case: str, states: Sequence[StepState], left: Mapping[str, float]
) -> CaseProgress:
    done = sum(state.state == "done" for state in states)
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
    open_steps = {state.step.id for state in current.steps if state.state != "done"}
    found: dict[str, str] = {}
    for group in run.plan.to_run():
        for job in group.jobs:
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
