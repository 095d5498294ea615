"""The time that jobs request: steps are put into jobs that fit the queue, or are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from proofmark.common.errors import InputError
from proofmark.common.text import duration
from proofmark.plan.plan import Job, Plan
from proofmark.plan.searches import uncounted
from proofmark.plan.step import Step
from proofmark.site.execution import Queue

MARGIN = 2.0
"""Requested ÷ expected time, unless the longest job of the queue is shorter."""
LEAST_S = 600
"""The shortest time limit of a job, in seconds. It covers the start and the probes of nodes."""


@dataclass(frozen=True)
class JobTime:
    """The time of a job of a plan.

    Attributes:
        mode: of its nodes.
        job: the job, of a search with the steps of one pass over its axes.
        expected_s: the expected time of its steps in seconds.
        requested_s: its time limit in seconds.
    """

    mode: str
    job: Job
    expected_s: float
    requested_s: int


def expected_s(step: Step, measured: Mapping[str, float]) -> float:
    """Return the expected time of `step` with its pause in seconds.

    Args:
        step: the step.
        measured: the seconds of steps in earlier runs, by id; they replace the estimate.
    """
    return step.pause_s + measured.get(step.id, step.seconds)


def requested_s(
    steps: Iterable[Step], queue: Queue, measured: Mapping[str, float] | None = None
) -> int:
    """Return the time that a job of `steps` requests, in seconds.

    It is `MARGIN` times the expected time and at least `LEAST_S`, but at most the longest job of
    the queue. Repeats of disturbed steps are in the margin. Steps that do not finish within it run
    in the next attempt.
    """
    wanted = ceil(MARGIN * sum(expected_s(step, measured or {}) for step in steps))
    return min(max(wanted, LEAST_S), queue.max_walltime_s or max(wanted, LEAST_S))


def longest_step_s(steps: Iterable[Step], queue: Queue) -> int:
    """Return the time limit of the longest of `steps`, as far as the queue allows it."""
    limit = max(step.timeout + step.stagger for step in steps)
    return min(limit, queue.max_walltime_s or limit)


def within_limit(steps: Sequence[Step], queue: Queue) -> Iterator[list[Step]]:
    """Yield `steps` in their order in parts; each is a job that the queue accepts."""
    part: list[Step] = []
    longest, expected = queue.max_walltime_s, 0.0
    for step in steps:
        expected += step.wall_s
        if part and longest and MARGIN * expected > longest:
            yield part
            part, expected = [], step.wall_s
        part.append(step)
    if part:
        yield part


def job_times(
    plan: Plan, queue: Queue, measured: Mapping[str, float] | None = None
) -> list[JobTime]:
    """Return the expected and the requested time of each job of `plan`, in its order.

    Args:
        plan: the plan.
        queue: the queue of its partition.
        measured: the seconds of its steps in earlier runs, by id.
    """
    left = uncounted(plan.searches, {step.id: step for step in plan.steps()})
    known = measured or {}
    times = []
    for group in plan.groups:
        for job in group.jobs:
            steps = [step for step in job.steps if step.id not in left]
            if steps:
                expected = sum(expected_s(step, known) for step in steps)
                counted = job.model_copy(update={"steps": steps})
                requested = requested_s(steps, queue, known)
                times.append(JobTime(group.mode, counted, expected, requested))
    return times


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
        key, limit, change = "timeout", step.timeout, "timeout"
        longest = queue.max_walltime_s
        if longest is not None and longest - step.stagger < limit:
            key, limit = "cost.seconds", longest - step.stagger
            change = "partition.queue.max_walltime_s"
        if step.seconds > limit:
            found = f"step {step.id}: estimated {duration(step.seconds)}, limit {duration(limit)}"
            accepted = (
                f"an estimate within the limit: fewer iterations, sizes or nodes, a larger {change}"
            )
            if len(step.nodes) > 1:
                accepted += ", or the rate of the link in partition.fabric.rate"
            yield InputError(file, key, found, accepted)
