"""The elements of a fabric that may be slow, each a set of links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from proofmark.packages.fabric.keys import FabricKeys, LevelKeys
from proofmark.records.columns import Floats, Numbers
from proofmark.site.fabric import Fabric
from proofmark.site.hardware import bytes_per_s

NONE = -1
"""The number of a link that a path lacks, and of the switch of a host without one."""


@dataclass(frozen=True, eq=False)
class Tier:
    """The switches of one level and their uplinks.

    Attributes:
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
    routed = cast(FabricKeys, fabric).routing
    for level in fabric.levels:
        names: dict[str, int] = {}
        numbers = [
            NONE if name is None else names.setdefault(name, len(names))
            for name in (level.group(index, host) for index, host in enumerate(hosts))
        ]
        stated = cast(LevelKeys, level)
        declared = stated.uplinks or 0
        known = declared == 1 or bool(routed and declared)
        rate = (bytes_per_s(stated.uplink_rate) or node_rate) / node_rate
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


Kind = Literal["node", "uplink", "uplinks", "switch", "spine"]
Direction = Literal["", "up", "down"]
"""The direction of the links of an element: from the hosts to the top, or back. Empty: both."""


@dataclass(frozen=True)
class Family:
    """All elements of one kind at one level. Their numbers are consecutive.

    Attributes:
        first: the number of the first element.
        count: how many they are.
        kind: ``node`` is the port of a node, ``uplink`` one link of a switch, ``uplinks`` all of
            them, ``switch`` a switch with all its links, ``spine`` the switch to which the uplinks
            with one number lead.
        level: the number of the level of the switch; -1 for a node.
    """

    first: int
    count: int
    kind: Kind
    level: int
    direction: Direction = ""


@dataclass(frozen=True)
class Element:
    """An element of a fabric.

    Attributes:
        kind: ``node``, ``uplink``, ``uplinks`` or ``spine``; of a switch, the name of its level.
        name: of the element, for people.
        switch: the name of its switch; empty for a node and for a spine below which are all hosts.
        hosts: the hosts below it.
    """

    kind: str
    name: str
    direction: Direction
    switch: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Elements:
    """All elements of a fabric.

    Attributes:
        paths: the links of the fabric.
        of_link: the elements that have a link, `NONE` if there are fewer; shape (links, elements).
    """

    paths: Paths
    families: tuple[Family, ...]
    of_link: Numbers

    def __len__(self) -> int:
        return self.families[-1].first + self.families[-1].count

    @cached_property
    def base(self) -> Numbers:
        """The element with both directions, of each element; shape (elements,)."""
        numbers = np.arange(len(self), dtype=np.int64)
        firsts = {(each.kind, each.level): each.first for each in reversed(self.families)}
        for each in self.families:
            span = slice(each.first, each.first + each.count)
            numbers[span] += firsts[each.kind, each.level] - each.first
        return numbers

    def links(self, element: int) -> Numbers:
        """Return the links of an element."""
        return np.flatnonzero((self.of_link == element).any(axis=1))

    def unrouted(self, element: int) -> bool:
        """Return whether an element is all uplinks of a switch whose routing is not declared."""
        family = self._family(element)
        if family.kind != "uplink":
            return False
        tier = self.paths.tiers[family.level]
        return not tier.known and tier.declared != 1

    def _family(self, element: int) -> Family:
        return next(each for each in reversed(self.families) if each.first <= element)

    def element(self, number: int) -> Element:
        """Return the element with this number."""
        family = self._family(number)
        place = number - family.first
        paths = self.paths
        if family.kind == "node":
            host = paths.hosts[place]
            way = {"": "", "up": ", sending", "down": ", receiving"}[family.direction]
            return Element("node", f"port of {host}{way}", family.direction, "", (host,))
        tier = paths.tiers[family.level]
        if family.kind == "spine":
            return self._spine(family.level, *divmod(place, tier.uplinks))
        switch, link = divmod(place, tier.uplinks if family.kind == "uplink" else 1)
        name = tier.switches[switch]
        hosts = self._hosts(family.level, switch)
        if family.kind == "switch":
            return Element(tier.name, f"switch {name}", "", name, hosts)
        way = f", {family.direction}" if family.direction else ""
        kind, text = _of_uplinks(family.kind, tier, link)
        return Element(kind, f"{text} of {name}{way}", family.direction, name, hosts)

    def _spine(self, level: int, parent: int, link: int) -> Element:
        tiers = self.paths.tiers
        if level + 1 < len(tiers):
            above = tiers[level + 1].switches[parent]
            name = f"switch {link} of {above} above each {tiers[level].name}"
            return Element("spine", name, "", above, self._hosts(level + 1, parent))
        name = f"spine {link} above each {tiers[level].name}"
        return Element("spine", name, "", "", self.paths.hosts)

    def _hosts(self, level: int, switch: int) -> tuple[str, ...]:
        numbers = np.flatnonzero(self.paths.groups[level] == switch)
        return tuple(self.paths.hosts[number] for number in numbers)


def elements_of(paths: Paths) -> Elements:
    """Return the elements of a fabric.

    At equal evidence the element with the smaller number is named. Elements with fewer links have
    smaller numbers, and one with both directions has a smaller number than its directions.
    """
    families = list(_families(paths))
    firsts = {(each.kind, each.level, each.direction): each.first for each in families}
    hosts = np.arange(len(paths.hosts))
    columns: list[list[Any]] = []
    for direction in ("up", "down"):
        columns.append(
            [firsts["node", -1, ""] + hosts, firsts["node", -1, direction] + hosts]
            + ([_switch(firsts, paths, 0)[paths.groups[0]]] if paths.tiers else [])
        )
    blocks = [_padded(column) for column in columns]
    for level, tier in enumerate(paths.tiers):
        blocks.append(_of_tier(paths, firsts, level, tier))
    of_link = np.full((paths.links, max(block.shape[1] for block in blocks)), NONE, dtype=np.int64)
    row = 0
    for block in blocks:
        of_link[row : row + len(block), : block.shape[1]] = block
        row += len(block)
    return Elements(paths, tuple(families), of_link)


def _families(paths: Paths) -> Iterator[Family]:
    first = 0
    sizes: list[tuple[int, Kind, int, Direction]] = [
        (len(paths.hosts), "node", -1, way) for way in ("", "up", "down")
    ]
    for level, tier in enumerate(paths.tiers):
        links = len(tier.switches) * tier.uplinks
        sizes += [(links, "uplink", level, way) for way in ("", "up", "down")]
    for level, tier in enumerate(paths.tiers):
        if tier.uplinks > 1:
            sizes.append((len(tier.switches), "uplinks", level, ""))
        sizes.append((len(tier.switches), "switch", level, ""))
    for level, tier in enumerate(paths.tiers):
        if tier.uplinks > 1:
            sizes.append((len(_parents(paths, level)[1]) * tier.uplinks, "spine", level, ""))
    for count, kind, level, way in sizes:
        yield Family(first, count, kind, level, way)
        first += count


def _parents(paths: Paths, level: int) -> tuple[Numbers, Numbers]:
    """Return the switch above each switch of `level`, and the numbers of all of these.

    Above the last level there is one group: all hosts.
    """
    switches = len(paths.tiers[level].switches)
    if level + 1 == len(paths.tiers):
        return np.zeros(switches, dtype=np.int64), np.zeros(1, dtype=np.int64)
    host = np.argmax(paths.groups[level] == np.arange(switches)[:, None], axis=1)
    return paths.groups[level + 1][host], np.arange(len(paths.tiers[level + 1].switches))


def _switch(firsts: Any, paths: Paths, level: int) -> Numbers:
    """Return the elements of the switches of `level`, with `NONE` as the last one."""
    numbers = firsts["switch", level, ""] + np.arange(len(paths.tiers[level].switches))
    return np.append(numbers, NONE)


def _of_tier(paths: Paths, firsts: Any, level: int, tier: Tier) -> Numbers:
    """Return the elements of each link of a tier, in the order of the links."""
    switches = len(tier.switches)
    uplink = np.arange(switches * tier.uplinks)
    switch = uplink // tier.uplinks
    both = np.repeat(uplink, 2)
    way = np.tile([firsts["uplink", level, "up"], firsts["uplink", level, "down"]], len(uplink))
    columns = [firsts["uplink", level, ""] + both, way + both]
    columns.append(np.repeat(_switch(firsts, paths, level)[switch], 2))
    parents, _ = _parents(paths, level)
    if level + 1 < len(paths.tiers):
        columns.append(np.repeat(_switch(firsts, paths, level + 1)[parents[switch]], 2))
    if tier.uplinks > 1:
        columns.append(np.repeat(firsts["uplinks", level, ""] + switch, 2))
        spine = np.where(
            parents[switch] == NONE,
            NONE,
            firsts["spine", level, ""] + parents[switch] * tier.uplinks + uplink % tier.uplinks,
        )
        columns.append(np.repeat(spine, 2))
    return _padded(columns)


def _padded(columns: list[Any]) -> Numbers:
    return np.stack(columns, axis=1).astype(np.int64)


def _of_uplinks(kind: Kind, tier: Tier, link: int) -> tuple[str, str]:
    """Return the kind and the name of one uplink, or of all uplinks, of a switch."""
    if kind == "uplinks" or not tier.known:
        return "uplinks", "all uplinks"
    return "uplink", "the uplink" if tier.uplinks == 1 else f"uplink {link}"
