"""Calls a scheduler for many nodes at once, so that one refused node does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from proofmark.common.nodesets import folded
from proofmark.machine.fanout import STOP_SIGNALS, node_error
from proofmark.machine.outcome import NodeError, Outcome

ONE_BY_ONE_S = 600.0
"""The time limit for calls of the scheduler for one node each, after it refused all together."""


def call_for_nodes(
    call: Callable[[Sequence[str]], object], nodes: Sequence[str]
) -> dict[str, NodeError]:
    """Call the scheduler for all nodes; return the nodes for which it failed.

    A node that the scheduler does not have makes its command fail for all. Therefore a refused
    command is repeated for each node.
    """
    begin = monotonic()
    try:
        if nodes:
            call(nodes)
        return {}
    except STOP_SIGNALS:
        raise
    except Exception as error:
        failure = node_error(error, folded(nodes), begin)
    if len(nodes) == 1 or failure.outcome is not Outcome.UNEXPECTED:
        return dict.fromkeys(nodes, failure)
    failed: dict[str, NodeError] = {}
    for node in nodes:
        in_time = monotonic() < begin + ONE_BY_ONE_S
        failed |= call_for_nodes(call, [node]) if in_time else {node: failure}
    return failed
