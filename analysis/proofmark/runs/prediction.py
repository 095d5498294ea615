"""Predicts how long the unfinished steps of a run will take, with its uncertainty.

The expected time of a step is its median in earlier runs of the same plan, else its cost in the
plan. It is multiplied by the pace of the finished steps: measured ÷ expected time. A running step
that already takes longer than this counts as a finished one, with its time so far. This time is at
most that of the slowest pace. The interval has the 10 % and the 90 % quantile of these ratios. All
steps get the same quantile, because what makes a machine slower than planned is common to its
steps. So the interval is wider than one of independent steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from proofmark.plan.plan import Plan
from proofmark.runs.plan_accuracy import FACTOR
from proofmark.runs.step_state import StepState

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
        plan: the plan, for the jobs that may run at the same time.
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
