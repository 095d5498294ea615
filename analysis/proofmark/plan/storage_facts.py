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
)
from proofmark.site.partition import Partition

SERVER_CACHES = "server_cache_bytes"
"""Name in expressions: the memory of all storage servers together; 0 is not known."""
UNKNOWN_RATE = 200e6
"""The rate in byte/s at which a node is expected to write: a disk of a small virtual machine."""
UNKNOWN_CLIENT_PEAK, UNKNOWN_PEAK = 5e9, 1e12
"""The rates in byte/s that a node, and all servers together, are assumed not to exceed. Where they
do, a file has its size before the end of the time, and the rate is still that of the file."""
RATE_MARGIN = 1.5
"""The factor by which nodes and servers may write faster than the rate that is stated for them."""


def storage_rates(partition: Partition) -> dict[str, float]:
    """Return the rates of the scratch in byte/s, by their name in expressions.

    ``client_bytes_per_s`` is what one node is expected to write. ``client_peak`` is the most that
    one node writes, ``servers_peak`` the most that all nodes write together.
    """
    client, servers = partition.scratch.client_bytes_per_s, partition.scratch.bytes_per_s
    peak = RATE_MARGIN * client if client else UNKNOWN_CLIENT_PEAK
    return {
        "client_bytes_per_s": client or UNKNOWN_RATE,
        "client_peak": min(partition.fabric.link_bytes_per_s, peak),
        "servers_peak": RATE_MARGIN * servers if servers else UNKNOWN_PEAK,
    }


HPL_RATE = "likely_flops"
"""Name in expressions: HPL of a node in flop/s, before the first measurement."""


def rate_symbols(partition: Partition, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rates by which the times of steps are estimated, by their name in expressions."""
    facts, cores = partition.facts, machine["cores"]
    measured = facts.get(CORE_FLOPS)
    rated = machine.get(HPL_RATE, LIKELY_FLOPS * cores)
    return {
        HPL_RATE: LIKELY_SHARE * float(measured) * cores if measured else rated,
    }


def assumed_rates(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumptions on rates by which the times of `cases` are estimated."""
    used = set()
    for case in cases:
        used.update(case.used_names())
    node, assumed = partition.node, {}
    rated = node.topology and node.clock_hz and node.flop_per_cycle
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
        **storage_rates(partition),
    }


def assumed_storage(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumptions on the scratch on which the expressions of `cases` depend."""
    used = set().union(*(case.used_names() for case in cases))
    return {
        f"scratch.{key}": f"not declared; {text}"
        for (name, key), text in _ASSUMED.items()
        if name in used and getattr(partition.scratch, key) is None
    }


_ASSUMED = {
    (SERVER_CACHES, SERVER_CACHES): "files of twice the memory of the clients, or what they write "
    "within the time of a measurement, are assumed to exceed the caches of the servers",
    ("client_bytes_per_s", "client_bytes_per_s"): "run times are estimated with "
    f"{UNKNOWN_RATE / 1e6:g} MB/s for each node",
    ("servers_peak", "bytes_per_s"): f"the space is what {UNKNOWN_PEAK / 1e12:g} TB/s write within "
    "the time of a measurement",
}
"""What is assumed, by the name in expressions and the key of the scratch."""
