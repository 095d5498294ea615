"""A node as a plan needs it: its topology, and the values that expressions name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.topology import Topology
from proofmark.site.rails import rails_of

TOPOLOGY = "the XML that lstopo (Debian: package hwloc) prints within PROBE_LIMIT_S seconds"


@dataclass(frozen=True)
class Machine:
    """The nodes of a partition, which are alike, in one mode.

    Attributes:
        symbols: the values that expressions name: counts, bytes and flop/s. ``numa`` counts the
            NUMA domains that have cores. A symbol of unknown value is left out.
        unread: the texts of optional facts of the node that cannot be read, by their names.
        processor: its name; empty if no node was probed.
        rails: the NUMA domain of each active rail by its name; None is not known. A port of RoCE
            may be for management: only the inventory can name it.
    """

    symbols: Mapping[str, Any]
    topology: Topology
    unread: Mapping[str, str] = field(default_factory=dict)
    processor: str = ""
    rails: Mapping[str, int | None] = field(default_factory=dict)

    @classmethod
    def from_facts(cls, facts: NodeFacts, nodes: int) -> Machine:
        """Return the machine of `nodes` nodes like the one that `facts` describe.

        Raises:
            BadInput: the facts have no topology, from which placements are computed; or hwloc's XML
                cannot be read.
        """
        if not facts.topology_xml:
            reason = f"{facts.absent.get('topology', 'nothing')} on node {facts.hostname}"
            raise bad_input("probe.sh", "topology", reason, TOPOLOGY)
        topology = Topology.from_xml(facts.topology_xml, facts.hostname)
        topology = topology.of_kernel({domain.index: domain.cpus for domain in facts.numa})
        topology = topology.of_processor(facts.cpu_model)
        usable = set(facts.cpus)
        with_cpus = [each for each in facts.numa if not usable.isdisjoint(each.cpus)]
        domains = sum(bool(each.memory_bytes) for each in with_cpus) or len(with_cpus)
        sockets, cores, threads = facts.sockets, facts.cores, facts.threads_per_core
        if not facts.cores_known:
            sockets, cores = topology.sockets, min(facts.cores, len(topology.cores))
            threads = topology.threads_per_core
        symbols = _known(
            cores=cores,
            sockets=sockets,
            numa=domains or _domains_with_cores(topology),
            threads_per_core=threads,
            memory_bytes=facts.memory_bytes,
            llc_bytes=facts.last_level_bytes,
            nodes=nodes,
        )
        rails = {name: rail.numa for name, rail in rails_of(facts).items() if rail.is_fabric}
        unread = {**facts.unread, **topology.unread}
        return cls(symbols, topology, unread, facts.cpu_model, rails)

    @classmethod
    def from_topology(cls, topology: Topology, nodes: int) -> Machine:
        """Return the machine of `nodes` nodes with `topology`."""
        symbols = _known(
            cores=len(topology.cores),
            sockets=topology.sockets,
            numa=_domains_with_cores(topology),
            threads_per_core=topology.threads_per_core,
            memory_bytes=topology.memory_bytes or None,
            nodes=nodes,
        )
        return cls(symbols, topology, topology.unread)


def _domains_with_cores(topology: Topology) -> int:
    return sum(bool(domain.cores) for domain in topology.numa_domains)


def _known(**symbols: int | None) -> dict[str, int]:
    return {name: value for name, value in symbols.items() if value is not None}


Machines = Machine | Callable[[str], Machine]
"""The machine, or a function that returns the machine in a mode."""
