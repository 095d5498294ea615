"""The graph of a node: its CPUs, sockets and books, and its way to the network.

A message inside a node is copied by one core from the cache of another one. The rate of a copy is
the number of cache lines that a core can have in flight ÷ the time to get one of them: half of the
lines are read, half of them written (Little's law; J. D. McCalpin, "Memory bandwidth and machine
balance", 1995, has the same bound for memory). So copies from another socket are slower than those
inside a socket, and each core has two links: one for copies inside its socket, one for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from proofmark.packages.twin.graph import GATEWAY, Edge, Graph, GraphLink
from proofmark.packages.twin.interconnects import Bus, Interconnect
from proofmark.site.node.topology import Topology

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
