"""Placements: named rules for the CPUs of ranks and threads, computed from the topology.

``docs/placement.md`` draws each of them.
"""

from proofmark.plan.placement.engine import place
from proofmark.plan.placement.model import Placement
from proofmark.plan.placement.request import PlacementError
from proofmark.plan.placement.rules import RULES

__all__ = ["RULES", "Placement", "PlacementError", "place"]
