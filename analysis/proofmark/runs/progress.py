"""The progress of a run, from its folders, and how long its unfinished steps will take.

The expected time of a step is its median in earlier runs of the same plan, else its cost in the
plan. It is multiplied by the pace of the finished steps: measured ÷ expected time. A running step
that already takes longer than this counts as a finished one, with its time so far. This time is at
most that of the slowest pace. The interval has the 10 % and the 90 % quantile of these ratios. All
steps get the same quantile, because what makes a machine slower than planned is common to its
steps. So the interval is wider than one of independent steps.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import quantiles

from proofmark.common.text import duration
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.plan.search import uncounted
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
    repeat_seconds,
    repeats_of_job,
    state_of,
)

FACTOR = 2.0
"""The planned time and the measured time of a run may differ by this factor."""


@dataclass(frozen=True)
class TimeOfSteps:
    """The planned and the measured time of some steps.

    Attributes:
        name: of the case; empty for all steps.
        steps: the number of finished steps with a measured time.
        planned_s, measured_s: their seconds.
        planned_node_h, measured_node_h: their node-hours.
    """

    name: str
    steps: int
    planned_s: float
    measured_s: float
    planned_node_h: float
    measured_node_h: float

    @property
    def ratio(self) -> float | None:
        """Measured ÷ planned time; None if either is 0."""
        return self.measured_s / self.planned_s if self.planned_s and self.measured_s else None

    @property
    def within_factor(self) -> bool:
        """Whether time and node-hours differ from the plan by at most `FACTOR`."""
        return all(
            measured <= FACTOR * planned and planned <= FACTOR * measured
            for planned, measured in (
                (self.planned_s, self.measured_s),
                (self.planned_node_h, self.measured_node_h),
            )
        )


def time_of_steps(states: Iterable[StepState], name: str = "") -> TimeOfSteps:
    """Return the planned and the measured time of the finished steps in `states`."""
    timed = [(each.step, each.seconds) for each in states if each.seconds is not None]
    return TimeOfSteps(
        name,
        len(timed),
        sum(step.wall_s for step, _ in timed),
        sum(seconds for _, seconds in timed),
        sum(step.wall_s * len(step.nodes) for step, _ in timed) / 3600,
        sum(seconds * len(step.nodes) for step, seconds in timed) / 3600,
    )


def time_of_cases(states: Sequence[StepState]) -> list[TimeOfSteps]:
    """Return the planned and the measured time of each case with a finished step."""
    cases = dict.fromkeys(each.step.case for each in states)
    times = [
        time_of_steps((each for each in states if each.step.case == case), case) for case in cases
    ]
    return [each for each in times if each.steps]


LEAST_RATIOS = 5
"""From this number of finished steps on, their ratios give the interval. Else it is `FACTOR`."""
_TENTHS = 10


@dataclass(frozen=True)
class RemainingTime:
    """The remaining seconds of the unfinished steps.

    Attributes:
        expected_s: the sum over the modes of the expected time of their jobs: as many as the plan
            states run at the same time, else one after another.
        least_s: the sum over the modes of the fastest time of the longest job: jobs of a mode may
            run at the same time.
        most_s: the sum of the slowest times of the steps.
        by_step: the expected seconds of each unfinished step that counts.
        measured: the number of finished steps that gave the pace.
        from_earlier: the number of unfinished steps whose expected time is from earlier runs.
    """

    expected_s: float = 0.0
    least_s: float = 0.0
    most_s: float = 0.0
    by_step: Mapping[str, float] = field(default_factory=dict)
    measured: int = 0
    from_earlier: int = 0


@dataclass(frozen=True)
class _Timed:
    """The measured and the expected seconds of a step of `case`."""

    case: str
    seconds: float
    expected_s: float


@dataclass(frozen=True)
class _Pace:
    """Measured ÷ expected time: of all time together, its least and its greatest ratio."""

    mean: float = 1.0
    least: float = 1 / FACTOR
    most: float = FACTOR


def predict(
    plan: Plan,
    states: Sequence[StepState],
    uncounted: Collection[str],
    moment: float,
    earlier: Mapping[str, float] | None = None,
) -> RemainingTime:
    """Return the remaining time of the steps in `states` that have no result.

    Args:
        uncounted: the ids of steps that a search probably does not need.
        moment: the time of the states, seconds since 1970.
        earlier: the seconds of steps in earlier runs, by id.
    """
    known = earlier or {}
    expected = {
        each.step.id: known.get(each.step.id, each.step.wall_s)
        for each in states
        if each.step.id not in uncounted or each.state == "done"
    }
    spent = {
        each.step.id: moment - each.started
        for each in states
        if each.state == "running" and each.started is not None
    }
    finished = [
        _Timed(each.step.case, each.seconds, expected[each.step.id])
        for each in states
        if each.seconds is not None and expected[each.step.id] > 0
    ]
    late = _late(states, spent, expected, _Paces(finished))
    paces = _Paces([*finished, *late])
    by_step: dict[str, float] = {}
    least: dict[str, float] = {}
    most = 0.0
    for each in states:
        name = each.step.id
        if each.state == "done" or name not in expected:
            continue
        pace, gone = paces.of(each.step.case), spent.get(name, 0.0)
        by_step[name] = max(0.0, expected[name] * pace.mean - gone)
        least[name] = max(0.0, expected[name] * pace.least - gone)
        most += max(0.0, expected[name] * pace.most - gone)
    return RemainingTime(
        expected_s=_time_of_jobs(plan, by_step),
        least_s=_longest_jobs(plan, least),
        most_s=most,
        by_step=by_step,
        measured=len(finished),
        from_earlier=len(by_step.keys() & known.keys()),
    )


class _Paces:
    """The pace of each case. A case without a timed step has the pace of all steps."""

    def __init__(self, timed: Sequence[_Timed]) -> None:
        by_case: dict[str, list[_Timed]] = {}
        for step in timed:
            by_case.setdefault(step.case, []).append(step)
        self._every = _pace(timed, _Pace())
        self._by_case = {case: _pace(own, self._every) for case, own in by_case.items()}

    def of(self, case: str) -> _Pace:
        """Return the pace of the steps of `case`."""
        return self._by_case.get(case, self._every)


def _late(
    states: Iterable[StepState],
    spent: Mapping[str, float],
    expected: Mapping[str, float],
    paces: _Paces,
) -> list[_Timed]:
    """Return the running steps that already take longer than `paces` predict.

    Each has its seconds so far. They are at most those of the slowest pace, because the step may
    hang.
    """
    late = []
    for each in states:
        usual, gone = expected.get(each.step.id, 0.0), spent.get(each.step.id, 0.0)
        pace = paces.of(each.step.case)
        if usual and gone > usual * pace.mean:
            late.append(_Timed(each.step.case, min(gone, usual * pace.most), usual))
    return late


def _pace(timed: Sequence[_Timed], fallback: _Pace) -> _Pace:
    """Return the pace of `timed`.

    The interval of fewer than `LEAST_RATIOS` steps is that of `fallback` around their pace.
    """
    took = sum(step.seconds for step in timed)
    if not took:
        return fallback
    mean = took / sum(step.expected_s for step in timed)
    if len(timed) < LEAST_RATIOS:
        least, most = fallback.least / fallback.mean, fallback.most / fallback.mean
        return _Pace(mean, mean * least, mean * most)
    ratios = (step.seconds / step.expected_s for step in timed)
    cuts = quantiles(ratios, n=_TENTHS, method="inclusive")
    return _Pace(mean, min(mean, cuts[0]), max(mean, cuts[-1]))


def _time_of_jobs(plan: Plan, seconds: Mapping[str, float]) -> float:
    """Return the time of all jobs, `plan.at_once` of them at the same time."""
    if plan.at_once == 1:
        return sum(seconds.values())
    return max(_longest_jobs(plan, seconds), sum(seconds.values()) / plan.at_once)


def _longest_jobs(plan: Plan, seconds: Mapping[str, float]) -> float:
    """Return the sum over the modes of the seconds of the longest job."""
    return sum(
        max(sum(seconds.get(step.id, 0.0) for step in job.steps) for job in group.jobs)
        for group in plan.to_run()
        if group.jobs
    )


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
        executed: whether the kit starts the steps (`proofmark.plan.kinds.RunKind`).
    """

    steps: Sequence[StepState]
    active: bool
    left: RemainingTime
    steps_per_hour: float
    repeats: tuple[Repeat, ...] = ()
    disturbed_by: str = ""
    executed: bool = True

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
        if not self.executed:
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
            parts.append(f"about {duration(self.left.expected_s)} left")
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
    if not run.executed:
        states = [StepState(step, run.plan.kind) for step in run.plan.steps()]
        return Progress(states, active, RemainingTime(), 0.0, executed=False)
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
