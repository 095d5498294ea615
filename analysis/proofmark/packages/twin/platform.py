"""The platform file of SimGrid for a model: its XML, with all settings of SMPI.

After the documentation of SimGrid 3.32, "Platform Description: The XML format" and "SimGrid Options
and Configurations". Each setting is explicit, because the default factors of SMPI are those of one
cluster of 2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from proofmark.packages.twin.twin_model import (
    GATEWAY,
    Edge,
    Graph,
    GraphLink,
    Interconnect,
    TwinModel,
    copy_rate,
    cpu_name,
)

_DOCTYPE = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
ROUTING = "Floyd"
"""Routes with the fewest links, which are computed once, when a simulation starts."""

ALGORITHMS = {
    "classic": {
        "smpi/coll-selector": "mpich",
        "smpi/bcast": "binomial_tree",
        "smpi/allreduce": "rdb",
        "smpi/allgather": "rdb",
        "smpi/alltoall": "pair",
        "smpi/alltoallv": "pair",
    }
}
"""Selectors of the kit, each with its settings of SMPI. SimGrid has no selector of these names.

The selectors of SimGrid group the ranks by hosts before the first Bcast of a communicator: n ranks
send n² messages. A host of the model is one CPU, so that each group has one rank. ``classic`` makes
no groups. Bcast has a binomial tree. Allreduce and Allgather have recursive doubling. MPICH uses
these algorithms for short messages (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
collective communication operations in MPICH", 2005). In Alltoall and Alltoallv a rank exchanges
with one rank after the other. MPICH uses this algorithm for an Alltoall of long messages.

MPICH has two other algorithms. In an Alltoall of short messages all ranks send large blocks at the
same time. In an Allgather of long messages all ranks send in a ring. With 512 or 1,024 ranks the
simulation of these algorithms takes many minutes: SimGrid computes the share of each message in
each link again when a message begins or ends.
"""

PLAIN_TIMES = (3, 34)
"""The first version of SimGrid that accepts one time for messages of all sizes."""


def host_name(node: str, pu: int) -> str:
    """Return SimGrid's host for the hardware thread `pu` (os index) of `node`."""
    return f"{node}.{cpu_name(pu)}"


def settings(known: Interconnect, selector: str, simulator: tuple[int, int]) -> dict[str, str]:
    """Return the settings of SMPI by name.

    Computation takes no time: figures are times of communication only. The factors for rates and
    latencies are 1: rates and latencies are those of the model.

    Args:
        known: the figures of the processor family.
        simulator: version of SimGrid. From `PLAIN_TIMES` on, a table of times has no entry for
            messages of 0 bytes, and one time serves all messages. Earlier ones have no such form.
    """
    seconds = f"{known.software_s.value:g}"
    overhead = seconds if simulator >= PLAIN_TIMES else f"0:{seconds}:0"
    eager = f"{known.eager_bytes.value:.0f}"
    return {
        "smpi/simulate-computation": "no",
        **ALGORITHMS.get(selector, {"smpi/coll-selector": selector}),
        "smpi/bw-factor": "0:1",
        "smpi/lat-factor": "0:1",
        "smpi/os": overhead,
        "smpi/or": overhead,
        "smpi/ois": "0:0:0",
        "smpi/async-small-thresh": eager,
        "smpi/send-is-detached-thresh": eager,
        "network/bandwidth-factor": "1",
        "network/latency-factor": "1",
        "network/weight-S": "0",
        "network/crosstraffic": "no",
        "network/loopback-bw": f"{copy_rate(known, known.line_s.value):g}",
        "network/loopback-lat": f"{known.line_s.value:g}",
    }


def platform_xml(model: TwinModel, values: Mapping[str, str]) -> str:
    """Return the platform file for `model` with the `settings` of SMPI."""
    root = Element("platform", version="4.1")
    config = SubElement(root, "config")
    for name, value in values.items():
        SubElement(config, "prop", id=name, value=value)
    world = SubElement(root, "zone", id="world", routing=ROUTING)
    for node in model.nodes:
        _add_graph(SubElement(world, "zone", id=node, routing=ROUTING), model.node, f"{node}.")
    network = model.network
    gateways = {node: f"{node}.{GATEWAY}" for node in model.nodes}
    for router in network.routers:
        zone = SubElement(world, "zone", id=f"zone-{router}", routing="Full")
        SubElement(zone, "router", id=router)
    for name, link in network.links.items():
        _add_link(world, name, link)
    for edge in network.edges:
        _add_zone_route(world, edge, gateways, network.links)
    indent(root, " ")
    return _DOCTYPE + tostring(root, encoding="unicode") + "\n"


def _add_graph(zone: Element, graph: Graph, prefix: str) -> None:
    for cpu in graph.cpus:
        SubElement(zone, "host", id=prefix + cpu, speed="1Gf")
    for router in graph.routers:
        SubElement(zone, "router", id=prefix + router)
    for name, link in graph.links.items():
        _add_link(zone, prefix + name, link)
    for edge in graph.edges:
        route = SubElement(zone, "route", src=prefix + edge.one, dst=prefix + edge.other)
        _add_links(route, edge, graph.links, prefix)


def _add_zone_route(
    world: Element, edge: Edge, gateways: Mapping[str, str], links: Mapping[str, GraphLink]
) -> None:
    ends = {
        "src": edge.one if edge.one in gateways else f"zone-{edge.one}",
        "dst": f"zone-{edge.other}",
        "gw_src": gateways.get(edge.one, edge.one),
        "gw_dst": edge.other,
    }
    _add_links(SubElement(world, "zoneRoute", ends), edge, links, "")


def _add_link(zone: Element, name: str, link: GraphLink) -> None:
    policy = "SPLITDUPLEX" if link.duplex else "SHARED"
    SubElement(
        zone,
        "link",
        id=name,
        bandwidth=f"{link.bytes_per_s:g}Bps",
        latency=f"{link.latency_s:g}s",
        sharing_policy=policy,
    )


def _add_links(route: Element, edge: Edge, links: Mapping[str, GraphLink], prefix: str) -> None:
    for name in edge.links:
        way = {"direction": "UP"} if links[name].duplex else {}
        SubElement(route, "link_ctn", {"id": prefix + name, **way})
