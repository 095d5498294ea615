"""Predicts how long the unfinished steps of a run will take, with its uncertainty.

The expected time of a step is its median in earlier runs of the same plan, else its cost in the
plan. It is multiplied by the pace of the finished steps: measured ÷ expected time. The interval
has the 10 % and the 90 % quantile of this ratio over the finished steps. All steps get the same
quantile, because what makes a machine slower than planned is common to its steps. So the interval
is wider than one of independent steps.
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
class Prediction:
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
) -> Prediction:
    """Return the remaining time of the steps in `states` that have no result.

    Args:
        plan: the plan, for the jobs that may run at the same time.
        states: the states of its steps.
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
    timed = [each for each in states if each.seconds is not None and expected[each.step.id] > 0]
    every = _pace([(each.seconds or 0.0, expected[each.step.id]) for each in timed], _Pace())
    by_case: dict[str, list[tuple[float, float]]] = {}
    for each in timed:
        by_case.setdefault(each.step.case, []).append((each.seconds or 0.0, expected[each.step.id]))
    paces = {case: _pace(pairs, every) for case, pairs in by_case.items()}
    by_step: dict[str, float] = {}
    least: dict[str, float] = {}
    most = 0.0
    for each in states:
        name = each.step.id
        if each.state == "done" or name not in expected:
            continue
        pace = paces.get(each.step.case, every)
        begun = each.state == "running" and each.started is not None
        spent = moment - each.started if begun and each.started else 0.0
        by_step[name] = max(0.0, expected[name] * pace.mean - spent)
        least[name] = max(0.0, expected[name] * pace.least - spent)
        most += max(0.0, expected[name] * pace.most - spent)
    return Prediction(
        expected_s=_time_of_jobs(plan, by_step),
        least_s=_longest_jobs(plan, least),
        most_s=most,
        by_step=by_step,
        measured=len(timed),
        from_earlier=len(by_step.keys() & known.keys()),
    )


def _pace(pairs: Iterable[tuple[float, float]], fallback: _Pace) -> _Pace:
    """Return the pace of steps with these measured and expected seconds.

    The interval of fewer than `LEAST_RATIOS` steps is that of `fallback` around their pace.
    """
    given = list(pairs)
    measured = sum(took for took, _ in given)
    if not measured:
        return fallback
    mean = measured / sum(expected for _, expected in given)
    if len(given) < LEAST_RATIOS:
        least, most = fallback.least / fallback.mean, fallback.most / fallback.mean
        return _Pace(mean, mean * least, mean * most)
    cuts = quantiles((took / expected for took, expected in given), n=_TENTHS, method="inclusive")
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
