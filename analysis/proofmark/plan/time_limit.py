"""Refuses steps that cannot finish within their time limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from proofmark.common.errors import InputError
from proofmark.common.text import duration
from proofmark.plan.step import Step
from proofmark.site.execution import Queue


def endless_steps(file: str, steps: Iterable[Step], queue: Queue) -> Iterator[InputError]:
    """Yield a mistake for each step that is estimated longer than its time limit.

    The limit is that of the step, or the longest job of the queue, if that is shorter. A step of
    several repeats has one mistake.

    Args:
        file: the file of the case.
        steps: steps of one case.
        queue: the settings of the queue.
    """
    for step in steps:
        estimate = step.seconds
        key, limit, change = "timeout", step.timeout, "timeout"
        longest = queue.max_walltime_s
        if longest is not None and longest - step.stagger < limit:
            key, limit = "cost.seconds", longest - step.stagger
            change = "partition.queue.max_walltime_s"
        if estimate > limit:
            found = f"step {step.id}: estimated {duration(estimate)}, limit {duration(limit)}"
            accepted = (
                f"an estimate within the limit: fewer iterations, sizes or nodes, a larger {change}"
            )
            if len(step.nodes) > 1:
                accepted += ", or the rate of the link in partition.fabric.rate"
            yield InputError(file, key, found, accepted)
