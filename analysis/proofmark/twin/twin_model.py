"""The model of a partition: CPUs, links and routes, derived from its topology and its fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.common.errors import bad_input
from proofmark.runs.predictions import Assumption
from proofmark.site.inventory import Site
from proofmark.site.node.topology import Topology
from proofmark.twin.assumptions import of_network, of_node
from proofmark.twin.graph import Graph
from proofmark.twin.interconnects import Interconnect, interconnect, interconnects
from proofmark.twin.network_graph import network_graph
from proofmark.twin.node_graph import node_graph
from proofmark.twin.twin_files import ModelFit


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


def twin_model(
    site: Site,
    topology: Topology,
    nodes: Sequence[str],
    known: Interconnect | None = None,
    fit: ModelFit | None = None,
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
        assumptions=(*of_node(known, topology), *of_network(site, fit)),
    )


def interconnect_of(site: Site, discovered: str = "") -> Interconnect:
    """Return the figures of the processor of `site`, or those of its nearest ancestor.

    Args:
        site: the partition.
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
