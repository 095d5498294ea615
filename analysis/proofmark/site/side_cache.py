"""Memory that is a cache of the other memory of a node.

A Xeon Phi in cache or hybrid mode, and a Xeon Max in cache mode, show the memory in their package
not at all, or only a part of it. What they do not show is the cache. With Optane persistent memory
in memory mode the other modules are the cache, and the node shows no more than the persistent ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.site.hardware_limits import processor
from proofmark.site.node.facts import NodeFacts

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


def side_cache(facts: NodeFacts) -> SideCache | None:
    """Return the memory-side cache of a node; None if it has none, or its domains are not known.

    A node with no other memory than that in the package has no cache: the memory is that memory.
    """
    dram = sum(dimm.bytes or 0 for dimm in facts.dram)
    if len(facts.dram) < len(facts.dimms) and 0 < dram < facts.memory_total_bytes:
        return SideCache(dram, None, "the memory modules before the persistent memory", True)
    row = None if facts.virtual else processor(facts.cpu_model)
    if row is None or row.fast_memory_bytes is None or not facts.numa:
        return None
    size = row.fast_memory_bytes * facts.sockets
    if sum(domain.memory_bytes for domain in facts.numa) <= (1 + LEAST_SHARE) * size:
        return None
    # In flat mode it is in domains without processors.
    hidden = size - sum(domain.memory_bytes for domain in facts.numa if not domain.cpus)
    if hidden < LEAST_SHARE * size:
        return None
    rate = row.side_cache_bytes_per_s
    return SideCache(hidden, rate and rate * facts.sockets, row.source)
