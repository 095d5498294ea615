"""Switch levels from Slurm's topology.conf or from the output of ibnetdiscover.

Both become levels of the partition's ``fabric``: a level contains nodes whose path crosses at most
1, 3, 5 … switches. The fabric itself is not queried when a plan is made.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from proofmark.common.errors import bad_input
from proofmark.common.nodesets import ACCEPTED, folded, is_name, unfold

Levels = dict[str, dict[str, str]]
"""The nodes (a node set) by switch by level, the nearest level first."""
Distance = Callable[[str, str], int]
"""A function that returns the number of switches on the path between two leaf switches."""


def fabric_levels(text: str, file: object, names: Sequence[str] = ()) -> Levels:
    """Return the levels in `text`, named ``switches-1``, ``switches-3`` … or by `names`.

    Args:
        text: of a topology.conf (topology/tree), or the output of ``ibnetdiscover``.
        file: the name of the file, for messages.
        names: of all levels, the nearest first (``chip``, ``line-card``, ``switch``).

    Raises:
        BadInput: the text is neither of them, is not complete or is not a tree; or the number of
            `names` is not that of the levels.
    """
    is_slurm = re.search(r"^\s*SwitchName=", text, re.MULTILINE | re.IGNORECASE)
    leaves, distance = _slurm(text, file) if is_slurm else _infiniband(text, file)
    distances = sorted({distance(one, other) for one in leaves for other in leaves})
    if names and len(names) != len(distances):
        found = f"{len(names)} names for {len(distances)} levels"
        raise bad_input(file, "names", found, f"for {', '.join(map(str, distances))} switches")
    levels: Levels = {}
    for place, switches in enumerate(distances):
        groups: dict[frozenset[str], None] = {}
        for leaf in leaves:
            groups[frozenset(other for other in leaves if distance(leaf, other) <= switches)] = None
        if sum(map(len, groups)) != len(leaves):
            found = "two leaf switches at this distance whose neighbours differ"
            accepted = "levels whose groups of nodes do not overlap"
            raise bad_input(file, f"{switches} switches", found, accepted)
        name = names[place] if names else f"switches-{switches}"
        levels[name] = {
            min(group): folded(node for leaf in group for node in leaves[leaf]) for group in groups
        }
    return levels


def _slurm(text: str, file: object) -> tuple[dict[str, list[str]], Distance]:
    """Read topology.conf(5). A line has a switch, and its nodes or the switches below it."""
    above: dict[str, str] = {}
    leaves: dict[str, list[str]] = {}
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), start=1):
        words = dict(_pair(word) for word in line.partition("#")[0].split())
        if not words:
            continue
        name, nodes, below = (words.get(key, "") for key in ("switchname", "nodes", "switches"))
        if not name or bool(nodes) == bool(below):
            accepted = "SwitchName=… with either Nodes=… or Switches=…"
            raise bad_input(f"{file}:{number}", "", line.strip(), accepted)
        if nodes:
            leaves[name] = _names(nodes, f"{file}:{number}")
        for lower in _names(below, f"{file}:{number}") if below else ():
            above[lower] = name
    known = {*leaves, *above.values()}
    if missing := sorted({*above} - known):
        raise bad_input(file, "Switches", ", ".join(missing), "switches that have a line")

    def path_up(leaf: str) -> list[str]:
        path = [leaf]
        while path[-1] in above:
            path.append(above[path[-1]])
            if len(path) > len(known):
                raise bad_input(file, "Switches", f"{leaf} above itself", "a tree of switches")
        return path

    paths = {leaf: path_up(leaf) for leaf in leaves}
    if len({path[-1] for path in paths.values()}) > 1:
        tops = ", ".join(sorted({path[-1] for path in paths.values()}))
        raise bad_input(file, "", f"several top switches: {tops}", "one top switch")

    def distance(one: str, other: str) -> int:
        ups = {switch: up for up, switch in enumerate(paths[other])}
        up = next(up for up, switch in enumerate(paths[one]) if switch in ups)
        return up + ups[paths[one][up]] + 1

    return leaves, distance


def _names(nodes: str, place: str) -> list[str]:
    try:
        return unfold([nodes])
    except ValueError as error:
        raise bad_input(place, "", str(error), "a node set") from None


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key.lower(), value


_BLOCK = re.compile(r'^(?P<kind>Switch|Ca|Rt)\s+\d+\s+"(?P<id>[^"]+)"\s+#\s+"(?P<name>[^"]*)"')
_LINK = re.compile(r'^\[\d+\](?:\(\w+\))?\s+"(?P<id>[^"]+)"\[\d+\]')


def _infiniband(text: str, file: object) -> tuple[dict[str, list[str]], Distance]:
    """Read ibnetdiscover(8). A block has a switch or an adapter; a line of it has a cable.

    The name of a node is the description of its adapter up to the first blank (``knl0001 HCA-1``).
    """
    links: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    hosts: dict[str, str] = {}
    block = ""
    for line in text.splitlines():
        if head := _BLOCK.match(line):
            block = head["id"]
            links.setdefault(block, [])
            names[block] = (head["name"].split() or [block])[0]
            if head["kind"] == "Ca":
                hosts[block] = names[block]
        elif (cable := _LINK.match(line)) and block:
            links[block].append(cable["id"])
    if not hosts:
        accepted = "SwitchName=… of a topology.conf, or the output of ibnetdiscover"
        raise bad_input(file, "", "no switch and no adapter", accepted)
    leaves: dict[str, list[str]] = {}
    for adapter, host in hosts.items():
        if not is_name(host):
            raise bad_input(file, "", repr(host), ACCEPTED)
        if not (switch := next((end for end in links[adapter] if end not in hosts), "")):
            raise bad_input(file, host, "no cable to a switch", "the complete output")
        if host not in leaves.setdefault(switch, []):
            leaves[switch].append(host)
    away = {leaf: _distances(leaf, links, hosts) for leaf in leaves}

    def distance(one: str, other: str) -> int:
        if other not in away[one]:
            raise bad_input(
                file, names[one], f"no path to {names.get(other, other)}", "one connected fabric"
            )
        return away[one][other] + 1

    return leaves, distance


def _distances(
    start: str, links: Mapping[str, list[str]], hosts: Mapping[str, str]
) -> dict[str, int]:
    """Return the number of cables between the switch `start` and each other switch."""
    away = {start: 0}
    waiting = deque([start])
    while waiting:
        switch = waiting.popleft()
        for end in links.get(switch, []):
            if end not in away and end not in hosts:
                away[end] = away[switch] + 1
                waiting.append(end)
    return away
