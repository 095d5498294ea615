"""All placements by name. A new one is a function in `within_node` or `pairs`, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proofmark.plan.placement import across_nodes, within_node
from proofmark.plan.placement import across_nodes as pairs
from proofmark.plan.placement.placement_request import PlacementRequest
from proofmark.plan.rank_cpus import NodeRange, PlacedRanks


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of placement.

    Attributes:
        over: returns the number of ranks of each node (`across_nodes`).
        within: returns the cores of the ranks of one node (`within_node`, `pairs`).
    """

    over: Callable[[PlacementRequest], across_nodes.Shares]
    within: Callable[[PlacementRequest, int], within_node.Layout]


RULES: dict[str, Rule] = {
    "close": Rule(across_nodes.balanced, within_node.close),
    "spread": Rule(across_nodes.balanced, within_node.spread),
    # P5: balanced or unbalanced over the nodes, distributed or adjacent inside a node.
    "BD": Rule(across_nodes.balanced, within_node.distributed),
    "BA": Rule(across_nodes.balanced, within_node.close),
    "UD": Rule(across_nodes.filled, within_node.distributed),
    "UA": Rule(across_nodes.filled, within_node.close),
    # P1 (C1.2): fitted to the NUMA domains, or not.
    "fitted": Rule(across_nodes.balanced, within_node.fitted),
    "unfitted": Rule(across_nodes.balanced, within_node.unfitted),
    # P3: pairs by distance.
    "same-tile": Rule(across_nodes.one_pair, pairs.same_tile),
    "same-socket": Rule(across_nodes.one_pair, pairs.same_socket),
    "other-socket": Rule(across_nodes.one_pair, pairs.other_socket),
    "1-hop": Rule(across_nodes.one_pair, pairs.hops_away(1)),
    "2-hop": Rule(across_nodes.one_pair, pairs.hops_away(2)),
    "other-node": Rule(across_nodes.pairs_across, within_node.beside_adapter),
    "other-node-spread": Rule(across_nodes.pairs_across, within_node.spread),
}
# P4's names for P5's four placements.
RULES |= {
    "BAL-DIST": RULES["BD"],
    "BAL-ACC": RULES["BA"],
    "UNBAL-DIST": RULES["UD"],
    "UNBAL-ACC": RULES["UA"],
}


@dataclass(frozen=True, slots=True)
class Placement:
    """Ranks placed on nodes.

    Attributes:
        threads: threads of each rank.
        node_ranges: the nodes in order. Thousands of like nodes are one entry.
    """

    name: str
    threads: int
    node_ranges: tuple[NodeRange, ...]

    @property
    def ranks(self) -> PlacedRanks:
        """The CPUs of every rank, in rank order; `node` counts the requested nodes from 0."""
        return PlacedRanks(self.node_ranges)

    @property
    def nodes(self) -> int:
        """The number of requested nodes; some may be idle."""
        return sum(each.nodes for each in self.node_ranges)
