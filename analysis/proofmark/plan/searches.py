"""Makes the searches of a plan from its steps, and counts what they can cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from proofmark.cases.case import Case
from proofmark.cases.vocabulary import Scalar
from proofmark.plan.search import Candidate, Search
from proofmark.plan.step import Step
from proofmark.plan.step_draft import Draft


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
