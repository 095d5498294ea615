"""Nodes that an active reservation keeps for other people, who may work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from proofmark.machine.node_calls import call_for_nodes
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import DrainingScheduler, NodeStatus


def kept_for_others(
    scheduler: DrainingScheduler, nodes: Sequence[str], own: str
) -> dict[str, NodeError]:
    """Return the nodes in an active reservation of others, and those where that is unknown.

    Args:
        scheduler: the scheduler of the nodes.
        nodes: the nodes.
        own: the reservation of the site's own jobs; empty if there is none.
    """
    names: dict[str, list[str]] = {}

    def ask(asked: Sequence[str]) -> None:
        for name, members in scheduler.reservations().items():
            for node in set(asked).intersection(members):
                names.setdefault(node, []).append(name)

    failed = call_for_nodes(ask, nodes)
    for node, found in names.items():
        if others := [name for name in found if name != own]:
            text = f"in the reservation {', '.join(others)} of another person"
            failed[node] = NodeError(Outcome.HELD, text)
    return failed


def without_reservation(statuses: Mapping[str, NodeStatus]) -> dict[str, NodeStatus]:
    """Return the statuses for a user whose jobs start in the reservations of the nodes."""
    return {
        node: replace(status, out=False, state="", reserved=False) if status.reserved else status
        for node, status in statuses.items()
    }
