"""The node of a partition in each of its modes: as it was probed, or as it is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.site.discovery import discover
from proofmark.site.hardware import Hardware
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.topology import Topology

LIKELY_SHARE = 0.5
"""Of the nominal peak: what a plan counts on for HPL before anything has been measured."""
LIKELY_FLOPS = 20e9
"""Of one core, where not even the nominal peak is known; in flop/s."""


def machines_of(site: Site) -> tuple[Callable[[str], Machine], str]:
    """Return what gives the machine of each mode, and the probe that it is read from, if any.

    Raises:
        BadInput: the node cannot be probed; when asked for a mode: its topology is not declared or
            cannot be read.
    """
    hardware = site.partition.hardware
    if hardware != "discovered":
        return lru_cache(lambda mode: declared(site, hardware, mode)), ""
    machine, probe = discover(site)

    @lru_cache
    def of_mode(mode: str) -> Machine:
        if mode == site.partition.current_mode:
            return _complete(machine)
        topology = site.partition.modes[mode].topology
        if topology is None:
            key = f"partition.modes.{mode}.topology"
            found = "nothing, and the discovered node is in another mode"
            raise bad_input(site.facts, key, found, "a topology")
        symbols = _symbols(seen := _topology(site.facts, topology), len(site.hosts))
        return _complete(Machine(symbols, seen))

    return of_mode, probe


def declared(site: Site, hardware: Hardware, mode: str) -> Machine:
    """Return the machine that the inventory declares for `mode`; no node is touched.

    Raises:
        BadInput: the topology cannot be read.
    """
    of_mode = site.partition.modes[mode]
    topology = _topology(site.facts, of_mode.topology or hardware.topology)
    topology = replace(topology, source=f"a node of {site.partition_name} in mode {mode}")
    symbols = _symbols(topology, len(site.hosts))
    memory = of_mode.memory_bytes or hardware.memory_bytes
    symbols |= {"memory_bytes": memory} if memory else {}
    symbols |= {"llc_bytes": hardware.llc_bytes} if hardware.llc_bytes else {}
    if hardware.clock_hz and hardware.flop_per_cycle:
        peak = symbols["cores"] * hardware.clock_hz * hardware.flop_per_cycle
        symbols |= {"rpeak_nominal": peak, "likely_flops": LIKELY_SHARE * peak}
    return _complete(Machine(symbols, topology))


def topology_of_mode(site: Site, mode: str) -> Topology:
    """Return what the inventory says that a node in `mode` looks like; no node is touched.

    Raises:
        BadInput: it says nothing, or what cannot be read.
    """
    hardware = site.partition.hardware
    told = site.partition.modes[mode].topology
    if told is None and hardware != "discovered":
        told = hardware.topology
    if told is None:
        accepted = "a topology: what a node in this mode has to show"
        raise bad_input(site.facts, f"partition.modes.{mode}.topology", "nothing", accepted)
    return _topology(site.facts, told)


def _topology(folder: Path, told: str) -> Topology:
    if told.endswith(".xml"):
        path = folder / told
        if not path.is_file():
            raise bad_input(path, "", "no such file", "hwloc's XML, named in the partition's facts")
        return Topology.from_file(path)
    return _synthetic(" ".join(told.split()))


@lru_cache(maxsize=64)
def _synthetic(notation: str) -> Topology:
    return Topology.from_lstopo(notation)


def _symbols(topology: Topology, nodes: int) -> dict[str, Any]:
    known = {
        "cores": len(topology.cores),
        "sockets": topology.sockets,
        "numa": sum(bool(domain.cores) for domain in topology.numa_domains),
        "threads_per_core": topology.threads_per_core,
        "memory_bytes": topology.memory_bytes or None,
        "nodes": nodes,
    }
    return {name: value for name, value in known.items() if value is not None}


def _complete(machine: Machine) -> Machine:
    """Add what follows from the topology, for declared and discovered nodes alike.

    ``numa_cores`` are the cores of the smallest domain that has any; ``llc_bytes`` is 0 where
    nobody tells of a cache.
    """
    topology = machine.topology
    cores = [len(domain.cores) for domain in topology.numa_domains if domain.cores]
    added: dict[str, Any] = {
        "numa_cores": min(cores),
        "llc_bytes": topology.llc_bytes,
        "likely_flops": LIKELY_FLOPS * machine.symbols["cores"],
    }
    return Machine({**added, **machine.symbols}, topology)
