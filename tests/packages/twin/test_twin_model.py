"""Tests of the model of a twin: it has the CPUs and links of a node, and the fabric's switches."""

from __future__ import annotations

import json
from collections import deque
from functools import cache
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.shipped import shipped_site

from proofmark.common.errors import BadInput
from proofmark.packages.twin.platform import host_name, platform_xml, settings
from proofmark.packages.twin.twin_model import (
    GATEWAY,
    Graph,
    TwinModel,
    cpu_name,
    interconnect,
    network_graph,
    twin_model,
)
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.topology import Topology

INVENTORIES = {"tachyon1": "tachyon", "tachyon2": "tachyon", "p595": "p595"}


@cache
def site_of(partition: str) -> Site:
    return shipped_site(INVENTORIES[partition], partition)


def topology_of(site: Site) -> Topology:
    return topology_of_mode(site, site.partition.current_mode)


def model_of(partition: str, nodes: int = 2) -> TwinModel:
    site = site_of(partition)
    return twin_model(site, topology_of(site), site.hosts[:nodes])


def route(graph: Graph, one: str, other: str) -> list[str]:
    """Return the links of the route with the fewest links (breadth first, links counted)."""
    near: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for edge in graph.edges:
        near.setdefault(edge.one, []).append((edge.other, edge.links))
        near.setdefault(edge.other, []).append((edge.one, edge.links))
    best: dict[str, list[str]] = {one: []}
    waiting = deque([one])
    while waiting:
        place = waiting.popleft()
        for after, links in near.get(place, ()):
            found = [*best[place], *links]
            if after not in best or len(found) < len(best[after]):
                best[after] = found
                waiting.append(after)
    return best[other]


def buses(links: list[str]) -> int:
    """Return the number of links between sockets or books of a route."""
    return sum(name.startswith(("socket", "book")) for name in links)


@pytest.mark.parametrize("partition", INVENTORIES)
def test_each_cpu_reaches_each_other_cpu_and_the_adapter(partition: str) -> None:
    graph = model_of(partition).node
    ends = [*graph.cpus[:3], *graph.cpus[-3:], GATEWAY]
    for one, other in combinations(ends, 2):
        links = route(graph, one, other)
        assert links
        assert all(name in graph.links for name in links)


@pytest.mark.parametrize("partition", INVENTORIES)
def test_a_route_is_as_long_as_the_distance_of_its_sockets(partition: str) -> None:
    """A route inside a socket has no bus. Each hop between sockets adds one bus."""
    site = site_of(partition)
    topology = topology_of(site)
    graph = twin_model(site, topology, site.hosts[:1]).node
    hops = topology.socket_hops
    first = topology.cores[0]
    for core in topology.cores[1:]:
        links = route(graph, cpu_name(first.pus[0]), cpu_name(core.pus[0]))
        if core.socket == first.socket:
            assert buses(links) == 0
        elif core.book != first.book:
            assert buses(links) == 1
            assert sum(name.startswith("port") for name in links) == 2
        else:
            assert buses(links) == hops.get((first.socket, core.socket), 1)
    assert set(hops.values()) == ({1, 2} if partition == "tachyon1" else set(hops.values()) - {2})


def test_copies_from_another_socket_are_slower() -> None:
    """Inside a socket only the links of both cores are used."""
    model = model_of("tachyon2")
    graph, known = model.node, model.interconnect
    assert sorted(route(graph, graph.cpus[0], graph.cpus[1])) == ["core0", "core1"]
    far = route(graph, graph.cpus[0], graph.cpus[-1])
    assert sorted(far) == ["core0", f"core{len(graph.cpus) - 1}", "far0", "far7", "socket0-1"]
    near_s = known.line_s.value
    slower = (near_s + known.socket.latency_s.value) / near_s
    links = graph.links
    assert links["core0"].bytes_per_s / links["far0"].bytes_per_s == pytest.approx(slower)


def test_nodes_of_one_switch_share_no_uplink() -> None:
    """Tachyon 1: 12 nodes on a chip, 24 on a line card, then the switch."""
    site = site_of("tachyon1")
    graph = network_graph(site, site.hosts)
    near, card, far = (site.hosts[number] for number in (1, 12, 24))
    assert len(route(graph, site.hosts[0], near)) == 2
    assert len(route(graph, site.hosts[0], card)) == 4
    assert len(route(graph, site.hosts[0], far)) == 6
    chip = site.switches(site.hosts[0])[0]
    rate = site.partition.fabric.link_bytes_per_s
    assert graph.links[f"link-{chip}"].bytes_per_s == 12 * rate, "undeclared uplinks do not block"


def test_declared_uplinks_are_a_bottleneck() -> None:
    site = shipped_site("tachyon", "tachyon1")
    fabric = site.partition.fabric
    levels = [fabric.levels[0].model_copy(update={"uplinks": 3}), *fabric.levels[1:]]
    partition = site.partition.model_copy(
        update={"fabric": fabric.model_copy(update={"levels": levels})}
    )
    blocked = site.model_copy(update={"partition": partition})
    graph = network_graph(blocked, site.hosts)
    chip = site.switches(site.hosts[0])[0]
    assert graph.links[f"link-{chip}"].bytes_per_s == 3 * fabric.link_bytes_per_s


@given(nodes=st.integers(1, 12), partition=st.sampled_from(sorted(INVENTORIES)))
def test_the_platform_names_each_link_and_end_once(nodes: int, partition: str) -> None:
    """Every end and link that a route names exists in its zone, and no name is used twice."""
    model = model_of(partition, nodes)
    known = model.interconnect
    text = platform_xml(model, settings(known, known.collectives[0], (3, 32)))
    root = ElementTree.fromstring(text.partition("\n")[2].partition("\n")[2])
    names = [each.get("id") for tag in ("host", "router", "link") for each in root.iter(tag)]
    known_names = set(names)
    assert len(names) == len(known_names)
    zones = {zone.get("id") for zone in root.iter("zone")}
    for route_of in root.iter("route"):
        assert {route_of.get("src"), route_of.get("dst")} <= known_names
    for between in root.iter("zoneRoute"):
        assert {between.get("src"), between.get("dst")} <= zones
        assert {between.get("gw_src"), between.get("gw_dst")} <= known_names
    assert {each.get("id") for each in root.iter("link_ctn")} <= known_names
    topology = topology_of(site_of(partition))
    hosts = {
        host_name(node, pu) for node in model.nodes for core in topology.cores for pu in core.pus
    }
    assert {host.get("id") for host in root.iter("host")} == hosts


def test_a_selector_is_a_setting_or_several() -> None:
    known = model_of("p595").interconnect
    found = {name: settings(known, name, (3, 32)) for name in known.collectives}
    assert all(of["smpi/coll-selector"] in {*found, "mpich"} for of in found.values())
    assert found["classic"]["smpi/bcast"] == "binomial_tree"
    assert "smpi/bcast" not in found["ompi"]
    assert len({json.dumps(of) for of in found.values()}) == len(found)


def test_a_message_without_bytes_has_the_overhead_with_each_simgrid() -> None:
    """From SimGrid 3.34 on, a table of times has no entry for 0 bytes."""
    known = model_of("p595").interconnect
    seconds = f"{known.software_s.value:g}"
    for version, time in {(3, 32): f"0:{seconds}:0", (3, 34): seconds, (4, 0): seconds}.items():
        found = settings(known, "ompi", version)
        assert (found["smpi/os"], found["smpi/or"]) == (time, time)


def test_each_figure_of_the_model_is_an_assumption_with_its_reason() -> None:
    assumptions = model_of("p595").assumptions
    assert all(each.why for each in assumptions)
    assert {each.what for each in assumptions} >= {
        "cache line between two cores",
        "link between two books",
        "link of a node",
    }
    assert any(each.sourced for each in model_of("tachyon1").assumptions)
    (fabric,) = [each for each in assumptions if each.what == "link of a node"]
    assert not fabric.sourced, "the inventory declares it as assumed"


SITES = [
    ("example-epyc", "epyc"),
    ("example-grace", "grace"),
    ("example-xeon", "xeon"),
    ("nurion", "knl"),
    ("nurion", "skl"),
    ("p595", "p595"),
    ("rehearsal", "knl"),
    ("tachyon", "tachyon1"),
    ("tachyon", "tachyon2"),
]


@pytest.mark.parametrize(("inventory", "partition"), SITES)
def test_each_site_of_the_kit_has_a_twin_with_figures_of_its_own_processor(
    inventory: str, partition: str
) -> None:
    site = shipped_site(inventory, partition)
    model = twin_model(site, topology_of(site), site.hosts[:1])
    assert not model.interconnect.used_for
    assert "processor" not in {each.what for each in model.assumptions}


@pytest.mark.parametrize(
    ("processor", "ancestor"),
    [("icelake", "skylake_avx512"), ("zen3", "zen2"), ("broadwell", "haswell")],
)
def test_a_processor_without_figures_has_those_of_its_nearest_ancestor(
    processor: str, ancestor: str
) -> None:
    site = shipped_site("nurion", "skl")
    known = interconnect(processor)
    assert known is not None
    assert (known.architecture, known.used_for) == (ancestor, processor)
    (stated,) = [
        each
        for each in twin_model(site, topology_of(site), site.hosts[:1], known).assumptions
        if each.what == "processor"
    ]
    assert (stated.value, stated.sourced) == (ancestor, False)
    assert processor in stated.why


def test_a_processor_without_known_ancestors_is_refused_by_name() -> None:
    site = shipped_site("template", "cluster")
    with pytest.raises(BadInput, match=r"x86_64_v3, which is not in twin/data/interconnects.yml"):
        twin_model(site, topology_of(site), site.hosts[:1])
