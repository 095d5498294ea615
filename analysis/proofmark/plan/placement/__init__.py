"""Placements: named rules for the CPUs of ranks and threads, computed from the topology.

``docs/placement.md`` draws each of them.
"""

from proofmark.plan.placement.placement_request import (
    LackingError,
    PlacementError,
    PlacementRequest,
)
from proofmark.plan.placement.placing import place
from proofmark.plan.placement.rules import RULES, Placement

__all__ = ["RULES", "LackingError", "Placement", "PlacementError", "PlacementRequest", "place"]
