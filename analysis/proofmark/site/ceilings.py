"""The physical ceilings of a node: rates that no program can exceed on its hardware.

A limit of a contract is near the rate of a healthy node. A ceiling is far above it: a value beyond
the ceiling was not measured. Each ceiling has its source. A fact that is not known gives a generous
universal ceiling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf
from typing import NamedTuple

from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import ProcessorLimits, port_bound, processor
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import SLINGSHOT_DRIVER

MARGIN = 1.5
"""Factor of the ceilings of cores and memory that are computed from facts. It covers the part of a
large working set that stays in the caches (at most a third), overclocked modules, and adders beside
the FMA units."""

NOMINAL = 1.1
"""Above HPL ÷ Rpeak nominal of any processor (1.01, ``data/processors.yml``: the turbo ends where
all cores multiply), and above Triad ÷ the rate of the memory modules. It bounds figures of
nodes whose parts are stated, not read. A link never exceeds its rate; of it this is the margin."""

HIGHEST_HZ = 6.5e9
"""Above the fastest clock of any processor on sale (6.2 GHz)."""
LARGEST_TURBO = 2.5
"""Above turbo ÷ nominal frequency of any server processor (1.9 GHz → 3.9 GHz)."""
TURBO_IN_MAX = 1.1
"""Highest frequency of any core ÷ that of the first core (favoured cores are a few % faster)."""
REPORTING_TURBO = ("intel_pstate", "intel_cpufreq")
"""Drivers whose largest frequency includes the turbo; that of others can be the nominal one."""

X86_FMA_UNITS = 2
"""Full-width FMA units of a core of any x86 processor."""
OTHER_FLOP_PER_CYCLE = 128
"""Above that of one core of any other processor (POWER10, MMA: 64)."""
L1_ACCESSES = 5
"""The largest number of vectors that a core moves per cycle: three loads and two stores."""
LEAST_VECTOR_BYTES, OTHER_VECTOR_BYTES = 32, 64
"""Bytes of one access of x86 (string copies use them even without AVX), and of others."""

LARGEST_LLC = 2.5 * 2**30
"""Above the caches of the last level of any node (two processors with 1152 MiB)."""
ACCELERATORS = frozenset(
    {"amdgpu", "habanalabs", "i915", "kfd", "mic", "nvidia", "nouveau", "ve_drv", "xe"}
)
"""Kernel modules of accelerators, whose arithmetic no fact of a node describes."""
DIRECTIONS = 2


class Ceiling(NamedTuple):
    """A ceiling in its base unit (flop/s, byte/s, Hz, a number), and what it was computed from."""

    value: float
    source: str


UNSTATED = Ceiling(inf, "not stated")


_CORES, _CLOCK = Ceiling(4096, "at most 4096 cores"), Ceiling(HIGHEST_HZ, "at most 6.5 GHz")
_ANY_FLOPS = Ceiling(1e16, "at most 10 PFlop/s on a node with any accelerators")
_ANY_CORE_CACHE = Ceiling(4e12, "at most 4 TB/s on any core")
_ANY_CACHE = Ceiling(_CORES.value * _ANY_CORE_CACHE.value, "at most 4096 cores × 4 TB/s")
_ANY_LINK = Ceiling(1e13, "at most 10 TB/s on the links of any node")
_ANY_LLC = Ceiling(2.0**60, "unknown")


@dataclass(frozen=True)
class Ceilings:
    """The ceilings of one node, or of several nodes together; the default of each is universal.

    Attributes:
        clock: the frequency of a core, Hz.
        core_flops: double-precision arithmetic of one core, flop/s.
        flops: that of all cores and accelerators, flop/s.
        core_cache: loads and stores of one core in its first cache, byte/s.
        cache: those of all cores, byte/s.
        memory: the memory of all nodes, byte/s. A part of the data may be in caches.
        link: all links of one node to other nodes, both directions, byte/s.
        llc_bytes: the caches of the last level together.
        storage: all servers of the scratch directory, byte/s. It bounds only limits: a site that
            states less than it has makes no measured value impossible.
    """

    cores: Ceiling = _CORES
    clock: Ceiling = _CLOCK
    core_flops: Ceiling = _ANY_FLOPS
    flops: Ceiling = _ANY_FLOPS
    core_cache: Ceiling = _ANY_CORE_CACHE
    cache: Ceiling = _ANY_CACHE
    memory: Ceiling = _ANY_CACHE
    link: Ceiling = _ANY_LINK
    llc_bytes: Ceiling = _ANY_LLC
    storage: Ceiling = UNSTATED


ADDED = ("cores", "flops", "cache", "memory", "llc_bytes")
"""Ceilings of several nodes together; of the others the largest counts."""
NAMES = tuple(field.name for field in fields(Ceilings))
UNIVERSAL = Ceilings()
"""The ceilings of a node of which no fact is known."""


@lru_cache(maxsize=1 << 14)
def _joined(ceilings: tuple[Ceilings, ...]) -> Ceilings:
    joined = {}
    for name in NAMES:
        each = [getattr(one, name) for one in ceilings]
        largest = max(each)
        if name in ADDED:
            count = f"{len(each)} nodes × ({largest.source})"
            if len(set(each)) > 1:
                count = f"{len(each)} nodes, the largest with {largest.source}"
            largest = Ceiling(sum(one.value for one in each), count)
        joined[name] = largest
    return Ceilings(**joined)


def of_nodes(ceilings: Iterable[Ceilings]) -> Ceilings:
    """Return the ceilings of several nodes together; the `UNIVERSAL` ones for no node."""
    each = tuple(ceilings) or (UNIVERSAL,)
    return each[0] if len(each) == 1 else _joined(each)


def ceilings_of(facts: NodeFacts) -> Ceilings:
    """Return the ceilings of a node.

    A virtual node can move to another machine and hide its hardware: it has the universal clock,
    memory and links.
    """
    table = None if facts.virtual else processor(facts.cpu_model)
    cores = Ceiling(facts.cores_online, f"{facts.cores_online} cores")
    clock = _clock(facts, table)
    core_flops, flops = _flops(facts, table, clock)
    vector = OTHER_VECTOR_BYTES
    if facts.machine == "x86_64":
        vector = max(LEAST_VECTOR_BYTES, (facts.vector_bits or 0) // 8)
    core_cache = Ceiling(
        MARGIN * L1_ACCESSES * vector * clock.value,
        f"{MARGIN} × {L1_ACCESSES} accesses × {vector} B × {clock.source}",
    )
    cache = Ceiling(cores.value * core_cache.value, f"{cores.source} × {core_cache.source}")
    llc = facts.last_level_bytes
    return Ceilings(
        cores=cores,
        clock=clock,
        core_flops=core_flops,
        flops=flops,
        core_cache=core_cache,
        cache=cache,
        memory=_memory(facts, table) or cache,
        link=_link(facts),
        llc_bytes=_ANY_LLC if llc is None or facts.virtual else Ceiling(llc, f"{llc} bytes"),
    )


def _clock(facts: NodeFacts, table: ProcessorLimits | None) -> Ceiling:
    if facts.virtual:
        return _CLOCK
    if table is not None and table.turbo_hz is not None:
        return Ceiling(table.turbo_hz, f"{table.turbo_hz / 1e9:g} GHz turbo")
    if facts.frequency_driver in REPORTING_TURBO and facts.max_hz:
        hertz = min(HIGHEST_HZ, TURBO_IN_MAX * facts.max_hz)
        return Ceiling(hertz, f"{hertz / 1e9:.3g} GHz turbo")
    if facts.base_hz:
        hertz = min(HIGHEST_HZ, LARGEST_TURBO * facts.base_hz)
        return Ceiling(hertz, f"{hertz / 1e9:.3g} GHz (nominal {facts.base_hz / 1e9:.3g} GHz)")
    return _CLOCK


def _flops(
    facts: NodeFacts, table: ProcessorLimits | None, clock: Ceiling
) -> tuple[Ceiling, Ceiling]:
    """Return the arithmetic of one core and of the node."""
    # Without the list of modules an accelerator cannot be excluded.
    if not facts.modules or not ACCELERATORS.isdisjoint(facts.modules):
        return _ANY_FLOPS, _ANY_FLOPS
    if table is not None and table.flop_per_cycle is not None:
        per_cycle = table.flop_per_cycle
    elif facts.machine == "x86_64" and facts.vector_bits:
        per_cycle = facts.vector_bits // 64 * 2 * X86_FMA_UNITS
    else:
        per_cycle = OTHER_FLOP_PER_CYCLE
    core, every = _arithmetic(facts.cores_online, per_cycle, clock)
    if table and table.flop_per_cycle and table.base_hz:
        nominal = facts.cores_online * per_cycle * table.base_hz
        source = f"{MARGIN} × Rpeak nominal of {facts.cores_online} cores"
        every = min(every, Ceiling(MARGIN * nominal, source))
    return core, every


def _arithmetic(cores: int, per_cycle: int, clock: Ceiling) -> tuple[Ceiling, Ceiling]:
    """Return the arithmetic of one core and of all `cores`."""
    core = Ceiling(
        MARGIN * per_cycle * clock.value, f"{MARGIN} × {per_cycle} flop/cycle × {clock.source}"
    )
    return core, Ceiling(cores * core.value, f"{cores} cores × {core.source}")


def _memory(facts: NodeFacts, table: ProcessorLimits | None) -> Ceiling | None:
    """Return the bandwidth of the memory; None if its channels are not known."""
    if table is None or table.channels is None or not facts.dram:
        return None
    speeds = [max(dimm.rated or 0, dimm.configured or 0) for dimm in facts.dram]
    if not all(speeds):
        return None
    channels = len(speeds)
    # A cpuset can hide a whole socket, whose memory can be used nevertheless.
    if len(facts.cpus) == facts.cpus_online:
        channels = min(channels, table.channels * facts.sockets)
    fast = (table.fast_memory_bytes_per_s or 0.0) * facts.sockets
    return _modules(channels, max(speeds), fast)


def _modules(channels: int, mt_per_s: int, fast: float, margin: float = MARGIN) -> Ceiling:
    """Return the ceiling of the memory; `fast` is the rate of that in the packages, byte/s."""
    source = f"{channels} channels × 8 B × {mt_per_s} MT/s"
    if fast:
        source = f"({source} + in the package {fast / 1e9:g} GB/s)"
    return Ceiling(margin * (channels * 8e6 * mt_per_s + fast), f"{margin} × {source}")


def _link(facts: NodeFacts) -> Ceiling:
    """Return the sum of all links; a link without a number, or no fabric, gives the universal one.

    An interconnect that sysfs does not have cannot be excluded if there is neither a port nor an
    interface of Slingshot.
    """
    active = [port for port in facts.ports if (port.state or "").endswith("ACTIVE")]
    rates = [port_bound(port.rate or "", port.layer) for port in active]
    up = [nic for nic in facts.nics if nic.driver and nic.state != "down"]
    nics = [nic.megabits for nic in up]
    fabric = active or any(nic.driver == SLINGSHOT_DRIVER for nic in up)
    if facts.virtual or not fabric or None in rates or None in nics:
        return _ANY_LINK
    ports = sum(rate for rate in rates if rate is not None)
    ethernet = sum(megabits * 1e6 / 8 for megabits in nics if megabits is not None)
    source = f"({len(active)} ports with {ports / 1e9:g} GB/s"
    source += f" + Ethernet {ethernet / 1e9:g} GB/s)" if ethernet else ")"
    return _links(ports + ethernet, source)


def _links(rate: float, source: str) -> Ceiling:
    """Return the ceiling of links with the `rate` of one direction, byte/s."""
    return Ceiling(NOMINAL * DIRECTIONS * rate, f"{NOMINAL} × {DIRECTIONS} directions × {source}")


def stated_ceilings(node: StatedNode) -> Ceilings:
    """Return the ceilings of a node that was not probed; those that nothing states are universal.

    They are those of its parts, by the same sums as those of a probed node.
    """
    row, memory, rails = processor(node.cpu_model), node.memory, node.rails
    changes = {}
    if node.cores is not None:
        changes["cores"] = Ceiling(node.cores, f"{node.cores} cores, stated")
    hertz = (row and row.turbo_hz) or (node.clock_hz and LARGEST_TURBO * node.clock_hz)
    clock = Ceiling(hertz, f"{hertz / 1e9:.3g} GHz, stated") if hertz else None
    if clock and clock.value < HIGHEST_HZ:
        changes["clock"] = clock
    cores = node.cores or (row and row.cores and node.sockets and row.cores * node.sockets)
    per_cycle = node.flop_per_cycle or (row and row.flop_per_cycle)
    if clock and cores and per_cycle:
        each = _arithmetic(cores, per_cycle, clock)
        changes["core_flops"], changes["flops"] = each
        if base := node.clock_hz or (row and row.base_hz):
            nominal = NOMINAL * cores * per_cycle * base
            source = f"{NOMINAL} × Rpeak nominal of {cores} cores, stated"
            changes["flops"] = min(each[1], Ceiling(nominal, source))
    of_row = row and row.channels and node.sockets and row.channels * node.sockets
    modules = memory.channels or memory.modules or of_row
    if modules and (speed := memory.mt_per_s or (row and row.ddr)):
        of_socket = (row and row.fast_memory_bytes_per_s) or 0.0
        fast = memory.fast_bytes_per_s or of_socket * (node.sockets or 1)
        changes["memory"] = _modules(modules, speed, fast, NOMINAL)
        changes["llc_bytes"] = _caches(node, row)
    if rails.bytes_per_s:
        ports = rails.number or 1
        source = f"{ports} ports with {rails.bytes_per_s / 1e9:g} GB/s, stated"
        changes["link"] = _links(ports * rails.bytes_per_s, source)
    return Ceilings(**changes)


def attainable(node: StatedNode, storage: float | None) -> Ceilings:
    """Return the ceilings of a node that no limit can exceed.

    Unlike those of a measured value they have the servers of the scratch directory. The arithmetic
    of accelerators is not known.

    Args:
        storage: the peak rate of the servers of the scratch directory, byte/s.
    """
    found = stated_ceilings(node)
    changes = {"flops": _ANY_FLOPS, "core_flops": _ANY_FLOPS} if node.accelerators else {}
    if storage:
        changes["storage"] = Ceiling(NOMINAL * storage, "stated")
    return replace(found, **changes)


def _caches(node: StatedNode, row: ProcessorLimits | None) -> Ceiling:
    if node.llc_bytes:
        return Ceiling(node.llc_bytes, f"{node.llc_bytes} bytes, stated")
    if row and row.l3_bytes and node.sockets:
        return Ceiling(row.l3_bytes * node.sockets, f"{node.sockets} × {row.l3_bytes} bytes")
    return Ceiling(LARGEST_LLC, "at most 2.5 GiB of caches")


LEAST_SHARE = 0.05
"""Less of the memory in the package is not a cache: firmware and kernel reserve a part."""


@dataclass(frozen=True)
class SideCache:
    """The cache of one node.

    Attributes:
        bytes_per_s: its rate; None if no source states it.
        of_modules: whether it is the memory modules, whose rate their channels state.
    """

    bytes: int
    bytes_per_s: float | None
    source: str
    of_modules: bool = False


def only_in_package(facts: NodeFacts) -> bool:
    """Return whether the memory in the packages of the processors is all that a node has."""
    row = None if facts.virtual else processor(facts.cpu_model)
    shown = sum(domain.memory_bytes for domain in facts.numa) or facts.memory_total_bytes
    return row is not None and row.only_in_package(shown, facts.sockets)


def side_cache(facts: NodeFacts) -> SideCache | None:
    """Return the memory-side cache of a node; None if it has none, or its domains are not known.

    A node with no other memory than that in the package has no cache: the memory is that memory.
    """
    dram = sum(dimm.bytes or 0 for dimm in facts.dram)
    shown = facts.memory_total_bytes - facts.memory_of_domains(cpus=False)
    # As a device or as a domain of its own, persistent memory is not behind a cache.
    if any(dimm.memory == "nvm" for dimm in facts.dimms) and 0 < dram < shown:
        return SideCache(dram, None, "the memory modules before the persistent memory", True)
    row = None if facts.virtual else processor(facts.cpu_model)
    if row is None or row.fast_memory_bytes is None or not facts.numa:
        return None
    size = row.fast_memory_bytes * facts.sockets
    if only_in_package(facts):
        return None
    # In flat mode it is in domains without processors.
    hidden = size - facts.memory_of_domains(cpus=False)
    if hidden < LEAST_SHARE * size:
        return None
    rate = row.side_cache_bytes_per_s
    return SideCache(hidden, rate and rate * facts.sockets, row.source)
