"""What the model of a twin contains: each figure with its source or assumption."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.runs.twin_files import Assumption, Fit
from proofmark.site.hardware_limits import link as port_of_rate
from proofmark.site.interconnects import Bus, Interconnect, Sourced
from proofmark.site.inventory import Site
from proofmark.site.node.topology import Topology
from proofmark.twin.network_graph import SWITCH_S, link_of_node


def of_node(known: Interconnect, topology: Topology) -> Iterator[Assumption]:
    """Yield the assumptions about a node."""
    if known.used_for:
        why = f"the nearest ancestor of {known.used_for} in archspec whose figures the kit has"
        yield Assumption(what="processor", value=known.architecture, why=why, sourced=False)
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


def of_network(site: Site, fit: Fit | None = None) -> Iterator[Assumption]:
    """Yield the assumptions about the network; `fit` has the fitted figures."""
    fabric = site.partition.fabric
    link_rate, between_s = link_of_node(fabric, fit)
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
