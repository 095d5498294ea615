"""Every placement by its name. To add one: a function in `inside` or `pairs` and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proofmark.plan.placement import across_nodes as nodes
from proofmark.plan.placement import pairs
from proofmark.plan.placement import within_node as inside
from proofmark.plan.placement.request import PlacementRequest


@dataclass(frozen=True, slots=True)
class Rule:
    """A placement.

    Attributes:
        over: shares the ranks out over the nodes (`nodes`).
        within: lays a node's ranks on its cores (`inside`, `pairs`).
    """

    over: Callable[[PlacementRequest], nodes.Shares]
    within: Callable[[PlacementRequest, int], inside.Layout]


RULES: dict[str, Rule] = {
    "close": Rule(nodes.balanced, inside.close),
    "spread": Rule(nodes.balanced, inside.spread),
    # P5: over the nodes balanced or unbalanced, inside a node distributed or adjacent.
    "BD": Rule(nodes.balanced, inside.distributed),
    "BA": Rule(nodes.balanced, inside.close),
    "UD": Rule(nodes.filled, inside.distributed),
    "UA": Rule(nodes.filled, inside.close),
    # P1 (C1.2): fitted to the NUMA domains or not.
    "fitted": Rule(nodes.balanced, inside.fitted),
    "unfitted": Rule(nodes.balanced, inside.unfitted),
    # P3: pairs by distance.
    "same-tile": Rule(nodes.one_pair, pairs.same_tile),
    "same-socket": Rule(nodes.one_pair, pairs.same_socket),
    "other-socket": Rule(nodes.one_pair, pairs.other_socket),
    "1-hop": Rule(nodes.one_pair, pairs.hops_away(1)),
    "2-hop": Rule(nodes.one_pair, pairs.hops_away(2)),
    "other-node": Rule(nodes.pairs_across, inside.close),
}
# P4's names for P5's four placements.
RULES |= {
    "BAL-DIST": RULES["BD"],
    "BAL-ACC": RULES["BA"],
    "UNBAL-DIST": RULES["UD"],
    "UNBAL-ACC": RULES["UA"],
}
