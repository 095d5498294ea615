"""What one node and the scheduler of a site reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proofmark.site.node.facts import NodeFacts
from proofmark.site.survey.listed import GroupLimits, NodeKind


@dataclass(frozen=True)
class Bmc:
    """The BMC of a node.

    Attributes:
        address: empty if it was not found.
        address_source: what reported the address.
        pattern: the addresses of all BMCs, with ``{node}`` if the name service confirms a name, or
            with ``{number}`` if the addresses of some nodes are consecutive; else empty.
        vendor: as the BMC reports it, with the product.
        vendor_source: what reported the vendor.
        nodes: how many consecutive nodes one BMC has, by the addresses of some nodes.
    """

    address: str = ""
    address_source: str = ""
    pattern: str = ""
    vendor: str = ""
    vendor_source: str = ""
    nodes: int = 1


@dataclass(frozen=True)
class NodeReport:
    """What one node reported.

    Attributes:
        facts: the output of ``probe.sh``; None if the node gave none.
        tools: the lines of the sections of ``node-tools.sh``, by section.
        problems: why a part is missing, by the name of the part: ``probe``, a section, ``bmc``.
    """

    node: str
    facts: NodeFacts | None = None
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bmc: Bmc = Bmc()
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Survey:
    """What was found of a site.

    Attributes:
        scheduler: its name, ``none`` if there is none.
        reports: what nodes reported, by their names in the inventory.
        listing_source: the command that listed the nodes.
        listing_problem: why the nodes are not listed; empty if they are.
        limits: the limits of the groups of the kinds, by the name of the group.
        groups_are_queues: whether jobs are submitted to the groups of the kinds.
        fabric: text with the switches, as `fabric_levels` reads it; empty if there is none.
        fabric_source: the command that printed `fabric`, or why there is none.
        local: whether the only node is this machine.
    """

    scheduler: str
    kinds: tuple[NodeKind, ...]
    reports: Mapping[str, NodeReport]
    listing_source: str = ""
    listing_problem: str = ""
    limits: Mapping[str, GroupLimits] = field(default_factory=dict)
    groups_are_queues: bool = False
    fabric: str = ""
    fabric_source: str = ""
    local: bool = False

    def report_of(self, kind: NodeKind) -> NodeReport | None:
        """Return what a node of `kind` reported; None if none was read."""
        return next((self.reports[name] for name in kind.names if name in self.reports), None)
