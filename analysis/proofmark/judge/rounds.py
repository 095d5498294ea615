"""Whether the pairs of a round measured at the same time (docs/design/fabric.md).

The clocks of the nodes are compared: each node writes when its program ended, by its own clock, and
how long it ran. So a clock that is wrong by seconds looks like a pair that measured too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofmark.cases.vocabulary import TOGETHER
from proofmark.common.message import Message
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Execution

LEAST = 0.75
"""The least part of its time, or of that of the round, during which a pair measures with others."""
_LISTED = 8


@dataclass(frozen=True)
class RoundOverlap:
    """The times of the pairs of one execution of a round.

    Attributes:
        step: the id of the step.
        attempt: the number of the execution, from 1.
        pairs: the number of pairs with a result.
        apart: the pairs that measured less than `LEAST` of the time together with the others.
        unknown: the number of pairs whose times are not known.
        overlap: the least part of a pair; None if no time is known.
    """

    step: str
    attempt: int
    pairs: int
    apart: tuple[str, ...]
    unknown: int
    overlap: float | None

    def messages(self) -> Iterator[Message]:
        """Yield what is wrong with the round; nothing if all pairs measured together."""
        of: dict[str, str | int] = {
            "step": self.step,
            "execution": self.attempt,
            "pairs": self.pairs,
        }
        if self.apart:
            listed = ", ".join(self.apart[:_LISTED])
            if (more := len(self.apart) - _LISTED) > 0:
                listed = Message("listed-and-more", listed=listed, count=more)
            shown = {"share": f"{LEAST:.0%}", "listed": listed}
            yield Message("round-apart", apart=len(self.apart), **shown, **of)
        if self.unknown:
            yield Message("round-unknown", unknown=self.unknown, **of)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {**vars(self), "apart": list(self.apart)}


def round_overlaps(plan: Plan, executions: Iterable[Execution]) -> tuple[RoundOverlap, ...]:
    """Return the overlap of each execution of the rounds of `plan` whose pairs measure together.

    A repeated execution has only some of the pairs: those that were disturbed, or that a person ran
    again.
    """
    names = {
        step.id
        for step in plan.steps_to_run()
        if step.round and step.round.measured == TOGETHER and step.measurements > 1
    }
    found: dict[tuple[str, int], dict[str, Execution]] = {}
    for each in executions:
        pair = StepInstance.parse(each.step)
        if pair.step in names:
            found.setdefault((pair.step, each.attempt), {})[pair.name] = each
    return tuple(_overlap(*key, pairs) for key, pairs in sorted(found.items()))


def _overlap(step: str, attempt: int, executions: dict[str, Execution]) -> RoundOverlap:
    names = list(executions)
    ended = np.array([each.ended for each in executions.values()])
    seconds = np.array([each.seconds for each in executions.values()])
    known = np.isfinite(ended) & np.isfinite(seconds) & (seconds > 0)
    unknown = int((~known).sum())
    if not known.any():
        return RoundOverlap(step, attempt, len(names), (), unknown, None)
    end, begin = ended[known], (ended - seconds)[known]
    first, last = float(np.median(begin)), float(np.median(end))
    common = np.minimum(end, last) - np.maximum(begin, first)
    # A slow pair measures longer than the others, and with all of them.
    share = np.clip(common, 0, None) / np.minimum(end - begin, max(last - first, 1e-9))
    places = np.flatnonzero(known)
    apart = tuple(names[place] for place in places[share < LEAST].tolist())
    return RoundOverlap(step, attempt, len(names), apart, unknown, round(float(share.min()), 3))
