"""Nodes whose link loses packets: their shares of TCP segments that were sent again.

TCP repairs a loss of some percent, and large messages keep most of their rate. A comparison of
rates therefore does not find it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from proofmark.common.message import Message
from proofmark.runs.nodes import Node
from proofmark.site.node.counters import tcp_segments

LEAST = 5e-3
"""The least share of segments that is a fault. Congestion between healthy nodes costs less."""
LEAST_SENT = 1000
"""Fewer segments are no measurement of a share of `LEAST`."""
LEAST_NODES = 7
"""In a ring, a lossy link reaches three nodes. They must be less than half of all."""
MUCH = 4.0
"""The least ratio to the median of the nodes: if all nodes lose packets, it is no node's fault."""
TOP = 0.75
"""The least ratio to the largest share. A peer of a lossy node sends segments again to it only."""


@dataclass(frozen=True)
class Loss:
    """The share of the TCP segments of a node that were sent again during the jobs of a run.

    Attributes:
        share: of the node.
        usual: the median of the nodes.
        nodes: the number of nodes with enough segments.
    """

    share: float
    usual: float
    nodes: int

    @property
    def message(self) -> Message:
        """The loss in words."""
        shares = {"share": f"{self.share:.2%}", "usual": f"{self.usual:.2%}"}
        return Message("packets-lost", nodes=self.nodes, **shares)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return dict(vars(self))


def losses(segments: Mapping[str, tuple[int, int]]) -> dict[str, Loss]:
    """Return the nodes whose link loses packets.

    Args:
        segments: by node, the TCP segments that were sent again, and all that were sent.
    """
    shares = {host: again / sent for host, (again, sent) in segments.items() if sent >= LEAST_SENT}
    if len(shares) < LEAST_NODES:
        return {}
    usual, largest = median(shares.values()), max(shares.values())
    least = max(LEAST, MUCH * usual, TOP * largest)
    return {
        host: Loss(share, usual, len(shares)) for host, share in shares.items() if share >= least
    }


def segments_of(node: Node) -> tuple[int, int]:
    """Return the numbers of resent and of all sent TCP segments during the jobs of `node`."""
    again = sent = 0
    for job in node.jobs:
        before, after = job.provenance.before, job.provenance.after
        if after and (of_job := tcp_segments(before, after)):
            again, sent = again + of_job[0], sent + of_job[1]
    return again, sent
