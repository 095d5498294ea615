"""A computed placement: the node and the CPUs of every rank."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.plan.rank_cpus import RankCpus


@dataclass(frozen=True, slots=True)
class NodeRange:
    """Consecutive nodes with the same CPUs for their ranks.

    Attributes:
        nodes: number of nodes.
        cpus: for each rank of such a node, in rank order, the hardware thread (os index) of each
            thread; empty for idle nodes.
    """

    nodes: int
    cpus: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Ranks placed on nodes.

    Attributes:
        name: the requested name of the placement.
        threads: threads of each rank.
        node_ranges: the nodes in order. Thousands of like nodes are one entry.
    """

    name: str
    threads: int
    node_ranges: tuple[NodeRange, ...]

    @property
    def ranks(self) -> list[RankCpus]:
        """The CPUs of every rank, in rank order; `node` counts the requested nodes from 0."""
        nodes = (each for each in self.node_ranges for _ in range(each.nodes))
        return [RankCpus(node, cpus) for node, each in enumerate(nodes) for cpus in each.cpus]

    @property
    def nodes(self) -> int:
        """The number of requested nodes; some may be idle."""
        return sum(each.nodes for each in self.node_ranges)
