"""Which steps need more repeats, and how many: sequential, from the noise alone.

A number of repeats follows from the variance of those so far, never from their level, so that more
repeats cannot be a way of picking results. Each round is a second stage of Stein (A two-sample test
for a linear hypothesis whose power is independent of the variance, Annals of Mathematical
Statistics 16, 1945). Rounds follow until the estimated bound is small enough (Chow and Robbins, On
the asymptotic theory of fixed-width sequential confidence intervals for the mean, Annals of
Mathematical Statistics 36, 1965). All valid executions count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.judge.baseline.change_limits import compared_metric
from proofmark.judge.baseline.comparison import BaselineComparison
from proofmark.judge.references.limit_confidence import possible_miss
from proofmark.judge.results import Results
from proofmark.plan.step import Step, StepInstance


@dataclass(frozen=True)
class RepeatNeed:
    """The repeats of one measurement, on all of its nodes.

    Attributes:
        steps: the steps that repeat it.
        more: the number of further executions with which a material change would be seen in each of
            its figures. Infinite if no number is enough.
        seconds: the expected time of one execution.
    """

    steps: tuple[str, ...]
    more: float
    seconds: float

    @property
    def cost_s(self) -> float:
        """The expected time of all further executions in seconds."""
        return self.more * self.seconds


def needs(results: Results, benchmarks: Benchmarks, steps: Mapping[str, Step]) -> list[RepeatNeed]:
    """Return the measurements of which a material change would not be seen.

    Figures that were measured once have no variance, and figures of steps that share their files
    with others cannot be repeated alone. Both are left out.

    Args:
        results: of the run so far.
        steps: the steps that may run again, by id.
    """
    figures = results.aggregates
    more: dict[tuple[str, ...], float] = {}
    for figure in np.flatnonzero(figures.valid & (figures.count > 1)).tolist():
        about = figures.records.measurands[figures.measurand[figure]]
        metric = compared_metric(benchmarks, about.case, about.metric)
        executions = figures.executions(figure)
        names = tuple(sorted({StepInstance.parse(each.step).step for each in executions}))
        if metric is None or not all(
            name in steps and not steps[name].reads and not steps[name].kept for name in names
        ):
            continue
        values = figures.values(figure)
        wanted = wanted_values(results.baseline, figure, values, metric.material_change)
        of_one = len(values) / len(set(executions))
        lacking = math.inf if math.isinf(wanted) else math.ceil((wanted - len(values)) / of_one)
        more[names] = max(more.get(names, 0.0), lacking)
    return [
        RepeatNeed(names, count, max(steps[name].wall_s for name in names))
        for names, count in more.items()
        if count > 0
    ]


def wanted_values(
    baseline: BaselineComparison | None, figure: int, values: Sequence[float], material: float
) -> float:
    """Return the number of values with which a material change of a figure would be seen."""
    needed = baseline.needed(figure) if baseline else None
    if needed is not None:
        return needed
    middle = median(values)
    bound = possible_miss(values, middle, middle, least=True) if min(values) > 0 else None
    if bound is None or bound <= material:
        return float(len(values))
    if bound >= 1:
        return math.inf
    # The quantile of the values so far is used for the sum: so Stein's level does not depend on
    # the true variance.
    return math.ceil(len(values) * (math.log1p(-bound) / math.log1p(-material)) ** 2)


@dataclass(frozen=True)
class RepeatRound:
    """The next executions, and what is left.

    Attributes:
        executions: the number of further executions, by step.
        unaffordable: the measurements that cost more than is left of the budget, or whose noise
            no number of repeats makes small enough. They are not repeated: more would show nothing.
    """

    executions: Mapping[str, int]
    unaffordable: tuple[RepeatNeed, ...]


def next_round(lacking: Sequence[RepeatNeed], left_s: float) -> RepeatRound:
    """Return the executions for which `left_s` seconds are enough, the cheapest needs first."""
    executions: dict[str, int] = {}
    unaffordable: list[RepeatNeed] = []
    for need in sorted(lacking, key=lambda each: (each.cost_s, each.steps)):
        if not need.cost_s <= left_s:
            unaffordable.append(need)
            continue
        left_s -= need.cost_s
        for step, count in _shared(need):
            executions[step] = executions.get(step, 0) + count
    return RepeatRound(executions, tuple(unaffordable))


def _shared(need: RepeatNeed) -> Iterator[tuple[str, int]]:
    """Yield the steps of a measurement with their parts of the further executions."""
    whole, rest = divmod(int(need.more), len(need.steps))
    for place, step in enumerate(need.steps):
        if count := whole + (place < rest):
            yield step, count
