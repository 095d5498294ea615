"""Chooses the nodes of a nightly check. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence


def next_nodes(
    nodes: Sequence[str],
    idle: Collection[str],
    checked: Mapping[str, str],
    cost: Callable[[Sequence[str]], float],
    node_hours: float,
) -> list[str]:
    """Return the nodes to check now: those whose last check is the longest time ago.

    A node that was never checked comes first. Equal nodes are in the order of `nodes`. The plan of
    the returned nodes costs at most `node_hours`. A budget that does not suffice for one node
    returns no node.

    Args:
        nodes: the nodes of the partition.
        idle: the nodes without jobs.
        checked: the time of the last check of a node, in ISO 8601 with one time zone.
        cost: returns the node-hours of the plan of some nodes; it grows with their number.
        node_hours: the budget.
    """
    waiting = sorted((node for node in nodes if node in idle), key=lambda n: checked.get(n, ""))
    fits, fails = 0, 1
    while fails <= len(waiting) and cost(waiting[:fails]) <= node_hours:
        fits, fails = fails, 2 * fails
    fails = min(fails, len(waiting) + 1)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if cost(waiting[:middle]) <= node_hours:
            fits = middle
        else:
            fails = middle
    return waiting[:fits]
