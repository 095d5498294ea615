"""A node as a plan sees it: its topology and the values that expressions name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.site.node.topology import Topology


@dataclass(frozen=True)
class Machine:
    """What the plan must know of one node of the partition."""

    symbols: Mapping[str, Any]
    topology: Topology


Machines = Machine | Callable[[str], Machine]
"""The node, or the node in each mode."""
