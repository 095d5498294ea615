"""The machine of a partition in each of its modes, from a probe or from the inventory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.common.expressions import ranks_inside
from proofmark.common.files import is_regular
from proofmark.site.discovery import discover
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import processor
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.topology import Topology

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


def machines_of(site: Site) -> tuple[Callable[[str], Machine], str]:
    """Return a function from a mode to its machine, and the output of the probe or "".

    The function raises `BadInput` if the topology of the mode is not declared or cannot be read.

    Raises:
        BadInput: the node cannot be probed.
    """
    node = site.partition.node
    if node.topology:
        return lru_cache(lambda mode: declared(site, node, mode)), ""
    machine, probe = discover(site)

    @lru_cache
    def of_mode(mode: str) -> Machine:
        if mode == site.partition.current_mode:
            return _complete(machine)
        topology = site.partition.modes[mode].topology
        if topology is None:
            key = f"partition.modes.{mode}.topology"
            found = "nothing, and the node was probed in another mode"
            raise bad_input(site.facts, key, found, "a topology")
        of_node = _topology(site.facts, topology).of_processor(machine.processor)
        return _complete(Machine.from_topology(of_node, len(site.hosts)))

    return of_mode, probe


def declared(site: Site, node: StatedNode, mode: str) -> Machine:
    """Return the machine that the inventory declares for `mode`. No node is probed.

    Raises:
        BadInput: the topology cannot be read.
    """
    of_mode = site.partition.modes[mode]
    topology = _topology(site.facts, of_mode.topology or node.topology)
    topology = topology.of_processor(node.cpu_model, in_package=_in_package(node))
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
        BadInput: the topology cannot be read.
    """
    node = site.partition.node
    if not node.topology:
        return node
    symbols = declared(site, node, site.partition.current_mode).symbols
    counted = {key: getattr(node, key) or symbols[key] for key in ("cores", "sockets")}
    return node.model_copy(update=counted)


def _in_package(node: StatedNode) -> bool:
    """Return whether the processors of a node have memory in their package."""
    row = processor(node.cpu_model)
    return bool(node.memory.fast_bytes_per_s or (row and row.fast_memory_bytes_per_s))


def topology_of_mode(site: Site, mode: str) -> Topology:
    """Return the topology that the inventory declares for `mode`. No node is probed.

    Raises:
        BadInput: no topology is declared for the mode, or it cannot be read.
    """
    topology = site.partition.modes[mode].topology or site.partition.node.topology
    if not topology:
        accepted = "the topology that a node in this mode must have"
        raise bad_input(site.facts, f"partition.modes.{mode}.topology", "nothing", accepted)
    return _topology(site.facts, topology)


def _topology(folder: Path, declaration: str) -> Topology:
    """Read hwloc's synthetic notation, or the XML file in `folder` that `declaration` names."""
    if declaration.endswith(".xml"):
        path = folder / declaration
        if not is_regular(path):
            raise bad_input(path, "", "no such file", "hwloc's XML, named in the partition's facts")
        return Topology.from_file(path)
    return _synthetic(" ".join(declaration.split()))


@lru_cache(maxsize=64)
def _synthetic(notation: str) -> Topology:
    return Topology.from_lstopo(notation)


def _complete(machine: Machine) -> Machine:
    """Return `machine` with the symbols that follow from its topology.

    ``domain_cores`` are the numbers of cores of the domains that have cores. ``l3_threads`` are the
    threads of a rank inside a cache of level 3, or ``domain_threads`` if a domain has only one.
    ``llc_bytes`` is 0 if no cache is declared or reported. ``memories`` are the kinds of memory,
    ``main_memory`` first.
    """
    topology = machine.topology
    cores = [len(domain.cores) for domain in topology.numa_domains if domain.cores]
    symbols: dict[str, Any] = {
        "domain_cores": cores,
        "domain_threads": _domain_threads(cores),
        "l3_threads": _l3_threads(topology, _domain_threads(cores)),
        "main_memory": topology.main_memory,
        "memories": list(topology.memories),
        "llc_bytes": topology.llc_bytes,
    }
    return replace(machine, symbols={**symbols, **machine.symbols})


def _domain_threads(cores: Sequence[int]) -> int:
    """Return the most threads of a rank inside a domain that leave at most `IDLE_SHARE` idle.

    Args:
        cores: the number of cores of each domain.
    """
    busy = (1 - IDLE_SHARE) * sum(cores)
    return next(t for t in range(max(cores), 0, -1) if t * ranks_inside(cores, t) >= busy)


def _l3_threads(topology: Topology, domain_threads: int) -> int:
    """Return the threads of a rank inside a cache of level 3 that `SHARED_L3` cores share."""
    cores = topology.least_l3_cores or domain_threads
    return cores if SHARED_L3 <= cores < domain_threads else domain_threads
