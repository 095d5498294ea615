"""Placements: named ways to lay ranks and threads on nodes, computed from the topology.

``docs/placement.md`` shows each of them.
"""

from proofmark.placement.ask import Refused
from proofmark.placement.engine import place
from proofmark.placement.model import Placement, RankPlace
from proofmark.placement.table import RULES

__all__ = ["RULES", "Placement", "RankPlace", "Refused", "place"]
