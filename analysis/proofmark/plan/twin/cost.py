"""Computes the memory that the simulation of a plan needs."""

from __future__ import annotations

from proofmark.common.network_time import simulated_bytes
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step

BUFFERS = 2
"""The buffers of a rank, each with one message of every rank, if the case has no `buffer_bytes`."""


def memory_bytes(plan: Plan) -> float:
    """Return the memory of the largest step of each job that runs at the same time."""
    largest = sorted(
        max(_step_bytes(step) for step in job.steps) for group in plan.groups for job in group.jobs
    )
    return sum(largest[-plan.at_once :])


def _step_bytes(step: Step) -> float:
    """Return the memory of a step; `buffer_bytes` of its case are the buffers of one rank."""
    largest = 2.0 ** float(step.derived.get("largest_log2", 0))
    buffers = float(step.derived.get("buffer_bytes", BUFFERS * largest * step.ranks))
    return simulated_bytes(step.ranks, buffers)
