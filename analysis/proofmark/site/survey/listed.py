"""The nodes that a scheduler lists, and the kinds of nodes among them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from proofmark.common.host_names import HostTable, short_name
from proofmark.common.nodesets import is_name

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
class GroupLimits:
    """The limits of a partition or queue of the scheduler; None is no limit.

    Attributes:
        default: whether jobs are submitted to it if they name none.
        max_walltime_s: the longest time limit of a job, in seconds.
        max_nodes: the largest number of nodes of a job.
    """

    default: bool = False
    max_walltime_s: int | None = None
    max_nodes: int | None = None


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
    nodes: Iterable[ListedNode], limits: Mapping[str, GroupLimits] | None = None
) -> list[NodeKind]:
    """Return the kinds of `nodes`, in the order of their names.

    Nodes of one kind have the same properties and nearly the same memory. A node whose name is no
    host name is left out. `limits` are those of the groups; they name the default.
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
        parts += _by_memory(group)
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
