"""Discovers the machine at hand: nobody types its core count."""

from __future__ import annotations

from importlib.resources import as_file, files

from proofmark.common.command import run_command
from proofmark.common.errors import bad_input
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.facts import NodeFacts, parse_probe, symbols
from proofmark.site.node.topology import Topology

TOPOLOGY = "the XML that lstopo (Debian: package hwloc) prints within PROBE_LIMIT_S seconds"


def discover(site: Site) -> tuple[Machine, str]:
    """Return what the plan must know of the partition's nodes, and the probe it is read from.

    Raises:
        BadInput: the partition is not the machine at hand, or its topology cannot be read.
    """
    if site.connection != "local":
        found = f"discovered, reached by {site.connection}"
        raise bad_input(site.inventory, "partition.hardware", found, "hosts reached by local")
    probe = probe_here()
    return machine_of(parse_probe(probe, "probe of this machine"), len(site.hosts)), probe


def probe_here() -> str:
    """Run the probe on this machine and return what it said."""
    with as_file(files("proofmark.site.node") / "probe.sh") as script:
        done = run_command(["sh", str(script), "facts"])
    if done.returncode:
        said = done.stderr.strip()
        raise bad_input("probe.sh", "", f"exit code {done.returncode}: {said}", "exit code 0")
    return done.stdout


def machine_of(facts: NodeFacts, nodes: int) -> Machine:
    """Return the symbols and the topology of `nodes` nodes like the one described by `facts`.

    Raises:
        BadInput: the node has no hwloc, or it gives no topology; placements are computed from that.
    """
    if not facts.topology_xml:
        why = f"{facts.absent.get('topology', 'nothing')} on node {facts.hostname}"
        raise bad_input("probe.sh", "topology", why, TOPOLOGY)
    return Machine(symbols(facts, nodes), Topology.from_xml(facts.topology_xml, facts.hostname))
