"""What the executions of a figure say beside their median.

The number of executions is part of the plan. Executions that a site adds afterwards count, but they
cannot remove a miss: a figure whose planned executions alone fail is FAIL. A figure whose median
meets a limit, and of which many executions miss it clearly, has two states. Its median describes
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates, Measured
from proofmark.judge.references.judgement import Bounds, Judgement
from proofmark.judge.results import BEYOND, CONFIRMING, PLANNED_ALONE
from proofmark.records.columns import VIRTUAL, Records

MIN_SHARE_OF_MISSES = 1 / 3
"""The least share of the executions that miss a limit clearly and make the figure miss it."""
_MET = frozenset({"limit-noisy", "floor-met"})
"""The codes of the reasons of UNJUDGED figures whose median does not miss the limit."""


@dataclass(frozen=True)
class Added:
    """A step that was run again although it had a sound execution.

    Attributes:
        step: its folder, below ``steps/``.
        planned: the number of its executions up to the first sound one.
    """

    step: str
    planned: int
    added: int

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {"step": self.step, "planned": self.planned, "added": self.added}


def added_executions(records: Records) -> Iterator[Added]:
    """Yield the steps with executions after their first sound one. No job makes such executions."""
    if len({each.step for each in records.executions}) == len(records.executions):
        return  # no step was run again
    dirty = set(np.unique(records.execution[~records.valid]).tolist())
    attempts: dict[str, dict[int, bool]] = {}
    for number, each in enumerate(records.executions):
        of_step = attempts.setdefault(each.step, {})
        of_step[each.attempt] = of_step.get(each.attempt, True) and number not in dirty
    for step, sound in attempts.items():
        first = min((attempt for attempt, good in sound.items() if good), default=None)
        if added := sum(first is not None and attempt > first for attempt in sound):
            yield Added(step, len(sound) - added, added)


def judge_executions(
    figures: Aggregates,
    figure: int,
    judged: Judgement,
    compare: Callable[[Measured], Judgement],
    material: float,
) -> Judgement:
    """Return the judgement of a figure by its median, or a FAIL by its executions.

    It is that of its median if no step was run again and the figure has no `slow_ratios`.

    Args:
        material: the least change of its metric that matters, as a part of its value.
    """
    measured = figures.by_execution(figure)
    if len(measured) < CONFIRMING or judged.outcome == "FAIL":
        return judged
    planned = planned_of(measured)
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


def planned_of(measured: Measured) -> Measured:
    """Return the first counting execution of each step."""
    attempts = gathered((about.step, about.attempt) for about, _ in measured)
    return [each for each in measured if each[0].attempt == min(attempts[each[0].step])]


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
