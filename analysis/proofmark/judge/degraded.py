"""A run that lacks nodes of the partition, and its figures at full scale (docs/design/cases.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from proofmark.common.host_names import HostTable
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.plan.plan import Plan

MOST_NAMED = 10
"""The largest number of nodes that a limit of Ansible excludes by name."""


@dataclass(frozen=True)
class Degraded:
    """A run with figures of fewer nodes than intended.

    Attributes:
        nodes: the number of nodes of the run or of its largest step.
        of: the number of nodes that were intended.
        missing: the intended nodes without a result.
        steps: the label of each step that was to measure all nodes of the partition together.
        limit: the value of ``-l`` for a run without the missing nodes, which a planned step needs;
            empty if no step needs them.
    """

    nodes: int
    of: int
    missing: tuple[str, ...] = ()
    steps: Mapping[str, Message] = field(default_factory=dict)
    limit: str = ""

    @property
    def label(self) -> Message:
        """The label of the run: ``degraded: 8,301 of 8,305 nodes``."""
        return label(self.nodes, self.of)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "label": self.label,
            "nodes": self.nodes,
            "of": self.of,
            "missing": folded(self.missing),
            "limit": self.limit,
        }


def label(nodes: int, of: int) -> Message:
    """Return the label of a figure or a run of `nodes` nodes."""
    return Message("degraded", nodes=f"{nodes:,}", all=f"{of:,}")


def degraded(
    plan: Plan, partition: Collection[str], measured: Iterable[str], missing_steps: Collection[str]
) -> Degraded | None:
    """Return what a run lacks; None if it lacks nothing, or if nothing was measured.

    All nodes of the partition are intended if the suite uses them on a run without a limit. Else
    the planned nodes are.

    Args:
        plan: the plan of the run.
        partition: the hosts of the partition.
        measured: the nodes with a result, as records name them.
        missing_steps: the steps without a record.
    """
    planned = dict.fromkeys(chain.from_iterable(step.nodes for step in plan.steps_to_run()))
    intended = list(partition) if plan.fewer_nodes else list(planned)
    table = HostTable.of(intended)
    seen = table.found(hosts_of_nodes(measured))
    missing = tuple(node for node in intended if node not in seen)
    if len(missing) == len(intended):
        return None
    largest = _largest_steps(plan)
    sizes = [len(intended) - len(missing), *(size for size, _ in largest.values())]
    if min(sizes) == len(intended):
        return None
    lost = set(missing) & set(planned)
    blocked = any(
        step.id in missing_steps and step.scope == "job" and len(step.nodes) > 1
        for step in plan.steps_to_run()
        if lost.intersection(step.nodes)
    )
    labels: dict[str, Message] = {}
    for case, (size, steps) in largest.items():
        labels |= dict.fromkeys(steps, label(size, plan.fewer_nodes[case]))
    without = ":".join([plan.partition, *(f"!{node}" for node in missing)])
    return Degraded(
        nodes=min(sizes),
        of=len(intended),
        missing=missing,
        steps=labels,
        limit=without if blocked and len(missing) <= MOST_NAMED else "",
    )


def _largest_steps(plan: Plan) -> dict[str, tuple[int, list[str]]]:
    """Return the largest steps of each case with fewer nodes, and their number of nodes.

    Only steps whose nodes measure together count, on more than one node.
    """
    largest: dict[str, tuple[int, list[str]]] = {}
    for step in plan.steps():
        if step.case not in plan.fewer_nodes or step.scope != "job" or len(step.nodes) < 2:
            continue
        size, steps = largest.get(step.case, (0, []))
        if len(step.nodes) > size:
            largest[step.case] = (len(step.nodes), [step.id])
        elif len(step.nodes) == size:
            steps.append(step.id)
    return largest
