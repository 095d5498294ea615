"""The ceilings of a node that was not probed, from the hardware that the inventory states."""

from __future__ import annotations

from dataclasses import replace

from proofmark.site.ceilings import (
    DIRECTIONS,
    LARGEST_TURBO,
    MARGIN,
    UNIVERSAL,
    Ceiling,
    Ceilings,
)
from proofmark.site.hardware import Hardware
from proofmark.site.hardware_limits import ProcessorLimits, processor
from proofmark.site.installed_parts import declared_parts
from proofmark.site.partition import Partition

LARGEST_LLC = 2.5 * 2**30
"""Above the caches of the last level of any node (two processors with 1152 MiB)."""


def declared_ceilings(partition: Partition) -> Ceilings:
    """Return the ceilings of a node of `partition`; those that nothing states are universal."""
    rated, hardware = partition.rated_hardware, partition.hardware
    declared = hardware if isinstance(hardware, Hardware) else None
    row = processor(declared.cpu_model) if declared else None
    parts = declared_parts(partition.parts, partition.rated)
    changes: dict[str, Ceiling] = {}
    if parts.cores is not None:
        changes["cores"] = Ceiling(parts.cores, f"{parts.cores} cores, declared")
    clock = (row and row.turbo_hz) or (rated.clock_hz and LARGEST_TURBO * rated.clock_hz)
    if clock and clock < UNIVERSAL.clock.value:
        changes["clock"] = Ceiling(clock, f"{clock / 1e9:.3g} GHz, declared")
    if clock and parts.cores and rated.flop_per_cycle:
        source = f"{rated.flop_per_cycle} flop/cycle × {clock / 1e9:.3g} GHz, declared"
        core = MARGIN * rated.flop_per_cycle * clock
        changes["core_flops"] = Ceiling(core, f"{MARGIN} × {source}")
        changes["flops"] = Ceiling(parts.cores * core, f"{MARGIN} × {parts.cores} cores × {source}")
    if parts.dimms and parts.dimm_mt_per_s:
        fast = rated.fast_memory_bytes_per_s or (row and row.fast_memory_bytes_per_s) or 0.0
        rate = 8e6 * parts.dimms * parts.dimm_mt_per_s + fast * (parts.sockets or 1)
        source = f"{MARGIN} × {parts.dimms} modules × 8 B × {parts.dimm_mt_per_s} MT/s, declared"
        changes["memory"] = Ceiling(MARGIN * rate, source)
        changes["llc_bytes"] = _caches(declared, row, parts.sockets)
    link = sum(parts.rails or ()) * 1e9 / 8 or parts.link_bytes_per_s
    if link:
        source = f"{MARGIN} × {DIRECTIONS} directions × {link / 1e9:g} GB/s, declared"
        changes["link"] = Ceiling(MARGIN * DIRECTIONS * link, source)
    return replace(UNIVERSAL, **changes)


def _caches(hardware: Hardware | None, row: ProcessorLimits | None, sockets: int | None) -> Ceiling:
    if hardware and hardware.llc_bytes:
        return Ceiling(hardware.llc_bytes, f"{hardware.llc_bytes} bytes, declared")
    if row and row.l3_bytes and sockets:
        return Ceiling(row.l3_bytes * sockets, f"{sockets} × {row.l3_bytes} bytes")
    return Ceiling(LARGEST_LLC, "at most 2.5 GiB of caches")
