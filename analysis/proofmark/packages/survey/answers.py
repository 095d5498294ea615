"""What a scheduler and one node of each kind reported, and the facts, assumptions and questions.

They are nodes that a scheduler lists, the output of ``node-tools.sh``, and the addresses of BMCs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_address
from itertools import chain, count, pairwise
from typing import Any
from xml.etree import ElementTree

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from proofmark.common.host_names import HostTable, short_name
from proofmark.common.nodesets import is_name
from proofmark.machine.scheduler import QueueLimits
from proofmark.site.firmware import vendor, vendors
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.probe_text import read_stream


@dataclass(frozen=True)
class Fact:
    """A value that was found, or a usual one, and its source."""

    value: Any
    source: str


@dataclass(frozen=True)
class Question:
    """A fact that was not found.

    Attributes:
        answer: lines of YAML that a person may use as the answer.
    """

    text: str
    answer: tuple[str, ...] = ()


Entry = Fact | Question
Found = dict[str, Entry]
"""Entries by dotted key below ``partition``."""

MEMORY_STEP = 0.05
"""Like nodes report memory sizes that differ by less than this share."""
RESERVED = frozenset({"all", "compute", "ungrouped", "hostvars", "group_names", "groups", "vars"})
"""Names that no partition can have: those of Ansible, and of the parent group."""


@dataclass(frozen=True)
class ListedNode:
    """A node that a scheduler lists.

    Attributes:
        kind: the properties that like nodes share, as texts (``CPUs=40``).
        memory_bytes: its memory; 0 if the scheduler does not report it.
        groups: the partitions, queues or host groups of the scheduler that contain it.
        alias: the name that the node itself reports, if it is another one.
        cpus: what the scheduler counts as its CPUs, if a job has to request them; else 0.
    """

    name: str
    kind: tuple[str, ...] = ()
    memory_bytes: int = 0
    groups: tuple[str, ...] = ()
    alias: str = ""
    cpus: int = 0


@dataclass(frozen=True)
class NodeKind:
    """The nodes of one kind: a partition of the inventory.

    Attributes:
        name: of the group in the inventory.
        nodes: the nodes, in the order of their names.
        groups: the groups of the scheduler that contain all of them, the smallest first, and of
            equal ones the default.
    """

    name: str
    nodes: tuple[ListedNode, ...]
    groups: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the nodes."""
        return [node.name for node in self.nodes]

    @property
    def kind_texts(self) -> tuple[str, ...]:
        """The properties that the nodes share."""
        return self.nodes[0].kind

    @property
    def cpus(self) -> int:
        """The CPUs that each of the nodes has for the scheduler; 0 if jobs do not request them."""
        return min(node.cpus for node in self.nodes)

    def find(self, name: str) -> ListedNode | None:
        """Return the node `name`, which may have a domain; None if no node has this name."""
        found = HostTable.of(self.names).find(name)
        return next((node for node in self.nodes if node.name == found), None)


def kinds_of(
    nodes: Iterable[ListedNode],
    limits: Mapping[str, QueueLimits] | None = None,
    *,
    queues: bool = False,
) -> list[NodeKind]:
    """Return the kinds of `nodes`, in the order of their names.

    Nodes of one kind have the same properties and nearly the same memory. A node whose name is no
    host name is left out.

    Args:
        limits: the limits of the groups; they name the default.
        queues: whether jobs are submitted to the groups. Then one group has all nodes of a kind,
            because one job can run on all of them.
    """
    defaults = {name for name, each in (limits or {}).items() if each.default}
    by_name = {node.name: node for node in nodes if is_name(node.name)}
    order = NodeSet.fromlist(list(by_name), resolver=RESOLVER_NOGROUP)
    listed = [by_name[name] for name in order if name in by_name]
    by_kind: dict[tuple[str, ...], list[ListedNode]] = {}
    for node in listed:
        by_kind.setdefault(node.kind, []).append(node)
    parts = []
    for group in by_kind.values():
        for like in _by_memory(group):
            parts += _by_queue(like, defaults) if queues else [like]
    sizes: dict[str, int] = {}
    for node in listed:
        for name in node.groups:
            sizes[name] = sizes.get(name, 0) + 1
    kinds: list[NodeKind] = []
    for part in sorted(parts, key=lambda part: part[0].name):
        common = set.intersection(*(set(node.groups) for node in part))
        groups = tuple(sorted(common, key=lambda name: (sizes[name], name not in defaults, name)))
        exact = next((name for name in groups if sizes[name] == len(part)), "")
        taken = {kind.name for kind in kinds} | {*by_name}
        kinds.append(NodeKind(_group_name(exact, part[0].name, taken), tuple(part), groups))
    return kinds


def _by_memory(nodes: Sequence[ListedNode]) -> list[list[ListedNode]]:
    """Divide `nodes` where their sorted memory sizes have a gap; keep their order."""
    sizes = sorted({node.memory_bytes for node in nodes})
    starts = [upper for lower, upper in pairwise(sizes) if upper > lower * (1 + MEMORY_STEP)]
    parts: dict[int, list[ListedNode]] = {}
    for node in nodes:
        number = sum(node.memory_bytes >= start for start in starts)
        parts.setdefault(number, []).append(node)
    return [parts[number] for number in sorted(parts)]


def _by_queue(nodes: list[ListedNode], defaults: set[str]) -> list[list[ListedNode]]:
    """Divide `nodes` into the fewest parts whose nodes share a group, the largest part first.

    Nodes without a group are a part of their own.
    """
    parts: list[list[ListedNode]] = []
    rest = nodes
    while rest:
        counts = Counter(chain.from_iterable(node.groups for node in rest))
        largest = max(counts, key=lambda name: (counts[name], name in defaults, name), default="")
        taken = [node for node in rest if not counts or largest in node.groups]
        parts.append(taken)
        rest = [node for node in rest if node not in taken]
    return parts


def _group_name(group: str, node: str, taken: set[str]) -> str:
    """Return a name for a group of Ansible: that of `group`, or the letters of `node`."""
    text = group or re.sub(r"\d+$", "", short_name(node)) or node
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    if not name[:1].isalpha():
        name = f"nodes_{name}".rstrip("_")
    if name in RESERVED:
        name = f"{name}_nodes"
    if name in taken:
        name = f"{name}_nodes"
    numbered = (f"{name}_{number}" for number in count(2))
    return next(unique for unique in chain([name], numbered) if unique not in taken)


_RANGE = re.compile(r"\[([^\[\]]*)\]")


def ansible_ranges(names: Sequence[str]) -> list[str]:
    """Return `names` as hosts of an inventory: ranges as Ansible writes them, ``node[001:512]``.

    The ranges expand to the sorted names; a name that no range contains is an entry of its own.
    """
    if not names:
        return []
    entries: list[str] = []
    for part in NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP).contiguous():
        ranges = _RANGE.findall(str(part))
        simple = len(ranges) == 1 and re.fullmatch(r"\d+-\d+", ranges[0])
        if not simple or str(part).count(",") or not _equal_ends(ranges[0]):
            entries += part
        else:
            entries.append(str(part).replace(f"[{ranges[0]}]", f"[{ranges[0].replace('-', ':')}]"))
    return entries


def _equal_ends(text: str) -> bool:
    """Return whether Ansible reads the range: a padded number has as many digits as the last."""
    first, _, last = text.partition("-")
    return not first.startswith("0") or len(first) == len(last)


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
        facts: of ``probe.sh``; None if the node gave none.
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
    limits: Mapping[str, QueueLimits] = field(default_factory=dict)
    groups_are_queues: bool = False
    fabric: str = ""
    fabric_source: str = ""
    local: bool = False

    def report_of(self, kind: NodeKind) -> NodeReport | None:
        """Return what a node of `kind` reported; None if none was read."""
        return next((self.reports[name] for name in kind.names if name in self.reports), None)


SECTIONS = ("compilers", "mpi", "modules", "bmc")
"""The sections that are read on each node."""
FABRIC = "fabric"
RATES = "rates"
MAX_NAME = 200
"""Limit of the names of modules that are kept."""


def read_tools(text: str, section: str, source: str) -> tuple[tuple[str, ...], str]:
    """Return the lines of `section`, and why they are missing; one of both is empty.

    Raises:
        BadInput: `text` is not the complete output of ``node-tools.sh``.
    """
    stream = read_stream(text, source, "tools")
    lines = stream.lines(section)
    return lines, "" if lines else stream.absent.get(section, f"no output for {section}")


def versions(lines: Iterable[str]) -> list[str]:
    """Return ``gcc 12.2.0, /usr/bin/gcc`` for each program, from the sections of programs."""
    texts: list[str] = []
    for line in lines:
        name, _, rest = line.partition(": ")
        path, _, printed = rest.partition(": ")
        if name == "srun":
            continue  # a program of Slurm; its version is no version of an MPI
        number = re.search(r"\d+\.\d+[\w.]*", re.sub(r"\([^()]*\)", "", printed) or printed)
        texts.append(f"{name} {number[0] if number else 'of unknown version'}, {path}")
    return texts


def rates(lines: Iterable[str]) -> dict[str, float]:
    """Return what a node measured: ``flops`` of all its processors, ``write`` in bytes/s."""
    found: dict[str, float] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if re.fullmatch(r"\d[\d.]*(e\+?\d+)?", value):
            found[name] = float(value)
    return found


def modules(lines: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the module system, and the names of at most `MAX_NAME` modules."""
    system, *rest = lines
    names = (line.strip() for line in rest)
    listed = [name for name in names if name and not name.endswith((":", "/")) and " " not in name]
    return system.strip(), listed[:MAX_NAME]


def bmc_address(lines: Iterable[str]) -> str:
    """Return the address in the output of ``ipmitool lan print``; empty if it has none."""
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "IP Address":
            try:
                address = ip_address(value.strip())
            except ValueError:
                return ""
            return "" if address.is_unspecified else str(address)
    return ""


def bmc_manufacturer(lines: Iterable[str]) -> str:
    """Return the manufacturer in the output of ``ipmitool mc info``; empty if it has none."""
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "Manufacturer Name" and "Unknown" not in value:
            return value.strip()
    return ""


MIN_NODES_OF_PATTERN = 2
"""The number of nodes whose addresses show a pattern."""
OCTET = 256
SIZES = (1, 2, 4)
"""The numbers of consecutive nodes that one BMC may have; a BMC of a blade has several."""


def nodes_of_bmc(addresses: Mapping[int, str]) -> int:
    """Return how many consecutive nodes each BMC has; 0 if the addresses show no pattern.

    Args:
        addresses: addresses of BMCs by the numbers of their nodes in the partition, from 0.
    """
    try:
        values = {number: int(IPv4Address(text)) for number, text in addresses.items()}
    except ValueError:
        return 0
    fitting = (
        size
        for size in SIZES
        if len({value - number // size for number, value in values.items()}) == 1
    )
    return next(fitting, 0) if len(values) >= MIN_NODES_OF_PATTERN else 0


def pattern_of(addresses: Mapping[int, str]) -> str:
    """Return the pattern of `addresses` (`nodes_of_bmc`), as `Firmware.bmc` has it; else ""."""
    size = nodes_of_bmc(addresses)
    if not size:
        return ""
    values = [int(IPv4Address(text)) for text in addresses.values()]
    base = min(int(IPv4Address(text)) - number // size for number, text in addresses.items())
    if base < 0:
        return ""
    number = "number" if size == 1 else f"number // {size}"
    first, last = min(base, *values), max(values)
    octets = IPv4Address(first).packed
    if first // OCTET == last // OCTET:
        return f"{'.'.join(map(str, octets[:3]))}.{{{number} + {octets[3]}}}"
    if first // OCTET**2 != last // OCTET**2:
        return ""
    low = base % OCTET**2
    third = f"{{({number} + {low}) // {OCTET}}}"
    return f"{octets[0]}.{octets[1]}.{third}.{{({number} + {low}) % {OCTET}}}"


OPENBMC = "openbmc"


def recognized(reported: str) -> str:
    """Return the vendor of a BMC by the name that it reports; empty if not exactly one fits.

    An OpenBMC with the name of the maker of its board is an OpenBMC.
    """
    found = [
        name
        for name in vendors()
        if any(
            re.search(rf"\b{re.escape(each)}\b", reported, re.IGNORECASE)
            for each in vendor(name).recognized_by
        )
    ]
    return OPENBMC if OPENBMC in found else (found[0] if len(found) == 1 else "")


def with_domains(text: str, cpus: Mapping[int, Collection[int]]) -> str:
    """Return hwloc's XML in which each NUMA node has the hardware threads that Linux states.

    hwloc attaches a domain to the whole node if its cores are in several packages, or in none.

    Args:
        cpus: the hardware threads by the os index of the domain. A domain without any is kept.
    """
    head = text[: text.index("<topology")]
    root = ElementTree.fromstring(text)
    for node in root.iter("object"):
        if node.get("type") == "NUMANode" and (own := cpus.get(int(node.get("os_index", "-1")))):
            node.set("cpuset", f"{sum(1 << cpu for cpu in own):#x}")
    return head + ElementTree.tostring(root, encoding="unicode")
