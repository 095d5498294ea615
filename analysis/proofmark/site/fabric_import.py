"""Switch levels from Slurm's topology files or from the output of ibnetdiscover.

Both become levels of the partition's ``fabric``: a level contains nodes whose path crosses at most
1, 3, 5 … switches. The fabric itself is not queried when a plan is made.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.common.errors import bad_input
from proofmark.common.host_names import canonical, short_name
from proofmark.common.nodesets import folded, is_name
from proofmark.site.slurm_topology import Distance, switches_of, tree

Levels = dict[str, dict[str, str]]
"""The nodes (a node set) by switch by level, the nearest level first."""


def fabric_levels(text: str, file: object, names: Sequence[str] = ()) -> Levels:
    """Return the levels in `text`, named ``switches-1``, ``switches-3`` … or by `names`.

    Args:
        text: of a topology.conf or topology.yaml (topology/tree), or the output of
            ``ibnetdiscover``. A node is named once, without its domain if `text` has both names.
        file: the name of the file, for messages.
        names: of all levels, the nearest first (``chip``, ``line-card``, ``switch``).

    Raises:
        BadInput: the text is neither of them, is not complete or is not a tree; or the number of
            `names` is not that of the levels.
    """
    switches = switches_of(text, file)
    nodes_of, distance = tree(switches, file) if switches else _infiniband(text, file)
    leaves = _named_once(nodes_of)
    collected = set()
    for one in leaves:
        collected |= {distance(one, other) for other in leaves}
    distances = sorted(collected)
    if names and len(names) != len(distances):
        found = f"{len(names)} names for {len(distances)} levels"
        raise bad_input(file, "names", found, f"for {', '.join(map(str, distances))} switches")
    levels: Levels = {}
    for place, crossed in enumerate(distances):
        groups: dict[frozenset[str], None] = {}
        for leaf in leaves:
            groups[frozenset(other for other in leaves if distance(leaf, other) <= crossed)] = None
        if sum(map(len, groups)) != len(leaves):
            found = "two leaf switches at this distance whose neighbours differ"
            accepted = "levels whose groups of nodes do not overlap"
            raise bad_input(file, f"{crossed} switches", found, accepted)
        name = names[place] if names else f"switches-{crossed}"
        levels[name] = {
            min(group): folded(node for leaf in group for node in leaves[leaf]) for group in groups
        }
    return levels


def _named_once(leaves: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return `leaves` with one spelling of each node: two names of one host are one node."""
    full: dict[str, dict[str, str]] = {}
    for nodes in leaves.values():
        for node in nodes:
            full.setdefault(short_name(canonical(node)), {}).setdefault(canonical(node), node)

    def spelling(node: str) -> str:
        name = canonical(node)
        same = full[short_name(name)]
        # With two domains, a name without a domain may be each of the two hosts.
        return same.get(short_name(name), same[name]) if len(same) <= 2 else same[name]

    return {
        leaf: list(dict.fromkeys(spelling(node) for node in nodes))
        for leaf, nodes in leaves.items()
    }


_BLOCK = re.compile(r'^(?P<kind>Switch|Ca|Rt)\s+\d+\s+"(?P<id>[^"]+)"\s+#\s+"(?P<name>[^"]*)"')
_LINK = re.compile(r'^\[\d+\](?:\[ext \d+\])?(?:\(\w+\))?\s+"(?P<id>[^"]+)"\[\d+\]')
_OF_VENDOR = re.compile(
    r"\b(Mellanox|ConnectX-?\d*|InfiniHost|InfiniPath|QLogic|Voltaire|Aggregation Node)\b|^MT\d+",
    re.IGNORECASE,
)
"""Descriptions that an adapter has before a host gives it its name: of the firmware, as
``MT4123 ConnectX6 Mellanox Technologies``, and that of the adapters inside of a switch."""
_NO_HOST = ("localhost", "(none)")


@dataclass(frozen=True)
class _Parts:
    """What ibnetdiscover prints.

    Attributes:
        links: the ends of the cables of each switch and adapter.
        names: the first word of the description of each of them.
        hosts: the host of each adapter that has one.
        others: the description of each other adapter.
    """

    links: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


def unnamed_adapters(text: str) -> dict[str, str]:
    """Return the descriptions of the adapters that name no host, in the output of ibnetdiscover.

    They are in no level: which host has them is not known.
    """
    return _parts(text).others


def _parts(text: str) -> _Parts:
    """Read ibnetdiscover(8). A block has a switch or an adapter; a line of it has a cable."""
    parts, block = _Parts(), ""
    for line in text.splitlines():
        if head := _BLOCK.match(line):
            block, description = head["id"], head["name"]
            parts.links.setdefault(block, [])
            name = parts.names[block] = (description.split() or [""])[0]
            if head["kind"] == "Ca":
                if _OF_VENDOR.search(description) or _is_no_host(name):
                    parts.others[block] = description
                else:
                    parts.hosts[block] = name
        elif (cable := _LINK.match(line)) and block:
            parts.links[block].append(cable["id"])
    return parts


def _is_no_host(name: str) -> bool:
    return short_name(name) in _NO_HOST or not is_name(name)


def _infiniband(text: str, file: object) -> tuple[dict[str, list[str]], Distance]:
    """Return the hosts of each leaf switch of ibnetdiscover, and the distance of two of these.

    The name of a node is the description of its adapter up to the first blank (``knl0001 HCA-1``).
    """
    parts = _parts(text)
    links, names, hosts = parts.links, parts.names, parts.hosts
    adapters = hosts.keys() | parts.others.keys()
    if not hosts:
        found = "no switch and no adapter"
        if parts.others:
            found = f"no adapter with the name of a host: {'; '.join(parts.others.values())}"
        accepted = "a topology.conf, a topology.yaml, or the output of ibnetdiscover"
        raise bad_input(file, "", found, accepted)
    leaves: dict[str, list[str]] = {}
    for adapter, host in hosts.items():
        if not (switch := next((end for end in links[adapter] if end not in adapters), "")):
            raise bad_input(file, host, "no cable to a switch", "the complete output")
        if host not in leaves.setdefault(switch, []):
            leaves[switch].append(host)
    away = {leaf: _distances(leaf, links, adapters) for leaf in leaves}

    def distance(one: str, other: str) -> int:
        if other not in away[one]:
            raise bad_input(
                file, names[one], f"no path to {names.get(other, other)}", "one connected fabric"
            )
        return away[one][other] + 1

    return leaves, distance


def _distances(
    start: str, links: Mapping[str, list[str]], adapters: Container[str]
) -> dict[str, int]:
    """Return the number of cables between the switch `start` and each other switch."""
    away = {start: 0}
    waiting = deque([start])
    while waiting:
        switch = waiting.popleft()
        for end in links.get(switch, []):
            if end not in away and end not in adapters:
                away[end] = away[switch] + 1
                waiting.append(end)
    return away
