"""The switches and the link of the nodes of a partition: from a survey, or a file with a topology.

A file is Slurm's topology.conf(5), topology.yaml(5), the output of ``scontrol show topology`` or of
ibnetdiscover. It becomes levels of the partition's ``fabric``: a level contains nodes whose path
crosses at most 1, 3, 5 … switches. The fabric itself is not queried when a plan is made.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.host_names import HostTable, canonical, short_name
from proofmark.common.nodesets import folded, is_name, unfold
from proofmark.common.text import one_line
from proofmark.common.yaml_models import parse_yaml
from proofmark.packages.survey.answers import Fact, Found, NodeKind, NodeReport, Question, Survey
from proofmark.site.hardware_limits import ETHERNET, link
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import SLINGSHOT_DRIVER, Port

ALL = "ALL"
"""The word of Slurm for all nodes of the cluster, as the nodes of a switch."""
Distance = Callable[[str, str], int]
"""A function that returns the number of switches on the path between two leaf switches; 0 if no
path connects them."""
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
        no_kinds = ("topology", "cluster_default")
        others = (
            f"{name} ({', '.join(f'{key}' for key in each if key not in no_kinds)})"
            for name, each in named.items()
        )
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

    def distance(one: str, other: str) -> int:
        ups = {switch: up for up, switch in enumerate(paths[other])}
        both = (up + ups[switch] + 1 for up, switch in enumerate(paths[one]) if switch in ups)
        return next(both, 0)

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


Levels = dict[str, dict[str, str]]
"""The nodes (a node set) by switch by level, the nearest level first."""


def fabric_levels(
    text: str, file: object, names: Sequence[str] = (), hosts: Sequence[str] = ()
) -> Levels:
    """Return the levels in `text`, named ``switches-1``, ``switches-3`` … or by `names`.

    Args:
        text: of a topology.conf or topology.yaml (topology/tree), or the output of
            ``ibnetdiscover``. A node is named once, without its domain if `text` has both names.
        file: the name of the file, for messages.
        names: of all levels, the nearest first (``chip``, ``line-card``, ``switch``).
        hosts: switches without a path to these nodes are left out; empty: all switches count.

    Raises:
        BadInput: the text is neither of them, is not complete or is not a tree; no path connects
            two of the nodes; or the number of `names` is not that of the levels.
    """
    switches = switches_of(text, file)
    nodes_of, distance = tree(switches, file) if switches else _infiniband(text, file)
    leaves = _named_once(nodes_of)
    if hosts and [ALL] not in leaves.values():
        table = HostTable.of(hosts)
        own = [leaf for leaf, nodes in leaves.items() if table.found(nodes)]
        connected = set()  # other trees of switches are no part of this partition
        for leaf in own:
            connected |= {other for other in leaves if distance(leaf, other)}
        leaves = {leaf: nodes for leaf, nodes in leaves.items() if leaf in connected}
    every_distance = set()
    for one, nodes in leaves.items():
        for other in leaves:
            if not distance(one, other):
                found = f"no path from {nodes[0]} to {leaves[other][0]}"
                raise bad_input(file, "", found, "one connected fabric, with one top switch")
            every_distance.add(distance(one, other))
    distances = sorted(every_distance)
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
        hosts: the host of each adapter that has one.
        others: the description of each other adapter.
    """

    links: dict[str, list[str]] = field(default_factory=dict)
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
            name = (description.split() or [""])[0]
            if head["kind"] == "Ca":
                if (
                    _OF_VENDOR.search(description)
                    or short_name(name) in _NO_HOST
                    or not is_name(name)
                ):
                    parts.others[block] = description
                else:
                    parts.hosts[block] = name
        elif (cable := _LINK.match(line)) and block:
            parts.links[block].append(cable["id"])
    return parts


def _infiniband(text: str, file: object) -> tuple[dict[str, list[str]], Distance]:
    """Return the hosts of each leaf switch of ibnetdiscover, and the distance of two of these.

    The name of a node is the description of its adapter up to the first blank (``knl0001 HCA-1``).
    """
    parts = _parts(text)
    links, hosts = parts.links, parts.hosts
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
        return away[one].get(other, -1) + 1

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


def _active_ports(facts: NodeFacts) -> list[Port]:
    """Return the ports of the fabric that are active, InfiniBand and Omni-Path before Ethernet."""
    active = [port for port in facts.ports if "ACTIVE" in (port.state or "")]
    return sorted(active, key=lambda port: port.layer == "Ethernet")


def fabric_found(
    survey: Survey, kind: NodeKind, facts: NodeFacts | None, report: NodeReport | None
) -> Found:
    """Return the switch levels of the nodes of `kind`, and their link.

    Args:
        survey: what was found of the site.
        report: what one of the nodes reported; None if none was read.
    """
    found: Found = {}
    if survey.fabric:
        found |= _levels(survey, kind)
    elif len(kind.nodes) > 1:
        reason = one_line(survey.fabric_source)
        found["fabric.levels"] = Question(f"fabric.levels: which nodes share a switch? {reason}.")
    if facts is None or report is None:
        return found
    return found | _link(facts, report.node)


def _levels(survey: Survey, kind: NodeKind) -> Found:
    """Return the switch levels that contain hosts of `kind`; the outermost one is ``top``."""
    try:
        levels = fabric_levels(survey.fabric, survey.fabric_source, hosts=kind.names)
    except BadInput as error:
        text = f"fabric.levels: which nodes share a switch? {one_line(str(error))}"
        return {"fabric.levels": Question(text)}
    table = HostTable.of(kind.names)
    own: dict[str, dict[str, str]] = {}
    for level, switches in levels.items():
        members = {}
        for name, nodes in switches.items():
            names = unfold([nodes])
            members[name] = set(kind.names) if names == [ALL] else table.found(names)
        own[level] = {name: folded(sorted(each)) for name, each in members.items() if each}
    if not own or not all(own.values()):
        text = f"fabric.levels: {survey.fabric_source} does not name the hosts of this partition."
        return {"fabric.levels": Question(text)}
    *near, top = own
    below = [{"name": name, "switches": own[name]} for name in near]
    source = survey.fabric_source
    found: Found = {"fabric.levels": Fact(below, source)} if below else {}
    named = table.found(unfold(own[top].values()))
    if missing := [host for host in kind.names if host not in named]:
        found["fabric.missing"] = Question(
            f"fabric.missing: which switches have {folded(missing)}? {source} does not name them."
        )
    return {**found, "fabric.top": Fact(top, source), "fabric.source": Fact(source, source)}


def _link(facts: NodeFacts, node: str) -> Found:
    ports = _active_ports(facts)
    slingshot = [nic for nic in facts.nics if nic.driver == SLINGSHOT_DRIVER and nic.state == "up"]
    # A node with Slingshot can have ports of RoCE for its storage.
    if ports and ports[0].rate and not slingshot:
        port, rate = ports[0], one_line(ports[0].rate)
        place = f"/sys/class/infiniband/{port.adapter}/ports/{port.port}/rate of {node}"
        known = Fact(rate, place)
        asked = Question(f"fabric.rate: how many bytes/s has a link of '{rate}'?")
        found: Found = {"fabric.rate": asked if link(rate) is None else known}
        if port.layer == ETHERNET:
            # Its data rate is the number, without the coding of InfiniBand.
            found["fabric.network.kind"] = Fact("ethernet", place)
        else:
            omni = port.adapter.startswith("hfi1_")
            found["fabric.network.kind"] = Fact("omni-path" if omni else "infiniband", place)
            adapters = sorted({each.adapter for each in ports if each.layer == port.layer})
            found["fabric.network.interfaces"] = Fact(adapters, place)
        return found
    up = slingshot or [nic for nic in facts.nics if nic.state == "up"]
    speeds = {nic.name: nic.megabits for nic in up if nic.megabits}
    if not speeds:
        text = f"fabric.rate: how many bytes/s has a link? No interface of {node} reports it."
        return {"fabric.rate": Question(text)}
    fastest = max(speeds, key=lambda name: (speeds[name] or 0, name))
    source = f"/sys/class/net/{fastest}/speed of {node}: {speeds[fastest]} Mb/s"
    found = {"fabric.rate": Fact((speeds[fastest] or 0) * 1e6 / 8, source)}
    if slingshot:
        found["fabric.network.kind"] = Fact("slingshot", f"the driver of {fastest} of {node}")
    return found
