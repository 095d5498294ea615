"""A graph of links: a node, or the network between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
