"""The number and the sizes of the NUMA domains of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofmark.site.node.topology import Topology

MEMORY_TOLERANCE = 0.15
"""A kernel shows a little less memory than is installed. Modes differ by a third or more."""


@dataclass(frozen=True)
class NumaShape:
    """The sizes of NUMA domains, without their numbers.

    Attributes:
        with_cpus: number of hardware threads and bytes of each domain that has threads, sorted.
        without: bytes of each domain without threads (MCDRAM), sorted.
    """

    with_cpus: tuple[tuple[int, int], ...]
    without: tuple[int, ...]

    def __str__(self) -> str:
        """Return the sizes as text: ``2 × 48 GiB with cpus, 2 × 8 GiB without``."""
        main = [size for _, size in self.with_cpus]
        others = f", {_sizes(self.without)} without" if self.without else ""
        return f"{_sizes(main)} with cpus{others}"


def numa_shape_of_domains(domains: list[tuple[int, int]]) -> NumaShape:
    """Return the shape of `domains`, each as its number of CPUs and its bytes."""
    return NumaShape(
        tuple(sorted(each for each in domains if each[0])),
        tuple(sorted(size for cpus, size in domains if not cpus)),
    )


def numa_shape(topology: Topology) -> NumaShape:
    """Return the shape of the NUMA domains of `topology`."""
    return numa_shape_of_domains(
        [
            (sum(len(topology.cores[core].pus) for core in domain.cores), domain.bytes)
            for domain in topology.numa_domains
        ]
    )


def same_numa_shape(actual: NumaShape, expected: NumaShape) -> bool:
    """Return whether a node has the expected domains; an expected size of 0 bytes is unknown."""
    threads = [cpus for cpus, _ in actual.with_cpus], [cpus for cpus, _ in expected.with_cpus]
    sizes = ([*(size for _, size in each.with_cpus), *each.without] for each in (actual, expected))
    return (
        threads[0] == threads[1]
        and len(actual.without) == len(expected.without)
        and all(map(_near, *sizes))
    )


def _near(actual: int, expected: int) -> bool:
    return not expected or abs(actual - expected) <= MEMORY_TOLERANCE * expected


def _sizes(sizes: Any) -> str:
    gib = [round(size / 2**30) for size in sizes]
    return " + ".join(f"{gib.count(size)} × {size} GiB" for size in dict.fromkeys(gib)) or "none"
