"""What the expressions of cases may use of the scratch file system, and of measured rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from proofmark.cases.case import Case
from proofmark.site.file_systems import layout_axes
from proofmark.site.machines import (
    CORE_FLOPS,
    LIKELY_FLOPS,
    LIKELY_SHARE,
    LIKELY_WRITE,
    SCRATCH_RATE,
)
from proofmark.site.partition import Partition

SERVER_CACHES = "server_cache_bytes"
"""Name in expressions: the memory of all storage servers together; 0 is not known."""

HPL_RATE = "likely_flops"
"""Name in expressions: HPL of a node in flop/s, before the first measurement."""


def rate_symbols(partition: Partition, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rates by which the times of steps are estimated, by their name in expressions."""
    facts, cores = partition.facts, machine["cores"]
    measured = facts.get(CORE_FLOPS)
    rated = machine.get(HPL_RATE, LIKELY_FLOPS * cores)
    return {
        SCRATCH_RATE: facts.get(SCRATCH_RATE, LIKELY_WRITE),
        HPL_RATE: LIKELY_SHARE * float(measured) * cores if measured else rated,
    }


def assumed_rates(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumptions on rates by which the times of `cases` are estimated."""
    used = {name for case in cases for name in case.used_names()}
    hardware, assumed = partition.hardware, {}
    rated = hardware != "discovered" and hardware.clock_hz and hardware.flop_per_cycle
    if SCRATCH_RATE in used and SCRATCH_RATE not in partition.facts:
        text = f"not measured; {LIKELY_WRITE / 1e6:g} MB/s of a node"
        assumed[f"facts.{SCRATCH_RATE}"] = text
    if HPL_RATE in used and CORE_FLOPS not in partition.facts:
        share = f"{LIKELY_SHARE:g} of the nominal peak"
        of_core = share if rated else f"{LIKELY_FLOPS / 1e9:g} GFlop/s"
        assumed[f"facts.{CORE_FLOPS}"] = f"not measured; {of_core} of a core"
    return assumed


def storage_symbols(partition: Partition) -> dict[str, Any]:
    """Return the facts of the scratch by their name in expressions.

    ``layout_axes`` are the axes of a layout that its file system can set, ``storage_targets`` the
    indexes of its targets; both are empty if they are not known.
    """
    scratch = partition.scratch
    return {
        "layout_axes": list(layout_axes(scratch.type)),
        "storage_targets": scratch.targets,
        SERVER_CACHES: scratch.server_cache_bytes or 0,
    }


def assumed_caches(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumption on the caches of the servers, if one of `cases` depends on it."""
    known = partition.scratch.server_cache_bytes is not None
    if known or not any(SERVER_CACHES in case.used_names() for case in cases):
        return {}
    return {
        f"scratch.{SERVER_CACHES}": (
            "not declared; files of twice the memory of the clients, or what they write within the "
            "time of a measurement, are assumed to exceed the caches of the servers"
        )
    }
