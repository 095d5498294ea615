"""The machine of a partition in each of its modes, as a plan needs it.

Its topology and values come from a probe of this machine, or from the inventory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import as_file, files
from typing import Any

from archspec.cpu import TARGETS

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.expressions import ranks_inside
from proofmark.common.files import is_regular, read_text
from proofmark.common.processes import run_command
from proofmark.common.text import size
from proofmark.site.contract_document import CheckItem
from proofmark.site.hardware import NODE, StatedNode
from proofmark.site.hardware_limits import ETHERNET, SLINGSHOT, processor
from proofmark.site.inventory import Site
from proofmark.site.node.cpu import vector_set
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.site.node.parts import Dimm, Port, ReportedDomain
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

    def __call__(self, mode: str) -> Machine:
        """Return the machine itself: it is the same in each mode."""
        return self

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
        symbols: dict[str, Any] = dict(cls.from_topology(topology, nodes).symbols)
        if facts.cores_known:
            symbols |= {"cores": facts.cores, "sockets": facts.sockets}
            symbols["threads_per_core"] = facts.threads_per_core
        symbols["cores"] = min(facts.cores, symbols["cores"])
        symbols["memory_bytes"] = facts.memory_bytes
        symbols |= {"numa": domains} if domains else {}
        if facts.last_level_bytes is not None:
            symbols["llc_bytes"] = facts.last_level_bytes
        rails = {name: rail.numa for name, rail in rails_of(facts).items() if rail.is_fabric}
        unread = {**facts.unread, **topology.unread}
        return cls(symbols, topology, unread, facts.cpu_model, rails)

    @classmethod
    def from_topology(cls, topology: Topology, nodes: int) -> Machine:
        """Return the machine of `nodes` nodes with `topology`."""
        symbols = {
            "cores": len(topology.cores),
            "sockets": topology.sockets,
            "numa": sum(bool(domain.cores) for domain in topology.numa_domains),
            "threads_per_core": topology.threads_per_core,
            "nodes": nodes,
        }
        if memory := topology.memory_bytes:
            symbols["memory_bytes"] = memory
        return cls(symbols, topology, topology.unread)


Machines = Callable[[str], Machine]
"""Returns the machine in a mode."""


def probe_here() -> str:
    """Run the probe on this machine and return its output.

    Raises:
        BadInput: the probe failed.
    """
    with as_file(files("proofmark.site.node") / "probe.sh") as script:
        done = run_command(["sh", str(script), "facts"])
    if done.returncode:
        stderr = done.stderr.strip()
        raise bad_input("probe.sh", "", f"exit code {done.returncode}: {stderr}", "exit code 0")
    return done.stdout


LIKELY_SHARE = 0.5
"""HPL ÷ nominal peak that a plan assumes before the first measurement."""
LIKELY_FLOPS = 20e9
"""HPL of one core in flop/s that a plan assumes if the nominal peak is unknown."""
CORE_FLOPS = "core_flops"
"""The fact of a partition that ``proofmark init`` measures: the multiply-add of one core of a node
while all of them compute, flop/s."""
SHARED_L3 = 4
"""The cores of a part of a processor with an L3 cache of its own: 4 or 8 in AMD's EPYC. A POWER9
has an L3 cache for each pair of cores: a rank in each is no usual layout of HPL."""
IDLE_SHARE = 0.1
"""Share of the cores that ranks inside domains of unequal size may leave idle."""
PART_OF_A_NODE = 2.5
"""The largest quotient of the bought memory or channels and those of a topology: it may show one of
two sockets, or a half of mirrored memory. A virtual node has any part of the topology."""


def machines_of(site: Site) -> tuple[Callable[[str], Machine], str]:
    """Return a function from a mode to its machine, and the output of the probe or "".

    The function raises `BadInput` if the topology of the mode is not declared or cannot be read.

    Raises:
        BadInput: the node is not this machine, or cannot be probed.
    """
    node = site.partition.node
    if node.topology:
        return lru_cache(lambda mode: declared(site, node, mode)), ""
    if site.connection != "local":
        found = f"nothing, and hosts reached by {site.connection}"
        accepted = "the topology of a node, or hosts reached by local"
        raise bad_input(site.inventory, "partition.node.topology", found, accepted)
    probe = probe_here()
    machine = Machine.from_facts(parse_probe(probe, "probe of this machine"), len(site.hosts))

    @lru_cache
    def of_mode(mode: str) -> Machine:
        if mode == site.partition.current_mode:
            return _complete(machine)
        of_node = topology_of_mode(site, mode).of_processor(machine.processor)
        return _complete(Machine.from_topology(of_node, len(site.hosts)))

    return of_mode, probe


def declared(site: Site, node: StatedNode, mode: str) -> Machine:
    """Return the machine that the inventory declares for `mode`. No node is probed.

    Raises:
        BadInput: the topology cannot be read.
    """
    topology = topology_of_mode(site, mode)
    stated = node.memory.fast_bytes_per_s is not None
    topology = topology.of_processor(node.cpu_model, in_package=stated)
    topology = replace(topology, source=f"a node of {site.partition_name} in mode {mode}")
    symbols = dict(Machine.from_topology(topology, len(site.hosts)).symbols)
    if memory := node.memory.all_bytes:
        # The memory of a mode can be less than what was bought, and that of a virtual node as well.
        symbols["memory_bytes"] = min(memory, symbols.get("memory_bytes", memory))
    symbols |= {"llc_bytes": node.llc_bytes} if node.llc_bytes else {}
    if node.clock_hz and node.flop_per_cycle:
        peak = symbols["cores"] * node.clock_hz * node.flop_per_cycle
        symbols |= {"rpeak_nominal": peak, "likely_flops": LIKELY_SHARE * peak}
    return _complete(Machine(symbols, topology, topology.unread))


def counted_node(site: Site) -> StatedNode:
    """Return the stated node; its topology states the cores and processors that it does not count.

    Raises:
        BadInput: the topology cannot be read, or has other numbers of them than are stated.
    """
    node = site.partition.node
    if not node.topology:
        return node
    symbols = declared(site, node, site.partition.current_mode).symbols
    counted = {key: symbols[key] for key in ("cores", "sockets")}
    for key, number in counted.items():
        if (stated := getattr(node, key)) not in (None, number):
            found = f"{stated}, and {number} in the topology"
            raise bad_input(site.facts, f"partition.{NODE}.{key}", found, "the same number")
    return node.model_copy(update=counted)


def contradictions(site: Site, node: StatedNode) -> Iterator[InputError]:
    """Yield what the site states about its nodes and its processors or topology contradict.

    Args:
        node: the stated node with its counts, see `counted_node`.
    """
    row, memory, file = processor(node.cpu_model), node.memory, f"{site.facts}"
    most = row and row.channels and node.sockets and row.channels * node.sockets
    if most and (memory.channels or 0) > PART_OF_A_NODE * most:
        accepted = f"at most {most}, those of the processors"
        yield InputError(file, f"partition.{NODE}.memory.channels", f"{memory.channels}", accepted)
    stated, found = memory.all_bytes, 0
    if node.topology:
        found = topology_of_mode(site, site.partition.current_mode).memory_bytes
    if stated and found and stated > PART_OF_A_NODE * found:
        key = "module_bytes" if memory.module_bytes else "bytes"
        accepted = f"{size(found)}, as in the topology"
        yield InputError(file, f"partition.{NODE}.memory.{key}", size(stated), accepted)
    numbers = {
        "nodes": len(site.partition_hosts or site.hosts),
        "sockets": node.sockets,
        "cores": node.cores,
        "memory": stated and stated / 2**30,
        "modules": memory.modules,
        "ports": node.rails.number,
        "accelerators": node.accelerators and node.accelerators.count,
    }
    for place, item in enumerate(site.contract.items if site.contract else ()):
        number = numbers.get(item.check) if isinstance(item, CheckItem) else None
        key = "value" if getattr(item, "value", None) else "at_least"
        least = getattr(item, key, None)
        if number and least and least > number and item.system in (None, site.partition_name):
            key, accepted = f"items.{place}.{key}", f"at most {number:g}, as the site states"
            yield InputError(f"{site.contract_file}", key, f"{least:g}", accepted)


def topology_of_mode(site: Site, mode: str) -> Topology:
    """Return the topology that the inventory declares for `mode`. No node is probed.

    Raises:
        BadInput: no topology is declared for the mode, or it cannot be read.
    """
    of_mode, of_node = site.partition.modes[mode].topology, site.partition.node.topology
    key = f"partition.{'node' if of_node and not of_mode else f'modes.{mode}'}.topology"
    if not (stated := of_mode or of_node):
        raise bad_input(site.facts, key, "nothing", "the topology of a node in this mode")
    if not stated.endswith(".xml"):
        try:
            return _synthetic(" ".join(stated.split()))
        except BadInput as error:
            (mistake,) = error.mistakes
            raise BadInput(replace(mistake, file=f"{site.facts}", key=key)) from None
    if not is_regular(path := site.facts / stated):
        near = nearest(stated, (each.name for each in site.facts.glob("*.xml")))
        found = f"{stated!r}, no file of {site.facts.name}/{near}"
        raise bad_input(site.facts, key, found, "a file of hwloc's XML, or a synthetic topology")
    return _from_xml(read_text(path), f"{path}")


_from_xml = lru_cache(maxsize=8)(Topology.from_xml)
_synthetic = lru_cache(maxsize=64)(Topology.from_lstopo)


def _complete(machine: Machine) -> Machine:
    """Return `machine` with the symbols that follow from its topology.

    ``domain_cores`` are the numbers of cores of the domains that have cores. ``l3_threads`` are the
    threads of a rank inside a cache of level 3, or ``domain_threads`` if a domain has only one.
    ``llc_bytes`` is 0 if no cache is declared or reported. ``memories`` are the kinds of memory,
    ``main_memory`` first.
    """
    topology = machine.topology
    cores = [len(domain.cores) for domain in topology.numa_domains if domain.cores]
    threads = _domain_threads(cores)
    of_l3 = topology.least_l3_cores or threads
    symbols: dict[str, Any] = {
        "domain_cores": cores,
        "domain_threads": threads,
        # A cache of level 3 counts if `SHARED_L3` cores share it.
        "l3_threads": of_l3 if SHARED_L3 <= of_l3 < threads else threads,
        "main_memory": topology.main_memory,
        "memories": list(topology.memories),
        "llc_bytes": topology.llc_bytes,
    }
    return replace(machine, symbols={**symbols, **machine.symbols})


def _domain_threads(cores: Sequence[int]) -> int:
    """Return the most threads of a rank inside a domain that leave at most `IDLE_SHARE` idle."""
    busy = (1 - IDLE_SHARE) * sum(cores)
    return next(t for t in range(max(cores), 0, -1) if t * ranks_inside(cores, t) >= busy)


NEVER = "1970-01-01T00:00:00Z"
"""The date of a probe that was not made."""
LAYERS = {"ethernet": ETHERNET, "slingshot": SLINGSHOT}
"""The link layer of the port of a kind of network, if it is not InfiniBand."""


def declared_node(site: Site, machine: Machine) -> NodeFacts:
    """Return the facts that a probe of a node of `site`, whose topology is stated, should find.

    Each channel of a processor of the table has a module of the fastest speed, and the port has the
    rate of the fabric. Facts about firmware, software and state are not set.
    """
    stated = site.partition.node
    row, target = processor(stated.cpu_model), TARGETS.get(stated.architecture)
    cores, sockets = machine.symbols["cores"], machine.symbols["sockets"]
    pus, memory = machine.topology.core_of, machine.symbols.get("memory_bytes", 0)
    features = tuple(sorted(target.features)) if target else ()
    isa, bits = vector_set(features)
    speed = row.ddr if row else None
    module = Dimm(locator="", rated=speed, configured=speed)
    domains = []
    for each in machine.topology.numa_domains:
        cpus = tuple(cpu for cpu, core in pus.items() if core.index in each.cores)
        domains.append(ReportedDomain(index=each.os_index, cpus=cpus, memory_bytes=each.bytes))
    return NodeFacts(
        hostname=f"a node of {site.partition_name}",
        date=NEVER,
        machine=target.family.name if target else "",
        cpu_model=stated.cpu_model,
        features=features,
        architecture=stated.architecture,
        vector_isa=isa,
        vector_bits=bits,
        sockets=sockets,
        cores=cores,
        cores_online=cores,
        threads_per_core=machine.topology.threads_per_core,
        cpus=tuple(sorted(pus)),
        cpus_online=len(pus),
        memory_bytes=memory,
        memory_total_bytes=memory,
        base_hz=row.base_hz if row else None,
        dimms=(module,) * ((row.channels or 0) * sockets if row and row.ddr else 0),
        ports=_ports(site),
        # Without their sizes the domains say nothing about a cache.
        numa=tuple(domains) if all(each.memory_bytes for each in domains) else (),
    )


def _ports(site: Site) -> tuple[Port, ...]:
    """Return a port with the rate of the fabric; none if the inventory states no rate."""
    fabric = site.partition.fabric
    if fabric.rate is None:
        return ()
    rate = fabric.rate if isinstance(fabric.rate, str) else f"{8 * fabric.rate / 1e9:g} Gb/sec"
    layer = LAYERS.get(fabric.network.kind if fabric.network else "", "InfiniBand")
    port = Port(adapter="", port="", state="4: ACTIVE", rate=rate, layer=layer)
    return (port,)
