"""What the executions of a figure say beside their median, and how many more a figure needs.

The number of executions is part of the plan. Executions that a site adds afterwards count, but they
cannot remove a miss: a figure whose planned executions alone fail is FAIL. A figure whose median
meets a limit, and of which many executions miss it clearly, has two states. Its median describes
neither.

The need is sequential, and follows from the noise alone: from the variance of the values so far,
never from their level, so that more repeats cannot be a way of picking results. Each round is a
second stage of Stein (A two-sample test for a linear hypothesis whose power is independent of the
variance, Annals of Mathematical Statistics 16, 1945). Rounds follow until the estimated bound is
small enough (Chow and Robbins, On the asymptotic theory of fixed-width sequential confidence
intervals for the mean, Annals of Mathematical Statistics 36, 1965). All valid executions count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.common.grouping import gathered
from proofmark.common.message import NOTHING, Message
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates, Measured
from proofmark.judge.baseline import BaselineComparison
from proofmark.judge.change_limits import compared_metric
from proofmark.judge.confidence import possible_miss
from proofmark.judge.references.judgement import Bounds, Judgement
from proofmark.judge.results import BEYOND, CONFIRMING, PLANNED_ALONE, Results
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step, StepInstance
from proofmark.records.columns import VIRTUAL, Records

MIN_SHARE_OF_MISSES = 1 / 3
"""The least share of the executions that miss a limit clearly and make the figure miss it."""
_ROUNDING = 1e-6
"""By which part the sum of times may exceed the time of the plan."""
_MET = frozenset({"limit-noisy", "floor-met"})
"""The codes of the reasons of UNJUDGED figures whose median does not miss the limit."""


@dataclass(frozen=True)
class Added:
    """A step that was run again although it had a sound execution.

    Attributes:
        step: its folder, below ``steps/``.
        planned: the number of its executions up to the first sound one, and of those of
            ``repeats=auto``.
        refused: why they are not planned, although ``decisions.json`` says that they are.
    """

    step: str
    planned: int
    added: int
    refused: Message = NOTHING

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        why = self.refused.as_json("refused") if self.refused else {}
        return {"step": self.step, "planned": self.planned, "added": self.added, **why}


def granted_more(plan: Plan, said: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Message]]:
    """Return the executions of ``decisions.json`` that the plan can have, and why not of others.

    A run can be a copy that another person changed. Only a plan of ``repeats=auto`` has further
    executions, of steps that run again alone, and within the time that it has for them.
    """
    steps = {step.id: step for step in plan.steps() if not step.reads and not step.kept}
    granted: dict[str, int] = {}
    refused: dict[str, Message] = {}
    for name, count in said.items():
        if not plan.more_repeats_s:
            refused[name] = Message("more-not-auto")
        elif name not in steps or count < 0:
            refused[name] = Message("more-not-a-step")
        else:
            granted[name] = count
    spent = sum(count * steps[name].wall_s for name, count in granted.items())
    if spent > plan.more_repeats_s * (1 + _ROUNDING):
        refused |= dict.fromkeys(granted, Message("more-over-time"))
        return {}, refused
    return granted, refused


def added_executions(
    records: Records, more: Mapping[str, int], refused: Mapping[str, Message]
) -> Iterator[Added]:
    """Yield the steps with executions after their first sound one. No job makes such executions.

    Args:
        more: the number of executions that ``repeats=auto`` planned, by step.
        refused: why further executions are not planned, by step.
    """
    if len({each.step for each in records.executions}) == len(records.executions):
        return  # no step was run again
    dirty = set(np.unique(records.execution[~records.valid]).tolist())
    attempts: dict[str, dict[int, bool]] = {}
    for number, each in enumerate(records.executions):
        of_step = attempts.setdefault(each.step, {})
        of_step[each.attempt] = of_step.get(each.attempt, True) and number not in dirty
    for step, sound in attempts.items():
        first = min((attempt for attempt, good in sound.items() if good), default=None)
        later = [attempt for attempt in sound if first is not None and attempt > first]
        if added := max(0, len(later) - _more(step, more)):
            why = refused.get(StepInstance.parse(step).step, NOTHING)
            yield Added(step, len(sound) - added, added, why)


def _more(folder: str, more: Mapping[str, int]) -> int:
    """Return the executions that were planned for a folder of a step besides its first one."""
    return more.get(StepInstance.parse(folder).step, 0)


def judge_executions(
    figures: Aggregates,
    figure: int,
    judged: Judgement,
    compare: Callable[[Measured], Judgement],
    material: float,
    more: Mapping[str, int],
) -> Judgement:
    """Return the judgement of a figure by its median, or a FAIL by its executions.

    It is that of its median if no step was run again and the figure has no `slow_ratios`.

    Args:
        material: the least change of its metric that matters, as a part of its value.
        more: the number of executions that ``repeats=auto`` planned, by step.
    """
    measured = figures.by_execution(figure)
    if len(measured) < CONFIRMING or judged.outcome == "FAIL":
        return judged
    planned = planned_of(measured, more)
    if len(planned) < len(measured):
        alone = compare(planned)
        if alone.outcome == "FAIL" or alone.is_open:
            counts = {"planned": len(planned), "executions": len(measured)}
            return replace(alone, reason=Message(PLANNED_ALONE, text=alone.reason, **counts))
    virtual = figures.record(figure).origin in VIRTUAL
    if virtual or not judged.value or not (judged.outcome == "PASS" or judged.reason.code in _MET):
        return judged
    values = [value for _, value in measured]
    slow = slow_ratios(judged, values, material)
    repeats = len(judged.ratios or values)
    many = len(slow) >= CONFIRMING and len(slow) >= MIN_SHARE_OF_MISSES * repeats
    if not slow or not (many or judged.outcome == "PASS"):
        return judged
    reason = Message(
        BEYOND,
        slow=len(slow),
        repeats=repeats,
        material=percent(material),
        ratio=f"{median(slow):.3g}",
        text=judged.reason,
    )
    if not many:
        return replace(judged, reason=reason)
    return replace(judged, outcome="FAIL", reason=reason, ratio=median(slow), ratios=slow)


def planned_of(measured: Measured, more: Mapping[str, int]) -> Measured:
    """Return the first counting execution of each step, and those that ``repeats=auto`` planned."""
    attempts = gathered((about.step, about.attempt) for about, _ in measured)
    planned = {step: sorted(found)[: 1 + _more(step, more)] for step, found in attempts.items()}
    return [each for each in measured if each[0].attempt in planned[each[0].step]]


def slow_ratios(judged: Judgement, values: Sequence[float], material: float) -> tuple[float, ...]:
    """Return the ratios of repeats that miss the limit of `judged` by more than `material`."""
    low, high = judged.bounds
    expected = judged.value
    ratios = judged.ratios or [value / expected for value in values if expected]
    clearly = Bounds(
        None if low is None else low * (1 - material),
        None if high is None else high * (1 + material),
    )
    return tuple(ratio for ratio in ratios if clearly.missed_by(ratio))


@dataclass(frozen=True)
class RepeatNeed:
    """The repeats of one measurement, on all of its nodes.

    Attributes:
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
        steps: the steps that may run again, by id.
    """
    figures = results.aggregates
    more: dict[tuple[str, ...], float] = {}
    for figure in np.flatnonzero(figures.valid & (figures.count > 1)).tolist():
        about = figures.measurand_of(figure)
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
