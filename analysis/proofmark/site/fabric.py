"""The network between nodes as a site declares it: switch levels, and which nodes are near."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from pydantic import model_validator

from proofmark.cases.models import Slug, Text
from proofmark.common.nodesets import unfold
from proofmark.common.strict_model import RenamedKeys, StrictModel
from proofmark.site.hardware import Count


class Level(RenamedKeys):
    """Nodes that are close together.

    Every `hosts_per_switch` hosts, in the inventory's order, are one; or `switches` names the nodes
    (a node set) of each, as ``proofmark fabric`` writes it from what the site has.
    """

    RENAMED = {
        "each": "hosts_per_switch",
    }

    name: Slug
    hosts_per_switch: Count | None = None
    switches: dict[str, Text] = {}

    @model_validator(mode="after")
    def _told_once(self) -> Level:
        if (self.hosts_per_switch is None) == (not self.switches):
            raise ValueError("exactly one of hosts_per_switch and switches")
        return self

    @cached_property
    def _by_host(self) -> dict[str, str]:
        return {host: name for name, hosts in self.switches.items() for host in unfold([hosts])}

    def group(self, index: int, host: str) -> str | None:
        """Return what the host, with this number from 0, shares with the others near it."""
        if self.hosts_per_switch:
            return f"{self.name}-{index // self.hosts_per_switch + 1:03d}"
        return self._by_host.get(host)


class Fabric(StrictModel):
    """The switch levels between two nodes, the nearest first, and the racks.

    Two nodes that share none of `levels` are `top` apart.
    """

    levels: list[Level] = []
    top: Slug = "fabric"
    rack: Count | None = None
    source: Text = "not told"

    @model_validator(mode="after")
    def _nested(self) -> Fabric:
        sizes = [level.hosts_per_switch for level in self.levels if level.hosts_per_switch]
        if any(outer % inner for inner, outer in pairwise(sizes)):
            raise ValueError("levels: each one holds whole ones of the level before it")
        return self

    @property
    def names(self) -> list[str]:
        """How far two nodes can be apart, the nearest first."""
        return [*(level.name for level in self.levels), self.top]

    def location(self, index: int, host: str = "") -> dict[str, str]:
        """Return the switch of each level, and the rack, of the host with this number from 0."""
        groups = {level.name: level.group(index, host) for level in self.levels}
        if self.rack:
            groups["rack"] = f"rack-{index // self.rack + 1:03d}"
        return {name: group for name, group in groups.items() if group}

    def distance(self, one: tuple[int, str], other: tuple[int, str]) -> str:
        """Return the nearest level that two hosts, each by number and name, share."""
        for level in self.levels:
            group = level.group(*one)
            if group and group == level.group(*other):
                return level.name
        return self.top
