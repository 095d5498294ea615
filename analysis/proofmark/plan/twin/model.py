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
from itertools import combinations

from proofmark.common.errors import bad_input
from proofmark.common.strict_model import StrictModel
from proofmark.plan.twin.fit import Fit
from proofmark.site.fabric import Fabric, Level, bytes_per_s
from proofmark.site.interconnects import Bus, Interconnect, Sourced, interconnect, interconnects
from proofmark.site.inventory import Site
from proofmark.site.limits import link as port_of_rate
from proofmark.site.node.topology import Topology

SWITCH_S = 1.0e-7
"""The assumed latency of one switch, in seconds."""
READ_AND_WRITTEN = 2
"""A copy has a line in flight for each line that it reads, and one for each that it writes."""
LINE_BYTES = 64
"""A cache line. POWER6 has lines of 128 bytes, of which the table counts two."""


@dataclass(frozen=True)
class Link:
    """A link of the model.

    Attributes:
        bytes_per_s: its rate.
        latency_s: its latency.
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
    links: Mapping[str, Link]
    edges: tuple[Edge, ...]


class Assumption(StrictModel):
    """One figure or property of the model, with its source or assumption.

    Attributes:
        what: the part of the model.
        value: with its unit.
        why: the source, or what was assumed.
        sourced: whether `why` is a source.
    """

    what: str
    value: str
    why: str
    sourced: bool


@dataclass(frozen=True)
class TwinModel:
    """The model of some nodes of a partition.

    Attributes:
        nodes: the names of the nodes.
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


GATEWAY = "adapter"
"""The end of the graph of a node that is connected with the network."""


def cpu_name(pu: int) -> str:
    """Return the end of the hardware thread with the os index `pu` in the graph of a node."""
    return f"cpu{pu}"


def twin_model(
    site: Site,
    topology: Topology,
    nodes: Sequence[str],
    known: Interconnect | None = None,
    fit: Fit | None = None,
) -> TwinModel:
    """Return the model of `nodes`, which are hosts of `site`.

    Args:
        site: the partition.
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
        assumptions=(*_of_node(known, topology), *_of_network(site, fit)),
    )


def interconnect_of(site: Site, discovered: str = "") -> Interconnect:
    """Return the figures of the processor family of `site`.

    Args:
        site: the partition.
        discovered: the architecture that a probe found, if the inventory does not declare it.

    Raises:
        BadInput: the table of interconnects lacks the processor of the partition.
    """
    hardware = site.partition.hardware
    architecture = discovered if isinstance(hardware, str) else hardware.architecture
    known = interconnect(architecture)
    if known is None:
        accepted = ", ".join(row.architecture for row in interconnects())
        found = f"{architecture or 'discovered'}: not in site/data/interconnects.yml"
        raise bad_input(site.facts, "partition.hardware.architecture", found, accepted)
    return known


def node_graph(topology: Topology, known: Interconnect) -> Graph:
    """Return the CPUs, sockets and books of a node.

    Sockets with a known distance of one hop are connected; those of two hops are not. Without
    distances each socket is connected with each other socket of its book, or of the node. Each
    book is connected with each other book. The adapter is at the first socket.
    """
    links: dict[str, Link] = {"bus": _link(known.adapter)}
    edges: list[Edge] = []
    books: dict[int, int | None] = {}
    near, far = known.line_s.value, known.line_s.value + known.socket.latency_s.value
    for core in topology.cores:
        books[core.socket] = core.book
        inside, outside = f"core{core.index}", f"far{core.index}"
        # Each end of a route has half of the latency; the links between sockets have the rest.
        links[inside] = Link(copy_rate(known, near), near / 2)
        links[outside] = Link(copy_rate(known, far), 0.0)
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
            links[f"port{socket}"] = Link(bus.bytes_per_s.value, 0.0, duplex=True)
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
    cpus = tuple(cpu_name(pu) for core in topology.cores for pu in core.pus)
    return Graph(cpus, routers, links, tuple(edges))


def copy_rate(known: Interconnect, line_s: float) -> float:
    """Return the rate of one core that copies lines of which each takes `line_s`, in bytes/s."""
    return known.lines_in_flight.value / READ_AND_WRITTEN * LINE_BYTES / line_s


def _socket(number: int) -> str:
    return f"socket{number}"


def _link(bus: Bus) -> Link:
    return Link(bus.bytes_per_s.value, bus.latency_s.value, duplex=True)


def _connected_sockets(
    topology: Topology, books: Mapping[int, int | None]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sockets with a link of their own."""
    hops = topology.socket_hops
    for one, other in combinations(books, 2):
        if books[one] == books[other] and hops.get((one, other), 1) == 1:
            yield one, other


def network_graph(site: Site, nodes: Sequence[str], fit: Fit | None = None) -> Graph:
    """Return the switches above `nodes`.

    The links between a switch and the level above are one link with the rate of all of them. If
    they are not declared, they have the rate of the links below: the switch does not block.
    """
    fabric = site.partition.fabric
    link_rate, between_s = _link_of_node(fabric, fit)
    below = Counter(
        switch for host in site.partition_hosts or site.hosts for switch in _path(site, host)
    )
    links: dict[str, Link] = {}
    edges: dict[str, Edge] = {}
    for node in nodes:
        one, link = node, Link(link_rate, between_s / 2, duplex=True)
        for switch, level in _path(site, node).items():
            name = f"link-{one}"
            links.setdefault(name, link)
            edges.setdefault(name, Edge(one, switch, (name,)))
            one, link = (
                switch,
                Link(_up_rate(fabric, level, below[switch], link_rate), SWITCH_S, duplex=True),
            )
    routers = dict.fromkeys(edge.other for edge in edges.values())
    return Graph((), tuple(routers), links, tuple(edges.values()))


def _path(site: Site, host: str) -> dict[str, Level | None]:
    """Return the switches from `host` to the top, each with its level; the top has none."""
    levels = zip(site.switches(host), site.partition.fabric.levels, strict=True)
    path: dict[str, Level | None] = {name: level for name, level in levels if name}
    return {**path, site.partition.fabric.top: None}


def _link_of_node(fabric: Fabric, fit: Fit | None) -> tuple[float, float]:
    """Return the rate of the link of a node, and the latency between two adapters."""
    port = port_of_rate(fabric.rate) if isinstance(fabric.rate, str) else None
    rate = fit.link_bytes_per_s if fit else None
    latency = fit.adapters_s if fit else None
    default_s = SWITCH_S + (port.latency_s if port else 0.0)
    return rate or fabric.link_bytes_per_s, default_s if latency is None else latency


def _up_rate(fabric: Fabric, level: Level | None, hosts: int, link_rate: float) -> float:
    """Return the rate of all links from a switch, with `hosts` below it, to the level above."""
    if level is None or level.uplinks is None:
        return link_rate * hosts
    rate = bytes_per_s(level.uplink_rate) or link_rate
    return rate * level.uplinks


def _of_node(known: Interconnect, topology: Topology) -> Iterator[Assumption]:
    yield _assumption("cache line between two cores", known.line_s, "s")
    yield _assumption("cache lines of 64 bytes in flight, of one core", known.lines_in_flight, "")
    if topology.sockets > 1:
        yield from _of_bus("link between two sockets", known.socket)
    if len({core.book for core in topology.cores}) > 1:
        yield from _of_bus("link between two books", known.book or known.socket)
    yield from _of_bus("bus to the adapter", known.adapter)
    yield _assumption("MPI on each side of a message", known.software_s, "s")
    yield _assumption("messages without a rendezvous, below", known.eager_bytes, "bytes")
    if topology.sockets > 1 and not topology.socket_hops:
        why = "the topology has no distances: each socket of a book has a link to each other one"
        yield Assumption(what="links between sockets", value="all", why=why, sourced=False)
    why = "messages inside a node fit into the caches, and one copy is the bottleneck"
    yield Assumption(what="memory", value="none", why=why, sourced=False)
    yield Assumption(
        what="place of the adapter", value="socket 0", why="one adapter for a node", sourced=False
    )


def _of_network(site: Site, fit: Fit | None = None) -> Iterator[Assumption]:
    fabric = site.partition.fabric
    link_rate, between_s = _link_of_node(fabric, fit)
    rate = f"{link_rate:g} bytes/s"
    hardware = site.partition.hardware
    guess = "" if isinstance(hardware, str) else hardware.assumed.get("fabric", "")
    why = "; ".join(filter(None, (fabric.source, guess)))
    sourced = fabric.rate is not None and not guess
    if fit and fit.link_bytes_per_s:
        why, sourced = fit.source, True
    yield Assumption(what="link of a node", value=rate, why=why, sourced=sourced)
    port = port_of_rate(fabric.rate) if isinstance(fabric.rate, str) else None
    if fit and fit.adapters_s:
        what, latency = "between two adapters, with one switch", f"{between_s:g} s"
        yield Assumption(what=what, value=latency, why=fit.source, sourced=True)
    elif port:
        latency = f"{port.latency_s:g} s"
        yield Assumption(
            what="between two adapters", value=latency, why=port.latency_source, sourced=True
        )
    yield Assumption(
        what="a switch", value=f"{SWITCH_S:g} s", why="usual for InfiniBand", sourced=False
    )
    for level in fabric.levels:
        why = fabric.source if level.uplinks else "no uplinks are declared: they do not block"
        value = f"{level.uplinks}" if level.uplinks else "as many as hosts"
        what = f"uplinks of a {level.name}"
        yield Assumption(what=what, value=value, why=why, sourced=bool(level.uplinks))


def _of_bus(what: str, bus: Bus) -> Iterator[Assumption]:
    yield _assumption(what, bus.latency_s, "s")
    yield _assumption(what, bus.bytes_per_s, "bytes/s")


def _assumption(what: str, of: Sourced, unit: str) -> Assumption:
    why = of.source or of.assumed or ""
    value = f"{of.value:g} {unit}".strip()
    return Assumption(what=what, value=value, why=why, sourced=of.source is not None)
