"""How each scheduler lists its nodes, the limits of its partitions or queues, and its switches."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from typing import Any, ClassVar
from xml.etree import ElementTree

from proofmark.common.files import parse_json
from proofmark.common.host_names import HostTable
from proofmark.common.nodesets import unfold
from proofmark.common.plugins import Plugins
from proofmark.common.text import one_line, whole_number
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import Ask
from proofmark.machine.schedulers import pbs, sge, slurm
from proofmark.packages.survey.answers import ListedNode


def no_listing(program: str, found: str) -> NodeError:
    """Return the failure of an output of another form."""
    return NodeError(Outcome.UNEXPECTED, f"{program}: {found[:200]}")


class NodeListing(ABC):
    """Base class of listings. A listing only reads.

    Attributes:
        program: the command that lists the nodes; without it the scheduler is not installed.
        source: the command with its arguments, as the source of the facts.
        groups_are_queues: whether jobs are submitted to the groups of a node.
    """

    program: ClassVar[str]
    source: ClassVar[str]
    groups_are_queues: ClassVar[bool]

    @abstractmethod
    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all nodes, or raise a NodeError: as `ask`, or the output cannot be read."""

    def fabric(self, ask: Ask) -> str:
        """Return the switches, as `fabric_levels` reads them; empty if there is no such command."""
        return ""


LISTINGS = Plugins(NodeListing, "proofmark.packages.survey.listings", "--scheduler")
"""By the name of the scheduler. The table `PLUGINS` of the package has those of the kit."""


class FluxNodes(NodeListing):
    """Flux (flux-core 0.61 and later)."""

    program = "flux"
    source = "flux resource R"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all nodes. Those with the same numbers of cores and GPUs are alike.

        The output is R of RFC 20: hosts in the order of their ranks, and the children of ranks.
        """
        printed = ask("flux", "resource", "R", "--states=all")
        try:
            execution = parse_json(printed.encode())["execution"]
            kinds: dict[int, tuple[str, ...]] = {}
            for entry in execution["R_lite"]:
                kinds |= dict.fromkeys(_flux_numbers(entry["rank"]), _flux_kind(entry["children"]))
            hosts = in_order(",".join(execution["nodelist"]))
            of_host = dict(zip(hosts, (kinds[rank] for rank in sorted(kinds)), strict=True))
        except (AttributeError, TypeError, ValueError, LookupError) as error:
            raise no_listing(self.source, f"not R of RFC 20: {error!r}") from None
        queues = _flux_queues(ask)
        return [
            ListedNode(name=host, kind=kind, groups=tuple(queues.get(host, ())))
            for host, kind in of_host.items()
        ]


_RANGES = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")
"""A part of a host list between two commas; a comma in brackets separates ranges."""


def in_order(hosts: str) -> list[str]:
    """Return the names of a host list in the order of its text, which a node set does not keep.

    A scheduler numbers ranks in this order: ``n[81,1-80]`` begins with n81 (RFC 29 of Flux).

    Raises:
        ValueError: it is no host list.
    """
    unfold([hosts])
    names: list[str] = []
    for part in _PART.findall(hosts):
        texts = re.split(_RANGES, part)  # text, ranges, text, ranges, …, text
        axes = []
        for ranges in texts[1::2]:
            sets = [f"n[{each}]" for each in ranges.split(",")]
            axes.append([name[1:] for name in unfold(sets)])
        for numbers in product(*axes):
            texts[1::2] = numbers
            names.append("".join(texts))
    return names


def _flux_kind(children: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}s={len(_flux_numbers(ids))}" for name, ids in sorted(children.items()))


def _flux_numbers(ids: str) -> list[int]:
    return [int(name[1:]) for name in unfold([f"n[{ids}]"])]


def _flux_queues(ask: Ask) -> dict[str, list[str]]:
    """Return the queues of each node; an instance needs none."""
    queues: dict[str, list[str]] = {}
    form = "--format={queue}|{nodelist}"
    with suppress(NodeError, ValueError):
        printed = ask("flux", "resource", "list", "--no-header", "--states=all", form)
        for names, _, nodes in (line.partition("|") for line in printed.splitlines()):
            for host in unfold([nodes]) if nodes else ():
                queues.setdefault(host, []).extend(name for name in names.split(",") if name)
    return queues


_LSF_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTPE])")
_LSF_UNITS = " KMGTPE"
_LSF_KIND = ("ncpus", "type", "model")
"""The columns of lshosts that like hosts share."""


class LsfHosts(NodeListing):
    """LSF (9 and later)."""

    program = "bhosts"
    source = "bhosts -w"
    groups_are_queues = False

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return the hosts that run jobs, with their host groups. A missing group is no error."""
        batch = _lsf_rows(ask("bhosts", "-X", "-w"), "HOST_NAME")
        if not batch:
            raise no_listing(self.source, "no line HOST_NAME")
        static = {row["HOST_NAME"]: row for row in _lsf_rows(ask("lshosts", "-w"), "HOST_NAME")}
        try:
            groups = _lsf_groups(ask("bmgroup", "-r", "-w"))
        except NodeError:
            groups = {}  # bmgroup fails if no group is defined
        return [
            _lsf_host(row, static.get(row["HOST_NAME"], {}), groups)
            for row in batch
            if row.get("MAX") != "0"  # a host without job slots
        ]


def _lsf_rows(printed: str, first: str) -> list[dict[str, str]]:
    """Return the rows below the header that begins with `first`, by the names of its columns."""
    lines = printed.splitlines()
    start = next((at for at, line in enumerate(lines) if line.split()[:1] == [first]), len(lines))
    heads = lines[start].split() if start < len(lines) else []
    return [
        dict(zip(heads, line.split(), strict=False)) for line in lines[start + 1 :] if line.split()
    ]


def _lsf_groups(printed: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the host groups of each host."""
    groups: dict[str, tuple[str, ...]] = {}
    for line in printed.splitlines():
        name, *hosts = line.split() or [""]
        if name not in ("", "GROUP_NAME"):
            for host in hosts:
                groups[host] = (*groups.get(host, ()), name)
    return groups


def _lsf_host(
    batch: dict[str, str], row: dict[str, str], groups: dict[str, tuple[str, ...]]
) -> ListedNode:
    """Return a host from its rows of bhosts and lshosts. `MAX` is its number of job slots."""
    name, slots = batch["HOST_NAME"], batch.get("MAX", "-")
    memory = _LSF_SIZE.fullmatch(row.get("maxmem", ""))
    return ListedNode(
        name=name,
        kind=tuple(f"{key}={row[key]}" for key in _LSF_KIND if row.get(key, "-") != "-"),
        memory_bytes=round(float(memory[1]) * 1024 ** _LSF_UNITS.index(memory[2])) if memory else 0,
        groups=(*groups.get(name, ()), *groups.get("all", ())),  # bmgroup writes "all"
        cpus=whole_number(slots) or 0,
    )


_PBS_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgtpe]?)([bw]?)", re.IGNORECASE)
_PBS_WORD_BYTES = 8
_PBS_POWERS = "kmgtpe"


Vnode = tuple[str, int, int, frozenset[str], str]
"""Host, CPUs, bytes of memory, queues, and the accelerators of a virtual node."""


def size_of(text: str) -> int:
    """Return the bytes of a size of PBS: ``196607040kb``, ``1.5tb``, ``16gw``, ``4096``.

    A size without a unit has bytes. ``w`` is a word of 8 bytes, and a unit without ``b`` and ``w``
    is one of bytes (PBS Professional Reference Guide, "Formats", size).

    Raises:
        ValueError: the text is not a size.
    """
    match = _PBS_SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text[:40]!r}")
    number, prefix, unit = match[1], match[2].lower(), match[3].lower()
    factor = 1024 ** (_PBS_POWERS.index(prefix) + 1) if prefix else 1
    return round(float(number) * factor) * (_PBS_WORD_BYTES if unit == "w" else 1)


def vnode_of(name: str, fields: Mapping[str, Any]) -> Vnode:
    """Return a virtual node. It has 0 of a resource whose amount cannot be read."""
    resources = fields.get("resources_available")
    resources = resources if isinstance(resources, dict) else {}
    queues = [str(fields.get("queue", "")), *str(resources.get("Qlist", "")).split(",")]
    cpus = str(resources.get("ncpus", ""))
    return (
        str(resources.get("host") or name),
        whole_number(cpus) or 0,
        _pbs_bytes(str(resources.get("mem", ""))),
        frozenset(queue.strip() for queue in queues if queue.strip()),
        str(resources.get("ngpus", "")),
    )


def _pbs_bytes(text: str) -> int:
    try:
        return size_of(text)
    except ValueError:
        return 0


def _pbs_host(host: str, vnodes: list[Vnode]) -> ListedNode:
    """Return a host with the resources of all of its virtual nodes."""
    cpus = sum(each[1] for each in vnodes)
    gpus = sorted({each[4] for each in vnodes if each[4]})
    return ListedNode(
        name=host,
        kind=(f"CPUs={cpus}", *(f"GPUs={each}" for each in gpus)),
        memory_bytes=sum(each[2] for each in vnodes),
        groups=tuple(sorted(frozenset.union(*(each[3] for each in vnodes)))),
        cpus=cpus,
    )


class PbsNodes(NodeListing):
    """PBS Pro and OpenPBS (12 and later)."""

    program = "pbsnodes"
    source = "pbsnodes -a"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all hosts. A host may have several virtual nodes, whose resources are added."""
        printed = ask("pbsnodes", "-a", "-F", "json")
        try:
            vnodes = [
                vnode_of(name, fields) for name, fields in pbs.entries(printed, "nodes").items()
            ]
        except ValueError:
            vnodes = []
        if not vnodes:
            raise no_listing(self.source, f"no JSON of nodes: {printed[:100]!r}")
        hosts: dict[str, list[Vnode]] = {}
        for vnode in vnodes:
            hosts.setdefault(vnode[0], []).append(vnode)
        return [_pbs_host(host, parts) for host, parts in hosts.items()]


_SGE_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTPE]?)")
_SGE_UNITS = ["", *"KMGTPE"]
_SGE_UNKNOWN = {"", "-"}
_SGE_KIND = ("num_proc", "m_socket", "arch_string")
"""The values that like hosts share."""


class GridEngineHosts(NodeListing):
    """Grid Engine 6.2 and later."""

    program = "qhost"
    source = "qhost -q"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all execution hosts. ``qhost`` also lists hosts that only administer."""
        executing = HostTable.of(line.strip() for line in ask("qconf", "-sel").splitlines())
        printed = ask("qhost", "-q", "-xml")
        try:
            hosts = list(sge.read_xml(printed).iter("host"))
        except ValueError:
            raise no_listing(self.source, f"no XML: {printed[:100]!r}") from None
        listed = [_sge_host(host) for host in hosts if host.get("name") != "global"]
        return [node for node in listed if executing.find(node.name)]


def _sge_host(host: ElementTree.Element) -> ListedNode:
    values = {each.get("name", ""): (each.text or "").strip() for each in host.iter("hostvalue")}
    known = {key: value for key, value in values.items() if value not in _SGE_UNKNOWN}
    memory = _SGE_SIZE.fullmatch(known.get("mem_total", "0"))
    return ListedNode(
        name=host.get("name", ""),
        kind=tuple(f"{key}={known[key]}" for key in _SGE_KIND if key in known),
        memory_bytes=round(float(memory[1]) * 1024 ** _SGE_UNITS.index(memory[2])) if memory else 0,
        groups=tuple(queue.get("name", "") for queue in host.iter("queue")),
    )


_SLURM_KIND = ("Sockets", "CoresPerSocket", "ThreadsPerCore", "Gres")
"""The fields that like nodes share."""


class SlurmNodes(NodeListing):
    """Slurm (20.11 and later)."""

    program = "scontrol"
    source = "scontrol show node"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all nodes, also those of hidden partitions."""
        printed = ask("scontrol", "--all", "--oneliner", "show", "node")
        listed = [
            _slurm_node(slurm.fields_of(line)) for line in printed.splitlines() if line.strip()
        ]
        nodes = [node for node in listed if node.name]
        if not nodes:
            raise no_listing(self.source, f"no NodeName= in {one_line(printed)!r}")
        return nodes

    def fabric(self, ask: Ask) -> str:
        """Return the switches as in topology.conf, without the nodes of switches of switches."""
        printed = ask("scontrol", "--oneliner", "show", "topology")
        lines = [line for line in printed.splitlines() if line.startswith("SwitchName=")]
        return "".join(f"{_of_topology_conf(line)}\n" for line in lines)


def _slurm_node(fields: dict[str, str]) -> ListedNode:
    name = fields.get("NodeName", "")
    memory = fields.get("RealMemory", "")
    reported = fields.get("NodeHostName", "")
    partitions = fields.get("Partitions", "").split(",")
    return ListedNode(
        name=name,
        kind=tuple(f"{key}={fields[key]}" for key in _SLURM_KIND if key in fields),
        memory_bytes=(whole_number(memory) or 0) * slurm.MIB,
        groups=tuple(partition for partition in partitions if partition),
        alias=reported if reported != name else "",
    )


def _of_topology_conf(line: str) -> str:
    """Return a line of ``show topology`` in the syntax of topology.conf(5).

    ``show topology`` lists all nodes below a switch, and topology.conf only those of its ports.
    """
    words = [word for word in line.split() if not word.startswith(("Level=", "LinkSpeed="))]
    if any(word.startswith("Switches=") and word != "Switches=" for word in words):
        words = [word for word in words if not word.startswith("Nodes=")]
    return " ".join(word for word in words if not word.endswith("="))
