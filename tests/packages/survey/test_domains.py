"""The topology that `init` writes has the cores that Linux states for each domain."""

from __future__ import annotations

from dataclasses import replace

from tests.fixtures.machine_probe import Node, probe

from proofmark.packages.survey.findings import written_topology
from proofmark.site.node.facts import parse_probe
from proofmark.site.node.topology import Topology

ACROSS = Node(
    "Xeon",
    cores=4,
    l3=(1024, 4),
    domains=[
        {"cores": [0, 1, 4, 5], "gib": 8, "across": True},
        {"cores": [2, 3, 6, 7], "gib": 8, "across": True},
    ],
)


def test_init_writes_the_cores_that_linux_states_for_a_domain() -> None:
    facts = parse_probe(probe(ACROSS), "probe")
    written = Topology.from_xml(written_topology(facts))
    assert [each.cores for each in written.numa_domains] == [(0, 1, 4, 5), (2, 3, 6, 7)]
    inside = parse_probe(probe(replace(ACROSS, domains=())), "probe")
    assert written_topology(inside) == inside.topology_xml
