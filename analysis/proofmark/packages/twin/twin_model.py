"""The model of a partition: CPUs, links and routes, derived from its topology and its fabric.

A message inside a node is copied by one core from the cache of another one. The rate of a copy is
the number of cache lines that a core can have in flight ÷ the time to get one of them: half of the
lines are read, half of them written (Little's law; J. D. McCalpin, "Memory bandwidth and machine
balance", 1995, has the same bound for memory). So copies from another socket are slower than those
inside a socket, and each core has two links: one for copies inside its socket, one for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Annotated, Literal, Self

from archspec.cpu import TARGETS
from pydantic import Field, model_validator

from proofmark.cases.vocabulary import Text
from proofmark.common.errors import bad_input
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.packages.twin.twin_files import Assumption, ModelFit
from proofmark.site.fabric import Fabric, Level
from proofmark.site.hardware import bytes_per_s
from proofmark.site.hardware_limits import link as port_of_rate
from proofmark.site.inventory import Site
from proofmark.site.node.topology import Topology

GATEWAY = "adapter"
"""The end of the graph of a node that is connected with the network."""


@dataclass(frozen=True)
class GraphLink:
    """A link of the model.

    Attributes:
        duplex: whether both directions have this rate; else they share it.
    """

    bytes_per_s: float
    latency_s: float
    duplex: bool = False


@dataclass(frozen=True)
class Edge:
    """A connection of two ends of a graph by the links that a message uses, by their names."""

    one: str
    other: str
    links: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Ends with connections; a route between two ends has as few links as possible.

    Attributes:
        cpus: the ends that can run a rank; empty for the network.
        routers: the other ends.
    """

    cpus: tuple[str, ...]
    routers: tuple[str, ...]
    links: Mapping[str, GraphLink]
    edges: tuple[Edge, ...]


Selector = Literal["impi", "mpich", "classic", "mvapich2", "ompi"]
"""How the algorithms of collectives are chosen: as the MPI library of this name does, which SimGrid
imitates (SMPI, ``smpi/coll-selector``). ``classic`` has published algorithms
(`proofmark.packages.twin.platform.ALGORITHMS`)."""


class SourcedValue(StrictModel):
    """A value in SI units with its source, or with what was assumed if there is none."""

    value: Annotated[float, Field(gt=0)]
    source: Text | None = None
    assumed: Text | None = None

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.source is None) == (self.assumed is None):
            raise ValueError("exactly one of source and assumed")
        return self


class Bus(StrictModel):
    """The latency in seconds and the rate in bytes/s of one direction of a link inside a node."""

    latency_s: SourcedValue
    bytes_per_s: SourcedValue


class Interconnect(StrictModel):
    """How messages travel inside the nodes of one processor family.

    Attributes:
        architecture: archspec's name of the processor.
        line_s: transfer of a cache line between two cores of a socket.
        lines_in_flight: cache lines of 64 bytes that one core can wait for at the same time.
        socket: between two sockets of a book, or of a node without books.
        book: between two processor books.
        adapter: between a node and the adapter of its network.
        software_s: the MPI library on each side of a message.
        collectives: the possible selectors; several if the real algorithms are not known.
        eager_bytes: smaller messages are sent without a rendezvous.
        used_for: a processor without figures of its own, which has these; else empty.
    """

    architecture: Text
    line_s: SourcedValue
    lines_in_flight: SourcedValue
    socket: Bus
    book: Bus | None = None
    adapter: Bus
    software_s: SourcedValue
    collectives: Annotated[tuple[Selector, ...], Field(min_length=1)]
    eager_bytes: SourcedValue
    used_for: str = ""


@lru_cache(maxsize=1)
def interconnects() -> tuple[Interconnect, ...]:
    """Return the table."""
    return shipped_data("proofmark.packages.twin", "interconnects.yml", tuple[Interconnect, ...])


def interconnect(architecture: str) -> Interconnect | None:
    """Return the row of a processor, or that of its nearest ancestor in archspec; None if none."""
    rows = {row.architecture: row for row in interconnects()}
    if architecture in rows:
        return rows[architecture]
    ancestors = TARGETS[architecture].ancestors if architecture in TARGETS else []
    near = next((rows[each.name] for each in ancestors if each.name in rows), None)
    return near and near.model_copy(update={"used_for": architecture})


READ_AND_WRITTEN = 2
"""A copy has a line in flight for each line that it reads, and one for each that it writes."""
LINE_BYTES = 64
"""A cache line. POWER6 has lines of 128 bytes, of which the table counts two."""


def cpu_name(pu: int) -> str:
    """Return the end of the hardware thread with the os index `pu` in the graph of a node."""
    return f"cpu{pu}"


def node_graph(topology: Topology, known: Interconnect) -> Graph:
    """Return the CPUs, sockets and books of a node.

    Sockets with a known distance of one hop are connected; those of two hops are not. Without
    distances each socket is connected with each other socket of its book, or of the node. Each
    book is connected with each other book. The adapter is at the first socket.
    """
    links: dict[str, GraphLink] = {"bus": _link(known.adapter)}
    edges: list[Edge] = []
    books: dict[int, int | None] = {}
    near, far = known.line_s.value, known.line_s.value + known.socket.latency_s.value
    for core in topology.cores:
        books[core.socket] = core.book
        inside, outside = f"core{core.index}", f"far{core.index}"
        # Each end of a route has half of the latency; the links between sockets have the rest.
        links[inside] = GraphLink(copy_rate(known, near), near / 2)
        links[outside] = GraphLink(copy_rate(known, far), 0.0)
        for pu in core.pus:
            edges.append(Edge(cpu_name(pu), f"cache{core.socket}", (inside,)))
            edges.append(Edge(cpu_name(pu), _socket(core.socket), (inside, outside)))
    for one, other in _connected_sockets(topology, books):
        name = f"socket{one}-{other}"
        links[name] = _link(known.socket)
        edges.append(Edge(_socket(one), _socket(other), (name,)))
    numbers = sorted({book for book in books.values() if book is not None})
    if len(numbers) > 1:
        bus = known.book or known.socket
        for socket, book in books.items():
            links[f"port{socket}"] = GraphLink(bus.bytes_per_s.value, 0.0, duplex=True)
            edges.append(Edge(_socket(socket), f"book{book}", (f"port{socket}",)))
        for one, other in combinations(numbers, 2):
            links[f"book{one}-{other}"] = _link(bus)
            edges.append(Edge(f"book{one}", f"book{other}", (f"book{one}-{other}",)))
    edges.append(Edge(_socket(min(books)), GATEWAY, ("bus",)))
    routers = (
        *(f"cache{socket}" for socket in books),
        *map(_socket, books),
        *(f"book{number}" for number in numbers if len(numbers) > 1),
        GATEWAY,
    )
    cpu_names = []
    for core in topology.cores:
        cpu_names += [cpu_name(pu) for pu in core.pus]
    cpus = tuple(cpu_names)
    return Graph(cpus, routers, links, tuple(edges))


def copy_rate(known: Interconnect, line_s: float) -> float:
    """Return the rate of one core that copies lines of which each takes `line_s`, in bytes/s."""
    return known.lines_in_flight.value / READ_AND_WRITTEN * LINE_BYTES / line_s


def _socket(number: int) -> str:
    return f"socket{number}"


def _link(bus: Bus) -> GraphLink:
    return GraphLink(bus.bytes_per_s.value, bus.latency_s.value, duplex=True)


def _connected_sockets(
    topology: Topology, books: Mapping[int, int | None]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sockets with a link of their own."""
    hops = topology.socket_hops
    for one, other in combinations(books, 2):
        if books[one] == books[other] and hops.get((one, other), 1) == 1:
            yield one, other


SWITCH_S = 1.0e-7
"""The assumed latency of one switch, in seconds."""


def network_graph(site: Site, nodes: Sequence[str], fit: ModelFit | None = None) -> Graph:
    """Return the switches above `nodes`.

    The links between a switch and the level above are one link with the rate of all of them. If
    they are not declared, they have the rate of the links below: the switch does not block.
    """
    fabric = site.partition.fabric
    link_rate, between_s = link_of_node(fabric, fit)
    found: list[str] = []
    for host in site.partition_hosts or site.hosts:
        found += _path(site, host)
    below = Counter(found)
    links: dict[str, GraphLink] = {}
    edges: dict[str, Edge] = {}
    for node in nodes:
        one, link = node, GraphLink(link_rate, between_s / 2, duplex=True)
        for switch, level in _path(site, node).items():
            name = f"link-{one}"
            links.setdefault(name, link)
            edges.setdefault(name, Edge(one, switch, (name,)))
            one, link = (
                switch,
                GraphLink(_up_rate(fabric, level, below[switch], link_rate), SWITCH_S, duplex=True),
            )
    routers = dict.fromkeys(edge.other for edge in edges.values())
    return Graph((), tuple(routers), links, tuple(edges.values()))


def _path(site: Site, host: str) -> dict[str, Level | None]:
    """Return the switches from `host` to the top, each with its level; the top has none."""
    levels = zip(site.switches(host), site.partition.fabric.levels, strict=True)
    path: dict[str, Level | None] = {name: level for name, level in levels if name}
    return {**path, site.partition.fabric.top: None}


def link_of_node(fabric: Fabric, fit: ModelFit | None) -> tuple[float, float]:
    """Return the rate of the link of a node, and the latency between two adapters."""
    port = port_of_rate(fabric.rate) if isinstance(fabric.rate, str) else None
    rate = fit.link_bytes_per_s if fit else None
    latency = fit.adapters_s if fit else None
    default_s = SWITCH_S + ((port.latency_s if port else None) or 0.0)
    return rate or fabric.link_bytes_per_s, default_s if latency is None else latency


def _up_rate(fabric: Fabric, level: Level | None, hosts: int, link_rate: float) -> float:
    """Return the rate of all links from a switch, with `hosts` below it, to the level above."""
    uplinks = uplinks_of(level)
    if uplinks is None:
        return link_rate * hosts
    rate = bytes_per_s(getattr(level, "uplink_rate", None)) or link_rate
    return rate * uplinks


def uplinks_of(level: Level | None) -> int | None:
    """Return the links above a switch, a key of the package `fabric`; None if it is not known."""
    return getattr(level, "uplinks", None)


def of_node(known: Interconnect, topology: Topology) -> Iterator[Assumption]:
    """Yield the assumptions about a node."""
    if known.used_for:
        why = Message("model-ancestor", processor=known.used_for)
        yield _assumed("model-processor", _value(known.architecture), why)
    yield _figure("model-line", known.line_s, "s")
    yield _figure("model-lines", known.lines_in_flight, "")
    if topology.sockets > 1:
        yield from _of_bus("model-sockets", known.socket)
    if len({core.book for core in topology.cores}) > 1:
        yield from _of_bus("model-books", known.book or known.socket)
    yield from _of_bus("model-adapter", known.adapter)
    yield _figure("model-software", known.software_s, "s")
    yield _figure("model-eager", known.eager_bytes, "bytes")
    if topology.sockets > 1 and not topology.socket_hops:
        yield _assumed("model-links", Message("model-links-all"), Message("model-links-why"))
    yield _assumed("model-memory", Message("model-memory-none"), Message("model-memory-why"))
    yield _assumed("model-place", Message("model-place-first"), Message("model-place-why"))


def of_network(site: Site, fit: ModelFit | None = None) -> Iterator[Assumption]:
    """Yield the assumptions about the network; `fit` has the fitted figures."""
    fabric = site.partition.fabric
    link_rate, between_s = link_of_node(fabric, fit)
    guess = site.partition.node.assumed.get("fabric", "")
    why = joined(map(_source, filter(None, (fabric.source, guess))))
    sourced = fabric.rate is not None and not guess
    if fit and fit.link_bytes_per_s:
        why, sourced = fit.source, True
    rate = _value(f"{link_rate:g} bytes/s")
    yield Assumption(what=Message("model-link"), value=rate, why=why, sourced=sourced)
    port = port_of_rate(fabric.rate) if isinstance(fabric.rate, str) else None
    if fit and fit.adapters_s:
        what, latency = Message("model-adapters-switch"), _value(f"{between_s:g} s")
        yield Assumption(what=what, value=latency, why=fit.source, sourced=True)
    elif port and port.latency_s:
        what, latency = Message("model-adapters"), _value(f"{port.latency_s:g} s")
        yield Assumption(what=what, value=latency, why=_source(port.latency_source), sourced=True)
    yield _assumed("model-switch", _value(f"{SWITCH_S:g} s"), Message("model-switch-why"))
    for level in fabric.levels:
        many, uplinks = Message("model-uplinks-many"), uplinks_of(level)
        yield Assumption(
            what=Message("model-uplinks", level=level.name),
            value=_value(f"{uplinks}") if uplinks else many,
            why=_source(fabric.source) if uplinks else Message("model-uplinks-why"),
            sourced=bool(uplinks),
        )


def _of_bus(code: str, bus: Bus) -> Iterator[Assumption]:
    yield _figure(code, bus.latency_s, "s")
    yield _figure(code, bus.bytes_per_s, "bytes/s")


def _figure(code: str, of: SourcedValue, unit: str) -> Assumption:
    why = _source(of.source or of.assumed or "")
    value = _value(f"{of.value:g} {unit}".strip())
    return Assumption(what=Message(code), value=value, why=why, sourced=of.source is not None)


def _assumed(code: str, value: Message, why: Message) -> Assumption:
    return Assumption(what=Message(code), value=value, why=why, sourced=False)


def _value(text: str) -> Message:
    return Message("model-value", value=text)


def _source(text: str) -> Message:
    """Return where a value stands: in a table or in the inventory."""
    return Message("model-source", source=text) if text else NOTHING


@dataclass(frozen=True)
class TwinModel:
    """The model of some nodes of a partition.

    Attributes:
        node: the graph of every node; `GATEWAY` is its way out.
        network: the graph between the nodes; its ends are nodes and switches.
        interconnect: the figures of the processor family.
        assumptions: what the model contains.
    """

    nodes: tuple[str, ...]
    node: Graph
    network: Graph
    interconnect: Interconnect
    assumptions: tuple[Assumption, ...]


def twin_model(
    site: Site,
    topology: Topology,
    nodes: Sequence[str],
    known: Interconnect | None = None,
    fit: ModelFit | None = None,
) -> TwinModel:
    """Return the model of `nodes`, which are hosts of `site`.

    Args:
        topology: of each node.
        nodes: the nodes that steps use.
        known: the figures of the processor family; None: those of the table.
        fit: the figures of the fabric that were fitted; None: there are none.

    Raises:
        BadInput: the table of interconnects lacks the processor of the partition.
    """
    known = known or interconnect_of(site)
    return TwinModel(
        nodes=tuple(nodes),
        node=node_graph(topology, known),
        network=network_graph(site, nodes, fit),
        interconnect=known,
        assumptions=(*of_node(known, topology), *of_network(site, fit)),
    )


def interconnect_of(site: Site, discovered: str = "") -> Interconnect:
    """Return the figures of the processor of `site`, or those of its nearest ancestor.

    Args:
        discovered: the architecture that a probe found, if the inventory does not declare it.

    Raises:
        BadInput: the table of interconnects lacks the processor of the partition and its ancestors.
    """
    node = site.partition.node
    architecture = node.architecture if node.topology else discovered
    known = interconnect(architecture)
    if known is None:
        accepted = ", ".join(row.architecture for row in interconnects())
        found = f"{architecture or 'discovered'}, which is not in twin/data/interconnects.yml"
        accepted = f"a processor that has one of these as an ancestor in archspec: {accepted}"
        raise bad_input(site.facts, "partition.node.architecture", found, accepted)
    return known
