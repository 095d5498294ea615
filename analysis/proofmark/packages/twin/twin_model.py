"""The model of a partition: CPUs, links and routes, derived from its topology and its fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proofmark.common.errors import bad_input
from proofmark.common.message import NOTHING, Message, joined
from proofmark.packages.twin.graph import Graph
from proofmark.packages.twin.interconnects import (
    Bus,
    Interconnect,
    SourcedValue,
    interconnect,
    interconnects,
)
from proofmark.packages.twin.network_graph import SWITCH_S, link_of_node, network_graph
from proofmark.packages.twin.node_graph import node_graph
from proofmark.packages.twin.twin_files import ModelFit
from proofmark.runs.predictions import Assumption
from proofmark.site.hardware_limits import link as port_of_rate
from proofmark.site.inventory import Site
from proofmark.site.node.topology import Topology


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
        many = Message("model-uplinks-many")
        yield Assumption(
            what=Message("model-uplinks", level=level.name),
            value=_value(f"{level.uplinks}") if level.uplinks else many,
            why=_source(fabric.source) if level.uplinks else Message("model-uplinks-why"),
            sourced=bool(level.uplinks),
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
