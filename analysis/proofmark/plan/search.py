"""The search for the best point of a sweep during a run (docs/design/cases.md).

The plan has all points. `decide` computes from the figures of the finished steps which steps are
needed next, or why the search ended. It is pure: the same figures give the same decision, also
after an interruption.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from proofmark.cases.case import Case, SearchRule
from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import NOTHING, Message
from proofmark.common.shared_models import StrictModel
from proofmark.plan.step import Step
from proofmark.plan.step_draft import Draft

PASSES = 2
"""The largest number of times that each axis is varied. With it the cost has a limit."""

Figures = Mapping[str, float | None]
"""The figure of each finished step by its id; None if it is INVALID."""


class Candidate(StrictModel):
    """A point of a search.

    Attributes:
        steps: the ids of its steps: one for each repeat.
    """

    values: dict[str, Scalar]
    steps: list[str]


class Search(StrictModel):
    """The candidates of a search, in the order of the sweep.

    Attributes:
        id: the name of the case, and what tells several searches of this case apart.
    """

    id: str
    case: str
    rule: SearchRule
    better: Literal["higher", "lower"]
    unit: str
    candidates: list[Candidate]

    def steps(self) -> list[str]:
        """Return the ids of the steps of all candidates."""
        steps = []
        for candidate in self.candidates:
            steps += candidate.steps
        return steps

    def planned_candidates(self) -> int:
        """Return the number of candidates that the cost of the plan counts: those of one pass.

        A second pass needs at most as many again. A search needs fewer if the best value of an axis
        makes later axes ineffective, or if the growth stops.
        """
        total, axes = len(self.candidates), self.rule.axes
        if self.rule.grows:
            return total
        further = 0
        for place, axis in enumerate(axes):
            values: dict[tuple[Scalar, ...], set[Scalar]] = {}
            for candidate in self.candidates:
                earlier = tuple(candidate.values[each] for each in axes[:place])
                values.setdefault(earlier, set()).add(candidate.values[axis])
            further += max(map(len, values.values())) - 1
        return min(total, 1 + further)


def available(search: Search, left: Collection[str]) -> Search:
    """Return `search` without the candidates with one of the steps `left`.

    These steps repeat the command of another step, so they are not run.
    """
    candidates = [each for each in search.candidates if not left or not {*left} & {*each.steps}]
    return search.model_copy(update={"candidates": candidates})


@dataclass(frozen=True)
class SearchDecision:
    """What a search needs after the figures that it has.

    Attributes:
        needed: the ids of all steps that it needs or needed, finished or not.
        ended: why it ended; `NOTHING` if it waits for a needed step.
        best: the best candidate; None if the search waits or no candidate is valid.
        value: the figure of the best candidate, in the unit of the metric.
        noise: the relative noise of a figure: the median of half the range of the repeats.
    """

    needed: tuple[str, ...]
    ended: Message = NOTHING
    best: Candidate | None = None
    value: float = 0.0
    noise: float = 0.0


def decide(search: Search, figures: Figures) -> SearchDecision:
    """Return the decision of `search` after `figures`.

    The figure of a candidate is the median of its repeats. A candidate with an INVALID repeat is
    never the best. A gain counts if it exceeds ``least_gain`` and the noise together.

    ``no-better``: each axis is varied in turn, and the best value of it is kept. The search ends
    when no axis gives a gain that counts, or after `PASSES` passes. An axis may have an effect only
    for some values of earlier axes: if the plan has no point with the best values of the later
    axes, the point with the most of them is used.

    ``no-growth``: the first value that gives no gain that counts ends the search.
    """
    if not search.candidates:
        return SearchDecision((), Message("search-repeats"))
    if search.rule.grows:
        return _grow(search, figures)
    return _descend(search, figures)


def _descend(search: Search, figures: Figures) -> SearchDecision:
    axes, state = search.rule.axes, _State(search, figures)
    best, quiet, turn = search.candidates[0], 0, 0
    while quiet < len(axes) and turn < PASSES * len(axes):
        line = _line(search, best, axes[turn % len(axes)])
        if not state.measured([best, *line]):
            return SearchDecision(state.needed)
        winner = max([best, *line], key=state.score)  # of equal ones the first
        counts = state.gain(winner, best) > search.rule.least_gain + state.noise
        quiet = 1 if counts else quiet + 1
        best, turn = winner, turn + 1
    if quiet >= len(axes):
        return state.ended(best, Message("search-no-axis", threshold=state.threshold))
    return state.ended(best, Message("search-varied", times=PASSES))


def _grow(search: Search, figures: Figures) -> SearchDecision:
    axis, state = search.rule.axes[0], _State(search, figures)
    best = search.candidates[0]
    for candidate in search.candidates:
        if not state.measured([candidate]):
            return SearchDecision(state.needed)
        last = f"{axis} {candidate.values[axis]}"
        if state.value(candidate) is None:
            return state.ended(best, Message("search-invalid", last=last))
        gain = state.gain(candidate, best)
        best = max(best, candidate, key=state.score)
        if candidate is not search.candidates[0] and gain <= search.rule.least_gain + state.noise:
            why = Message("search-no-gain", last=last, threshold=state.threshold)
            return state.ended(best, why)
    return state.ended(best, Message("search-no-value"))


class _State:
    """The candidates that a search has used so far, and their figures."""

    def __init__(self, search: Search, figures: Figures) -> None:
        self._search, self._figures = search, figures
        self._used: dict[str, None] = {}
        self._spreads: dict[tuple[str, ...], float] = {}

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(self._used)

    @property
    def noise(self) -> float:
        return median(self._spreads.values()) / 2 if self._spreads else 0.0

    @property
    def threshold(self) -> str:
        """The gain that counts, as text."""
        return f"{self._search.rule.least_gain:.1%} and the noise of {self.noise:.1%}"

    def measured(self, candidates: Sequence[Candidate]) -> bool:
        """Note that `candidates` are needed; return whether all their steps are finished."""
        steps = []
        for candidate in candidates:
            steps += candidate.steps
        self._used.update(dict.fromkeys(steps))
        if any(step not in self._figures for step in steps):
            return False
        for candidate in candidates:
            value, found = self.value(candidate), [self._figures[step] for step in candidate.steps]
            valid = [each for each in found if each is not None]
            if value and len(valid) > 1:
                self._spreads[tuple(candidate.steps)] = (max(valid) - min(valid)) / value
        return True

    def value(self, candidate: Candidate) -> float | None:
        found = [self._figures[step] for step in candidate.steps]
        valid = [each for each in found if each is not None]
        return median(valid) if valid and len(valid) == len(found) else None

    def score(self, candidate: Candidate) -> float:
        value = self.value(candidate)
        if value is None:
            return float("-inf")
        return value if self._search.better == "higher" else -value

    def gain(self, candidate: Candidate, over: Candidate) -> float:
        """Return the relative gain of a candidate; infinite if only `over` has no valid figure."""
        new, old = self.value(candidate), self.value(over)
        if new is None or not old:
            return 0.0 if new is None else float("inf")
        return new / old - 1 if self._search.better == "higher" else 1 - new / old

    def ended(self, best: Candidate, why: Message) -> SearchDecision:
        search, value = self._search, self.value(best)
        used = sum(candidate.steps[0] in self._used for candidate in search.candidates)
        axes, points = ", ".join(search.rule.axes), len(search.candidates)
        if value is None:
            empty = Message("search-empty", axes=axes, used=used, points=points)
            return SearchDecision(self.needed, empty)
        chosen = ", ".join(f"{axis} {choice}" for axis, choice in best.values.items())
        found = {"best": chosen, "value": f"{value:.5g} {search.unit}", "text": why}
        reason = Message("search-ended", axes=axes, used=used, points=points, **found)
        return SearchDecision(self.needed, reason, best, value, self.noise)


def _line(search: Search, best: Candidate, axis: str) -> list[Candidate]:
    """Return one candidate for each value of `axis` that the plan has with `best`.

    It has the values of `best` on the earlier axes, and the most of them on the later axes.
    """
    place = search.rule.axes.index(axis)
    earlier, later = search.rule.axes[:place], search.rule.axes[place + 1 :]
    nearest: dict[Scalar, tuple[int, Candidate]] = {}
    for candidate in search.candidates:
        if any(candidate.values[each] != best.values[each] for each in earlier):
            continue
        equal = sum(candidate.values[each] == best.values[each] for each in later)
        known = nearest.get(candidate.values[axis])
        if known is None or equal > known[0]:
            nearest[candidate.values[axis]] = (equal, candidate)
    return [candidate for _, candidate in nearest.values()]


def searches_of(
    drafts: Iterable[Draft], cases: Mapping[str, Case], taken: Sequence[str] = ()
) -> list[Search]:
    """Return the searches of `drafts`, whose steps have their ids.

    Points that differ only in the axes of the search, and their repeats, are one search.

    Args:
        taken: the ids of the searches of other modes.
    """
    groups: dict[tuple[object, ...], list[Draft]] = {}
    for draft in drafts:
        if draft.use.search:
            others = _others(draft)
            key = (draft.step.case, draft.number, *others.items())
            groups.setdefault(key, []).append(draft)
    searches: list[Search] = []
    for members in groups.values():
        case, rule = members[0].step.case, members[0].use.search
        assert rule is not None
        points: dict[tuple[Scalar, ...], list[str]] = {}
        for draft in members:
            values = tuple(draft.axes[axis] for axis in rule.axes)
            points.setdefault(values, []).append(draft.step.id)
        metric = cases[case].metrics[rule.metric]
        searches.append(
            Search(
                id=_id(members[0], groups.values(), [*taken, *(each.id for each in searches)]),
                case=case,
                rule=rule,
                better=metric.better,
                unit=metric.unit,
                candidates=[
                    Candidate(values=dict(zip(rule.axes, values, strict=True)), steps=steps)
                    for values, steps in points.items()
                ],
            )
        )
    return searches


def uncounted(searches: Sequence[Search], steps: Mapping[str, Step]) -> set[str]:
    """Return the steps that the cost of the plan does not count.

    Of a search, `Search.planned_candidates` are counted: the most expensive ones.

    Args:
        steps: the steps by id. Candidates with other steps are left out.
    """

    def cost(candidate: Candidate) -> float:
        return sum(steps[step].wall_s * len(steps[step].nodes) for step in candidate.steps)

    left: set[str] = set()
    for search in searches:
        known = [each for each in search.candidates if steps.keys() >= {*each.steps}]
        by_cost = sorted(known, key=cost, reverse=True)
        for each in by_cost[search.planned_candidates() :]:
            left.update(each.steps)
    return left


def _others(draft: Draft) -> dict[str, Scalar]:
    """Return the values of the axes that the search of `draft` does not vary."""
    assert draft.use.search is not None
    axes = draft.use.search.axes
    return {axis: value for axis, value in draft.axes.items() if axis not in axes}


def _id(draft: Draft, groups: Iterable[Sequence[Draft]], taken: Sequence[str]) -> str:
    """Return the name of the case and the values by which its searches differ."""
    same = [_others(each[0]) for each in groups if each[0].step.case == draft.step.case]
    own = _others(draft)
    words = [
        f"{value}" for axis, value in own.items() if any(other.get(axis) != value for other in same)
    ]
    name = re.sub(r"[^a-z0-9]+", "-", "-".join([draft.step.case, *words]).lower()).strip("-")
    number = 2
    unique = name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique
