"""Reduces the repeats of the steps of a suite that has a time in which it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proofmark.cases.suite_use import SuiteUse
from proofmark.common.message import Message
from proofmark.common.text import duration
from proofmark.plan.draft import Draft

Uses = Sequence[tuple[SuiteUse, list[Draft]]]


def within(limit_s: float | None, uses: Uses, leave_out: Callable[[Message], None]) -> Uses:
    """Return the uses of one mode with as many repeats as end within `limit_s` (`Suite.within_s`).

    All uses lose the same share of their repeats, and keep ``least_repeats``. If these take longer,
    the plan takes longer. `leave_out` takes the reason for which a use has fewer repeats.
    """
    if limit_s is None:
        return uses
    once = [sum(draft.step.wall_s for draft in drafts) for _, drafts in uses]
    numbers: list[int] = []
    for percent in range(100, 0, -1):
        numbers = [
            max(min(use.least_repeats, use.repeats), use.repeats * percent // 100)
            for use, _ in uses
        ]
        if sum(number * time for number, time in zip(numbers, once, strict=True)) <= limit_s:
            break
    reduced = []
    for number, (use, drafts) in zip(numbers, uses, strict=True):
        if number < use.repeats and drafts:
            case = drafts[0].step.case
            repeats = {"repeats": number, "stated": use.repeats}
            leave_out(Message("left-repeats", case=case, **repeats, within=duration(limit_s)))
        reduced.append((use.model_copy(update={"repeats": number}), drafts))
    return reduced
