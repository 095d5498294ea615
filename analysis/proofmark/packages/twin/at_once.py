"""Simulations that run at the same time on one machine."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.plan.plan import Group, Job, Plan
from proofmark.plan.step import Step


def divided(plan: Plan, count: int) -> Plan:
    """Return `plan` for `count` jobs at the same time: each job is divided into this number.

    A simulated job needs no nodes, so that jobs with the same nodes can run at the same time. The
    steps are given to the jobs by their cost, the longest first, each to the job with the least
    time (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969). In a job they keep
    their order.
    """
    groups = [_divided(group, number, count) for number, group in enumerate(plan.groups)]
    wall_s = sum(_wall_s([job.wall_s for job in group.jobs], count) for group in groups)
    totals = {"jobs": sum(len(group.jobs) for group in groups), "wall_s": round(wall_s, 1)}
    update = {"groups": groups, "at_once": count}
    return plan.model_copy(update={**update, "totals": plan.totals.model_copy(update=totals)})


def _wall_s(jobs: Sequence[float], count: int) -> float:
    """Return the least time of jobs with these times, `count` of them at the same time."""
    return max(*jobs, sum(jobs) / count, 0.0)


def _divided(group: Group, number: int, count: int) -> Group:
    parts = []
    for job in group.jobs:
        parts += [(job.nodes, steps) for steps in _shares(job.steps, count) if steps]
    jobs = [
        Job(id=f"{number:02d}-{part:04d}", nodes=nodes, steps=steps)
        for part, (nodes, steps) in enumerate(parts, start=1)
    ]
    return group.model_copy(update={"jobs": jobs})


def _shares(steps: list[Step], count: int) -> list[list[Step]]:
    """Return `count` lists of steps with about the same time."""
    shares: list[list[int]] = [[] for _ in range(count)]
    times = [0.0] * count
    for step in sorted(range(len(steps)), key=lambda index: -steps[index].wall_s):
        least = times.index(min(times))
        shares[least].append(step)
        times[least] += steps[step].wall_s
    return [[steps[index] for index in sorted(share)] for share in shares]
