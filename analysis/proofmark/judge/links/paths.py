"""The links between pairs of hosts in a fabric, as numbers of numpy.

A link here has one direction. Each host has one link to its switch and one from it. Each switch of
a level has its uplinks, and one link down for each of them. If the fabric does not declare how an
uplink is chosen, all uplinks of a switch are one link of unknown rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proofmark.records.columns import Floats, Numbers
from proofmark.site.fabric import Fabric
from proofmark.site.hardware import bytes_per_s

NONE = -1
"""The number of a link that a path lacks, and of the switch of a host without one."""


@dataclass(frozen=True, eq=False)
class Tier:
    """The switches of one level and their uplinks.

    Attributes:
        name: of the level.
        switches: the names of the switches.
        uplinks: the links of one switch that paths distinguish.
        declared: the declared number of uplinks; 0 if it is not declared.
        capacity: of one link, in rates of the link of a node; infinite if it is not known.
        first: the number of the first link of this level.
    """

    name: str
    switches: tuple[str, ...]
    uplinks: int
    declared: int
    capacity: float
    first: int

    @property
    def links(self) -> int:
        """The number of links of this level, of both directions."""
        return 2 * len(self.switches) * self.uplinks

    @property
    def known(self) -> bool:
        """Whether the uplink of a message is known."""
        return self.declared == self.uplinks


@dataclass(frozen=True, eq=False)
class Paths:
    """The links of a fabric, and which of them a message takes.

    The link ``host`` leads from a host, ``hosts + host`` to it. The links of a tier follow: that of
    uplink j of switch s is ``first + 2 (s uplinks + j)``, and its direction down is the next one.

    Attributes:
        hosts: the names of the hosts.
        groups: the switch of each host at each level, `NONE` without one; shape (levels, hosts).
        tiers: the levels, the nearest first.
        top: the distance of two hosts that share no switch.
        node_rate: the rate of one direction of the link of a node, in bytes/s; None if it is not
            declared.
    """

    hosts: tuple[str, ...]
    groups: Numbers
    tiers: tuple[Tier, ...]
    top: str
    node_rate: float | None = None

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each host by its name."""
        return {host: number for number, host in enumerate(self.hosts)}

    @property
    def links(self) -> int:
        """The number of links."""
        return 2 * len(self.hosts) + sum(tier.links for tier in self.tiers)

    @property
    def distances(self) -> tuple[str, ...]:
        """The names of the distances between two hosts, the nearest first."""
        return (*(tier.name for tier in self.tiers), self.top)

    @cached_property
    def capacity(self) -> Floats:
        """The rate of each link, in rates of the link of a node; shape (links,)."""
        parts = [np.ones(2 * len(self.hosts))]
        parts += [np.full(tier.links, tier.capacity) for tier in self.tiers]
        return np.concatenate(parts)

    def distance(self, pairs: Numbers) -> Numbers:
        """Return the number of the distance of each pair; shape (pairs,).

        Args:
            pairs: numbers of hosts, of shape (pairs, 2).
        """
        one, other = self.groups[:, pairs[:, 0]], self.groups[:, pairs[:, 1]]
        shared = (one == other) & (one != NONE)
        last = np.ones((1, len(pairs)), dtype=bool)
        found: Numbers = np.argmax(np.concatenate([shared, last]), axis=0)
        return found

    def paths(self, pairs: Numbers) -> Numbers:
        """Return the links from the first to the second host of each pair.

        Args:
            pairs: numbers of hosts, of shape (pairs, 2).

        Returns:
            Numbers of links, of shape (pairs, 2 + 2 levels): from the first host, to the second,
            then up and down for each level; `NONE` for a level that the pair does not leave.
        """
        source, target = pairs[:, 0], pairs[:, 1]
        distance = self.distance(pairs)
        columns = [source, len(self.hosts) + target]
        for level, tier in enumerate(self.tiers):
            chosen = target % tier.uplinks
            for direction, end in enumerate((source, target)):
                switch = self.groups[level, end]
                link = tier.first + 2 * (switch * tier.uplinks + chosen) + direction
                columns.append(np.where((distance > level) & (switch != NONE), link, NONE))
        return np.stack(columns, axis=1)


def paths_of(fabric: Fabric, hosts: Sequence[str]) -> Paths:
    """Return the links of `fabric` between `hosts`, all hosts of the partition in their order."""
    tiers: list[Tier] = []
    groups: list[NDArray[Any]] = []
    first = 2 * len(hosts)
    node_rate = fabric.link_bytes_per_s
    for level in fabric.levels:
        names: dict[str, int] = {}
        numbers = [
            NONE if name is None else names.setdefault(name, len(names))
            for name in (level.group(index, host) for index, host in enumerate(hosts))
        ]
        declared = level.uplinks or 0
        known = declared == 1 or bool(fabric.routing and declared)
        rate = (bytes_per_s(level.uplink_rate) or node_rate) / node_rate
        tier = Tier(
            name=level.name,
            switches=tuple(names),
            uplinks=declared if known else 1,
            declared=declared,
            capacity=rate if known else np.inf,
            first=first,
        )
        first += tier.links
        tiers.append(tier)
        groups.append(np.array(numbers, dtype=np.int64))
    shape = (len(tiers), len(hosts))
    stacked = np.array(groups, dtype=np.int64).reshape(shape)
    return Paths(tuple(hosts), stacked, tuple(tiers), fabric.top, bytes_per_s(fabric.rate))
