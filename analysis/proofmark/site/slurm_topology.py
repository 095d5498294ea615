"""The switches of Slurm's topology.conf(5), topology.yaml(5) and ``scontrol show topology``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.common.nodesets import unfold
from proofmark.common.yaml_models import parse_yaml

ALL = "ALL"
"""The word of Slurm for all nodes of the cluster, as the nodes of a switch."""
Distance = Callable[[str, str], int]
"""A function that returns the number of switches on the path between two leaf switches."""
_CONF = re.compile(r"^\s*(SwitchName|BlockName|BlockSizes)=", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(r"^(- |\s*)topology:", re.MULTILINE)


@dataclass(frozen=True)
class Switch:
    """A switch, and its nodes or the switches below it.

    Attributes:
        place: where the file declares it.
        nodes, below: node sets; one of them is empty.
    """

    place: str
    name: str
    nodes: str
    below: str


def switches_of(text: str, file: object) -> list[Switch]:
    """Return the switches that Slurm's files declare; none if `text` is another file.

    Raises:
        BadInput: a switch is not complete, or the file describes no tree.
    """
    if _CONF.search(text):
        return _of_conf(text, file)
    return _of_yaml(text, file) if _YAML.search(text) else []


def _of_conf(text: str, file: object) -> list[Switch]:
    """Read topology.conf, or ``scontrol show topology``, which lists all nodes of each switch."""
    switches = []
    for number, line in enumerate(re.sub(r"\\\r?\n", " ", text).splitlines(), start=1):
        words = dict(_pair(word) for word in line.partition("#")[0].split())
        if not words:
            continue
        name, nodes, below = (words.get(key, "") for key in ("switchname", "nodes", "switches"))
        shown = "level" in words and below
        place, found = f"{file}:{number}", line.strip()
        switches.append(_checked(Switch(place, name, "" if shown else nodes, below), found))
    return switches


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key.lower(), "" if value == "(null)" else value


def _of_yaml(text: str, file: object) -> list[Switch]:
    """Read topology.yaml: the only tree, or the tree that is the default of the cluster."""
    data = parse_yaml(text, file)
    named = {
        f"{each.get('topology')}": each
        for each in (data if isinstance(data, list) else [])
        if isinstance(each, Mapping)
    }
    trees = [name for name, each in named.items() if "tree" in each]
    chosen = [name for name in trees if named[name].get("cluster_default") is True] or trees
    if len(trees) > 1 and chosen == trees:
        found = f"the trees {', '.join(trees)}, none of which is cluster_default"
        raise bad_input(file, "", found, "one tree")
    if not chosen:
        others = (f"{name} ({', '.join(_kinds(each))})" for name, each in named.items())
        raise bad_input(file, "", ", ".join(others) or "no topology", "a topology with a tree")
    tree = named[chosen[0]]["tree"]
    rows = tree.get("switches") if isinstance(tree, Mapping) else None
    switches = []
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        place = f"{file}: {chosen[0]}.tree.switches.{number}"
        words = row if isinstance(row, Mapping) else {}
        name, nodes, below = (_word(words.get(key)) for key in ("switch", "nodes", "children"))
        switches.append(_checked(Switch(place, name, nodes, below), f"{row}"))
    if not switches:
        raise bad_input(file, f"{chosen[0]}.tree.switches", "no switch", "a list of switches")
    return switches


def _kinds(topology: Mapping[str, Any]) -> list[str]:
    return [f"{key}" for key in topology if key not in ("topology", "cluster_default")]


def _word(value: object) -> str:
    return "" if value is None else f"{value}"


def _checked(switch: Switch, found: str) -> Switch:
    if not switch.name or bool(switch.nodes) == bool(switch.below):
        accepted = "a tree: SwitchName=… with either Nodes=… or Switches=… (yaml: children)"
        raise bad_input(switch.place, "", found, accepted)
    return switch


def tree(switches: Sequence[Switch], file: object) -> tuple[dict[str, list[str]], Distance]:
    """Return the nodes of each leaf switch, and the distance of two leaf switches.

    Raises:
        BadInput: the switches are no tree.
    """
    _refuse_double(switches, ((switch.name, "") for switch in switches))
    lower = {each.name: _names(each.below, each.place) if each.below else [] for each in switches}
    above: dict[str, str] = {}
    for upper, names in lower.items():
        above |= {name: upper for name in names}
    named = []
    for upper, each in lower.items():
        named += [(name, upper) for name in each]
    _refuse_double(switches, named)
    leaves = {each.name: _names(each.nodes, each.place) for each in switches if each.nodes}
    _refuse_double(switches, ((node, leaf) for leaf, nodes in leaves.items() for node in nodes))
    if missing := sorted(above.keys() - lower.keys()):
        raise bad_input(file, "Switches", ", ".join(missing), "switches that have a line")
    if len(leaves) > 1 and any(node.upper() == ALL for nodes in leaves.values() for node in nodes):
        found = f"Nodes={ALL} beside other switches with nodes"
        raise bad_input(file, "Nodes", found, f"{ALL} in the only switch with nodes, or node sets")

    def path_up(leaf: str) -> list[str]:
        path = [leaf]
        while path[-1] in above:
            path.append(above[path[-1]])
            if len(path) > len(lower):
                raise bad_input(file, "Switches", f"{leaf} above itself", "a tree of switches")
        return path

    paths = {leaf: path_up(leaf) for leaf in leaves}
    if not paths:
        raise bad_input(file, "Switches", "no switch with nodes", "a tree of switches")
    if len({path[-1] for path in paths.values()}) > 1:
        tops = ", ".join(sorted({path[-1] for path in paths.values()}))
        raise bad_input(file, "", f"several top switches: {tops}", "one top switch")

    def distance(one: str, other: str) -> int:
        ups = {switch: up for up, switch in enumerate(paths[other])}
        up = next(up for up, switch in enumerate(paths[one]) if switch in ups)
        return up + ups[paths[one][up]] + 1

    return leaves, distance


def _refuse_double(switches: Sequence[Switch], pairs: Iterable[tuple[str, str]]) -> None:
    """Refuse a name that is in two pairs of a name and the switch above it (empty: none)."""
    seen: dict[str, str] = {}
    for name, upper in pairs:
        if name in seen:
            place = next(each.place for each in reversed(switches) if each.name == (upper or name))
            twice = f"is below {seen[name]} and {upper}" if upper else "has two lines"
            raise bad_input(place, "", f"{name} {twice}", "a tree: each node and switch once")
        seen[name] = upper


def _names(nodes: str, place: str) -> list[str]:
    try:
        return unfold([nodes])
    except ValueError as error:
        raise bad_input(place, "", str(error), "a node set") from None
