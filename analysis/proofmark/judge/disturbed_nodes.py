"""Nodes that something disturbs in most of their executions: it is a property of the node.

What disturbs single executions is chance: the step is repeated, and the undisturbed executions
count. A daemon that is always there belongs to the node that was delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import disturbed_records
from proofmark.records.columns import Records
from proofmark.runs.noise_file import Shares, disturbers, mean_shares

MOST = 0.5
"""A node is named if a larger share of its executions is disturbed."""
LEAST = 3
"""The least number of disturbed executions, and of other nodes with which a node is compared."""


@dataclass(frozen=True)
class DisturbedNode:
    """A node of which most executions are disturbed.

    Attributes:
        node: its name.
        disturbed, executions: the number of its disturbed executions, and of all.
        by: what took CPU time from its ranks, the largest share first.
        peers: the median share of disturbed executions of the other nodes; None if fewer than
            `LEAST` other nodes measured.
    """

    node: str
    disturbed: int
    executions: int
    by: Shares
    peers: float | None

    @property
    def is_fault(self) -> bool:
        """Whether the other nodes do not have this disturbance."""
        return self.peers is not None and self.peers <= MOST

    @property
    def message(self) -> Message:
        """What disturbs it, without the node."""
        return Message(
            "node-disturbed",
            disturbed=self.disturbed,
            executions=self.executions,
            names=disturbers(self.by),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "node": self.node,
            "disturbed": self.disturbed,
            "executions": self.executions,
            "by": dict(self.by),
            "peers": self.peers,
            **self.message.as_json("reason"),
        }


def disturbed_nodes(records: Records) -> tuple[DisturbedNode, ...]:
    """Return the nodes of which most executions are disturbed, by the records of single nodes."""
    marked = set(records.execution[disturbed_records(records)].tolist())
    found = dict(_by_node(records)) if marked else {}
    executions = records.executions
    bad = {node: [executions[n] for n in of if n in marked] for node, of in found.items()}
    shares = {node: len(bad[node]) / len(of) for node, of in found.items()}
    named = []
    for node, share in shares.items():
        if share <= MOST or len(bad[node]) < LEAST:
            continue
        others = [each for other, each in shares.items() if other != node]
        peers = median(others) if len(others) >= LEAST else None
        by = mean_shares([each.disturbers for each in bad[node]])
        named.append(DisturbedNode(node, len(bad[node]), len(found[node]), by, peers))
    return tuple(named)


def _by_node(records: Records) -> Iterator[tuple[str, list[int]]]:
    """Yield the numbers of the executions on each single node."""
    pairs = np.unique(np.stack([records.node, records.execution], axis=1), axis=0)
    by_node: dict[int, list[int]] = {}
    for node, execution in pairs.tolist():
        by_node.setdefault(node, []).append(execution)
    for node, numbers in by_node.items():
        if len(hosts_of(records.nodes[node])) == 1:
            yield records.nodes[node], numbers
