"""Nodes that an active reservation keeps for other people, who may work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from proofmark.machine.fanout import call_for_nodes
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus


def kept_for_others(
    scheduler: DrainingScheduler, nodes: Sequence[str], own: str
) -> dict[str, NodeError]:
    """Return the nodes in an active reservation of others, or all nodes if that is unknown.

    Each command decides by this function who has reserved a node. A node that is HELD is in such a
    reservation.

    Args:
        scheduler: the scheduler of the nodes.
        nodes: the nodes.
        own: the reservation of the jobs of the run or gate; empty if there is none.
    """
    reserved: dict[str, list[str]] = {}
    unknown = call_for_nodes(lambda _: reserved.update(scheduler.reservations()), nodes[:1])
    if unknown:
        return dict.fromkeys(nodes, *unknown.values())
    names: dict[str, list[str]] = {}
    for name, members in reserved.items():
        for node in set(nodes).intersection(members) if name != own else ():
            names.setdefault(node, []).append(name)
    return {
        node: NodeError(Outcome.HELD, f"in the reservation {', '.join(found)} of another person")
        for node, found in names.items()
    }


def without_reservation(statuses: Mapping[str, NodeStatus]) -> dict[str, NodeStatus]:
    """Return the statuses for a user whose jobs start in the reservations of the nodes."""
    return {
        node: replace(status, out=False, states=(), reserved=False) if status.reserved else status
        for node, status in statuses.items()
    }
