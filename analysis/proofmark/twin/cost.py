"""Computes the time and the memory that the simulation of a plan needs.

SimGrid reads the model when a step starts, and computes the routes of each zone by Floyd's
algorithm: a node is a zone of its CPUs and routers, and the nodes and switches are one zone. For n
ends it needs n³ operations, and n² routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from proofmark.common.network_time import simulated_bytes
from proofmark.plan.plan import Group, Plan
from proofmark.plan.step import Step
from proofmark.plan.totals import totals
from proofmark.twin.graph import Graph
from proofmark.twin.twin_model import TwinModel

BUFFERS = 2
"""The buffers of a rank, each with one message of every rank, if the case has no `buffer_bytes`."""
ROUTE_BYTES = 32
"""The memory of a route. Measured: SimGrid 3.32, 2 to 64 nodes of 275 ends, 1,600 of 13."""
OPERATION_S = 2e-9
"""The time of an operation of Floyd's algorithm. Measured: 0.9 to 2.2 ns for these models."""
EXCESS = 10
"""The factor of the estimated time in the time limit of a step."""


@dataclass(frozen=True)
class StartCost:
    """What a step needs to read the model: memory in bytes, time in seconds."""

    memory: float
    seconds: float


def start_cost(model: TwinModel) -> StartCost:
    """Return the cost of the start of a step."""
    inside, nodes = _ends(model.node), len(model.nodes)
    between = nodes + _ends(model.network)
    routes = nodes * inside**2 + between**2
    operations = nodes * inside**3 + between**3
    return StartCost(routes * ROUTE_BYTES, operations * OPERATION_S)


def _ends(graph: Graph) -> int:
    return len(graph.cpus) + len(graph.routers)


def with_starts(plan: Plan, start: StartCost) -> Plan:
    """Return `plan`. The time and the time limit of each step include the start."""

    def started(step: Step) -> Step:
        later = {
            "seconds": step.seconds + start.seconds,
            "timeout": step.timeout + ceil(EXCESS * start.seconds),
        }
        return step.model_copy(update=later)

    def of_group(group: Group) -> Group:
        jobs = [
            job.model_copy(update={"steps": [started(step) for step in job.steps]})
            for job in group.jobs
        ]
        return group.model_copy(update={"jobs": jobs})

    groups = [of_group(group) for group in plan.groups]
    return plan.model_copy(update={"groups": groups, "totals": totals(groups, plan.searches)})


def memory_bytes(plan: Plan, start: StartCost) -> float:
    """Return the memory of the largest step of each job that runs at the same time."""
    found = []
    for group in plan.groups:
        found += [max(_step_bytes(step, start) for step in job.steps) for job in group.jobs]
    largest = sorted(found)
    return sum(largest[-plan.at_once :])


def _step_bytes(step: Step, start: StartCost) -> float:
    """Return the memory of a step, whose measurements are simulations at the same time.

    `buffer_bytes` of its case are the buffers of one rank.
    """
    largest = 2.0 ** float(step.derived.get("largest_log2", 0))
    buffers = float(step.derived.get("buffer_bytes", BUFFERS * largest * step.ranks))
    return step.measurements * (simulated_bytes(step.ranks, buffers) + start.memory)
