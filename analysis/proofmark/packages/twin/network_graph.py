"""The graph between nodes: the switches of a fabric and their links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proofmark.packages.twin.graph import Edge, Graph, GraphLink
from proofmark.packages.twin.twin_files import ModelFit
from proofmark.site.fabric import Fabric, Level
from proofmark.site.hardware import bytes_per_s
from proofmark.site.hardware_limits import link as port_of_rate
from proofmark.site.inventory import Site

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
    if level is None or level.uplinks is None:
        return link_rate * hosts
    rate = bytes_per_s(level.uplink_rate) or link_rate
    return rate * level.uplinks
