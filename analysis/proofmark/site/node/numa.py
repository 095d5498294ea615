"""The NUMA domains of a node: how many, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofmark.site.node.topology import Topology

MEMORY_TOLERANCE = 0.15
"""A kernel shows a little less memory than there is; modes differ by a third and more."""


@dataclass(frozen=True)
class NumaShape:
    """NUMA domains, whatever their numbers.

    Attributes:
        with_cpus: hardware threads and bytes of each domain that has threads, sorted.
        without: bytes of each domain that has none (MCDRAM), sorted.
    """

    with_cpus: tuple[tuple[int, int], ...]
    without: tuple[int, ...]

    def __str__(self) -> str:
        """Say it in few words: ``2 × 48 GiB with cpus, 2 × 8 GiB without``."""
        main = [size for _, size in self.with_cpus]
        bare = f", {_sizes(self.without)} without" if self.without else ""
        return f"{_sizes(main)} with cpus{bare}"


def numa_shape_of_domains(domains: list[tuple[int, int]]) -> NumaShape:
    """Return the layout of domains, each as its number of CPUs and its bytes."""
    return NumaShape(
        tuple(sorted(each for each in domains if each[0])),
        tuple(sorted(size for cpus, size in domains if not cpus)),
    )


def numa_shape(topology: Topology) -> NumaShape:
    """Return the domains that a declared node has."""
    return numa_shape_of_domains(
        [
            (sum(len(topology.cores[core].pus) for core in domain.cores), domain.bytes)
            for domain in topology.numa_domains
        ]
    )


def same_numa_shape(seen: NumaShape, expected: NumaShape) -> bool:
    """Return whether a node shows these domains; memory of 0 bytes is memory nobody told of."""
    threads = [cpus for cpus, _ in seen.with_cpus], [cpus for cpus, _ in expected.with_cpus]
    sizes = ([*(size for _, size in each.with_cpus), *each.without] for each in (seen, expected))
    return (
        threads[0] == threads[1]
        and len(seen.without) == len(expected.without)
        and all(map(_near, *sizes))
    )


def _near(seen: int, expected: int) -> bool:
    return not expected or abs(seen - expected) <= MEMORY_TOLERANCE * expected


def _sizes(sizes: Any) -> str:
    gib = [round(size / 2**30) for size in sizes]
    return " + ".join(f"{gib.count(size)} × {size} GiB" for size in dict.fromkeys(gib)) or "none"
