"""Switch levels from what a site has anyway: Slurm's topology.conf, or ibnetdiscover's output.

Both become levels of the partition's ``fabric``: nodes whose way crosses no more than 1, 3, 5 …
switches are together. Nothing asks the fabric while a plan is made.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from proofmark.common.errors import bad_input
from proofmark.common.nodesets import folded, unfold

Levels = dict[str, dict[str, str]]
"""By level, the nearest first: the nodes (a node set) by the name of what they share."""
Apart = Callable[[str, str], int]


def fabric_levels(text: str, file: object, names: Sequence[str] = ()) -> Levels:
    """Return the levels that `text` tells, named ``switches-1``, ``switches-3`` … or by `names`.

    Args:
        text: of a topology.conf (topology/tree), or what ``ibnetdiscover`` printed.
        file: where it stands, for messages.
        names: of all the levels, the nearest first (``chip``, ``line-card``, ``switch``).

    Raises:
        BadInput: the text is neither, not whole, no tree, or there are other levels than `names`.
    """
    is_slurm = re.search(r"^\s*SwitchName=", text, re.MULTILINE | re.IGNORECASE)
    leaves, apart = _slurm(text, file) if is_slurm else _infiniband(text, file)
    distances = sorted({apart(one, other) for one in leaves for other in leaves})
    if names and len(names) != len(distances):
        found = f"{len(names)} names for {len(distances)} levels"
        raise bad_input(file, "names", found, f"for {', '.join(map(str, distances))} switches")
    levels: Levels = {}
    for place, distance in enumerate(distances):
        groups: dict[frozenset[str], None] = {}
        for leaf in leaves:
            groups[frozenset(other for other in leaves if apart(leaf, other) <= distance)] = None
        if sum(map(len, groups)) != len(leaves):
            found = "switches that are near to one of two, but not to the other"
            accepted = "levels of which each holds whole ones"
            raise bad_input(file, f"{distance} switches", found, accepted)
        name = names[place] if names else f"switches-{distance}"
        levels[name] = {
            min(group): folded(node for leaf in group for node in leaves[leaf]) for group in groups
        }
    return levels


def _slurm(text: str, file: object) -> tuple[dict[str, list[str]], Apart]:
    """Read topology.conf(5): a line a switch, with its nodes or the switches below it."""
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
            leaves[name] = unfold([nodes])
        for lower in unfold([below]) if below else ():
            above[lower] = name
    known = {*leaves, *above.values()}
    if missing := sorted({*above} - known):
        raise bad_input(file, "Switches", ", ".join(missing), "switches that have a line")

    def way(leaf: str) -> list[str]:
        path = [leaf]
        while path[-1] in above:
            path.append(above[path[-1]])
            if len(path) > len(known):
                raise bad_input(file, "Switches", f"{leaf} above itself", "a tree of switches")
        return path

    ways = {leaf: way(leaf) for leaf in leaves}
    if len({path[-1] for path in ways.values()}) > 1:
        tops = ", ".join(sorted({path[-1] for path in ways.values()}))
        raise bad_input(file, "", f"several tops: {tops}", "one switch above all")

    def apart(one: str, other: str) -> int:
        there = {switch: up for up, switch in enumerate(ways[other])}
        up = next(up for up, switch in enumerate(ways[one]) if switch in there)
        return up + there[ways[one][up]] + 1

    return leaves, apart


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key.lower(), value


_BLOCK = re.compile(r'^(?P<kind>Switch|Ca|Rt)\s+\d+\s+"(?P<id>[^"]+)"\s+#\s+"(?P<name>[^"]*)"')
_LINK = re.compile(r'^\[\d+\](?:\(\w+\))?\s+"(?P<id>[^"]+)"\[\d+\]')


def _infiniband(text: str, file: object) -> tuple[dict[str, list[str]], Apart]:
    """Read ibnetdiscover(8): a block a switch or adapter, a line a cable.

    A node is its adapter's description up to the first blank (``knl0001 HCA-1``).
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
        accepted = "SwitchName=… of a topology.conf, or what ibnetdiscover prints"
        raise bad_input(file, "", "no switch and no adapter", accepted)
    leaves: dict[str, list[str]] = {}
    for adapter, host in hosts.items():
        if not (switch := next((end for end in links[adapter] if end not in hosts), "")):
            raise bad_input(file, host, "no cable to a switch", "the whole output")
        if host not in leaves.setdefault(switch, []):
            leaves[switch].append(host)
    away = {leaf: _distances(leaf, links, hosts) for leaf in leaves}

    def apart(one: str, other: str) -> int:
        if other not in away[one]:
            raise bad_input(file, names[one], f"no way to {names.get(other, other)}", "one fabric")
        return away[one][other] + 1

    return leaves, apart


def _distances(
    start: str, links: Mapping[str, list[str]], hosts: Mapping[str, str]
) -> dict[str, int]:
    """Return the cables between the switch `start` and each other switch."""
    away = {start: 0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for end in links.get(here, []):
            if end not in away and end not in hosts:
                away[end] = away[here] + 1
                waiting.append(end)
    return away
