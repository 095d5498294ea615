"""The topology of a node: cores, hardware threads, caches, memory, and NUMA distances.

A *logical* index counts the objects of one type from 0 in hwloc's order. An *os* index is the
operating system's number; os indexes may have gaps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product

from proofmark.cases.vocabulary import MemoryKind
from proofmark.common.errors import bad_input
from proofmark.common.grouping import gathered
from proofmark.site.hardware_limits import ALL_OF_IT, processor
from proofmark.site.node import hwloc

FAST: tuple[MemoryKind, ...] = ("mcdram", "hbm")
"""Memory in the package of the processor."""
KIND_OF: Mapping[str, MemoryKind] = {
    "MCDRAM": "mcdram",
    "HBM": "hbm",
    "CXL-DRAM": "cxl",
    "CXL-NVM": "nvm",
    "NVM": "nvm",
    "GPUMemory": "gpu",
}
"""The kinds by the subtype of a NUMANode (hwloc, "Kinds of object Type and Subtype")."""
MAIN_MEMORY = ("DRAM", "")
XEON_PHI = "Xeon Phi"
"""The name of the only processors with MCDRAM. hwloc's synthetic topologies do not name it."""
MEMORY_TOLERANCE = 0.15
"""A kernel shows a little less memory than is installed. Modes differ by a third or more."""
CACHES = ("L1Cache", "L2Cache", "L3Cache", "L4Cache", "L5Cache")  # data or unified


@dataclass(frozen=True, slots=True)
class Core:
    """One core that may be used.

    Attributes:
        index: its index in `Topology.cores`: the logical index among the cores that may be used.
        pus: os indexes of its hardware threads that may be used, in hwloc's order.
        socket: logical index of its package; 0 if the topology has no packages.
        book: logical index of the group of packages that contains it (a processor book), or None.
        numa: os index of the nearest domain of main memory.
        tile: logical index of its level 2 cache, or None if no such cache contains cores.
        l3: logical index of its level 3 cache, or None.
    """

    index: int
    pus: tuple[int, ...]
    socket: int
    book: int | None
    numa: int
    tile: int | None
    l3: int | None


@dataclass(frozen=True, slots=True)
class NumaDomain:
    """One NUMA domain.

    Attributes:
        os_index: the number that numactl takes.
        bytes: its memory; 0 if the topology has no sizes. A domain of 0 bytes beside others has no
            memory and is left out.
        kind: that of its subtype in the topology. Without a subtype, memory with cores is ``ddr``,
            and that without is ``other``.
        cores: indexes of the cores whose main memory it is; empty for memory without cores.
        near: indexes of the cores that it is local to, also if their main memory is another domain.
    """

    os_index: int
    bytes: int
    kind: MemoryKind
    cores: tuple[int, ...]
    near: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cache:
    """`count` caches of one level, of `bytes` each, each shared by `cores` cores."""

    level: int
    bytes: int
    cores: int
    count: int


@dataclass(frozen=True)
class Topology:
    """One node, without parts that are offline or not allowed for the process.

    Attributes:
        cores: in hwloc's order, in which neighbours share as many caches as possible.
        numa_domains: in the order of their os indexes.
        caches: data and unified caches, in the order of their levels.
        distances: relative latency between two NUMA domains, by their os indexes. 10 is local
            (ACPI's SLIT). Empty if unknown.
        source: the name of the topology in messages.
        unread: the texts of optional numbers that cannot be read, by the name of the number.
    """

    cores: tuple[Core, ...]
    numa_domains: tuple[NumaDomain, ...]
    caches: tuple[Cache, ...] = ()
    distances: Mapping[tuple[int, int], int] = field(default_factory=dict, hash=False)
    source: str = field(default="<xml>", compare=False)
    unread: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def from_xml(cls, text: str, file: str = "<xml>") -> Topology:
        """Return the topology in the XML of hwloc 2; `file` is its name in messages.

        Raises:
            BadInput: it is not the XML of hwloc 2, or has no hardware thread that may be used.
        """
        document = hwloc.parse(text, file)
        cores = _cores(document, file)
        return cls(
            cores=cores,
            numa_domains=_domains(document, cores),
            caches=_caches(document, cores),
            distances=document.latencies,
            source=file,
            unread=document.unread,
        )

    @classmethod
    def from_lstopo(cls, synthetic: str | None = None) -> Topology:
        """Return that of this machine, or of a synthetic notation (``pack:2 core:4 pu:1``)."""
        return cls.from_xml(hwloc.lstopo(synthetic), synthetic or "this machine")

    def of_kernel(self, cpus: Mapping[int, Collection[int]]) -> Topology:
        """Return the topology in which each domain has the cores that Linux states for it.

        hwloc attaches a domain that is no part of a package, as some virtual machines have, to the
        whole node. Then all cores look local to each of these domains.

        Args:
            cpus: the hardware threads in ``node*/cpulist``, by the os index of the domain. Domains
                without memory are left out: their cores keep the nearest domain.
        """
        owners: dict[int, int] = {}
        for domain in self.numa_domains:
            owners |= dict.fromkeys(cpus.get(domain.os_index, ()), domain.os_index)
        cores = [replace(core, numa=owners.get(core.pus[0], core.numa)) for core in self.cores]
        domains = []
        for domain in self.numa_domains:
            own = tuple(core.index for core in cores if core.numa == domain.os_index)
            stated = bool(own) and not set(own).isdisjoint(domain.near)
            kind: MemoryKind = "ddr" if stated and domain.kind == "other" else domain.kind
            if domain.cores and not own and kind == "ddr":
                kind = "other"  # hwloc attaches it to the whole node, and Linux states no cores
            # Memory without cores of its own is local to the cores that hwloc names.
            near = own if stated and domain.os_index in owners.values() else domain.near
            domains.append(replace(domain, cores=own, near=near, kind=kind))
        return replace(self, cores=tuple(cores), numa_domains=tuple(domains))

    def of_processor(self, model: str, *, in_package: bool = False) -> Topology:
        """Return the topology with a kind for each memory that has none.

        Memory without cores is in the package, if a processor with such memory has so much. It is
        the main memory, if it is all that the node has.

        Args:
            model: the name of the processor: a Xeon Phi has MCDRAM.
            in_package: whether the inventory states memory in the package.
        """
        kind: MemoryKind = "mcdram" if XEON_PHI in model else "hbm"
        row = processor(model)
        size = row and row.fast_memory_bytes and row.fast_memory_bytes * self.sockets
        if not (in_package or size or kind == "mcdram"):
            return self
        most = ALL_OF_IT * (size or math.inf)
        main = row is not None and row.only_in_package(self.memory_bytes, self.sockets)
        main = main and all(each.cores for each in self.numa_domains)
        domains = []
        for each in self.numa_domains:
            unnamed = each.kind == "other" and not each.cores and each.bytes <= most
            fast = unnamed or (each.kind == "ddr" and main)
            domains.append(replace(each, kind=kind) if fast else each)
        return replace(self, numa_domains=tuple(domains))

    @property
    def main_memory(self) -> MemoryKind:
        """The kind of the memory of the first core."""
        return next((each.kind for each in self.numa_domains if each.cores), "ddr")

    @property
    def memories(self) -> tuple[MemoryKind, ...]:
        """The kinds of memory that programs on the cores can be bound to, the main memory first."""
        kinds = dict.fromkeys([self.main_memory, *(each.kind for each in self.numa_domains)])
        return tuple(kind for kind in kinds if kind != "gpu")

    def without(self, pus: Collection[int]) -> Topology:
        """Return the topology without the cores of `pus` (os indexes of hardware threads)."""
        kept = [core for core in self.cores if not any(pu in pus for pu in core.pus)]
        place = {core.index: number for number, core in enumerate(kept)}

        def left(indexes: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(place[index] for index in indexes if index in place)

        return replace(
            self,
            cores=tuple(replace(core, index=place[core.index]) for core in kept),
            numa_domains=tuple(
                replace(domain, cores=left(domain.cores), near=left(domain.near))
                for domain in self.numa_domains
            ),
        )

    @property
    def sockets(self) -> int:
        """The number of packages."""
        return len({core.socket for core in self.cores})

    @property
    def threads_per_core(self) -> int:
        """The number of hardware threads of a core: the smallest, if cores differ."""
        return min(len(core.pus) for core in self.cores)

    @cached_property
    def core_of(self) -> Mapping[int, Core]:
        """The core of each hardware thread, by os index."""
        by_pu: dict[int, Core] = {}
        for core in self.cores:
            by_pu |= dict.fromkeys(core.pus, core)
        return by_pu

    @property
    def least_l3_cores(self) -> int | None:
        """The cores of the smallest group that shares a cache of level 3; None without one."""
        shared = Counter(core.l3 for core in self.cores)
        return None if None in shared else min(shared.values())

    @property
    def memory_bytes(self) -> int:
        """The memory of the node, of all kinds together."""
        return sum(domain.bytes for domain in self.numa_domains)

    @property
    def llc_bytes(self) -> int:
        """The bytes of all caches of the last level together; 0 if the topology has no caches."""
        last = max((cache.level for cache in self.caches), default=0)
        return sum(cache.bytes * cache.count for cache in self.caches if cache.level == last)

    @cached_property
    def socket_hops(self) -> Mapping[tuple[int, int], int]:
        """The hops between two sockets: 1 for the shortest latency, 2 for the next longer one.

        Sockets that share a NUMA domain, and sockets of unknown latency, are left out.
        """
        domains = gathered({(core.socket, core.numa) for core in self.cores})
        latency = {}
        for one, other in permutations(domains, 2):
            between = product(domains[one], domains[other])
            known = [self.distances[pair] for pair in between if pair in self.distances]
            if known and {*domains[one]}.isdisjoint(domains[other]):
                latency[one, other] = min(known)
        levels = sorted(set(latency.values()))
        return {pair: levels.index(value) + 1 for pair, value in latency.items()}


def _cores(document: hwloc.Document, file: str) -> tuple[Core, ...]:
    threads = gathered(
        # Some virtual machines have hardware threads without cores: each counts as a core.
        (pu.over("Core") or pu, pu.os_index)
        for pu in document.of("PU")
        if document.allowed_cpus >> pu.os_index & 1
    )
    memories = _usable_memories(document)
    if not threads or not memories:
        missing = "NUMA node" if threads else "hardware thread"
        raise bad_input(file, "", f"no {missing} that may be used", hwloc.WRITTEN_BY)
    nearest = _nearest_memories(threads, memories, document)
    cores = []
    for index, (item, pus) in enumerate(threads.items()):
        package, tile, l3 = item.over("Package"), item.over("L2Cache"), item.over("L3Cache")
        book = package and package.over("Group")
        cores.append(
            Core(
                index=index,
                pus=tuple(pus),
                socket=package.index if package else 0,
                book=book.index if book else None,
                numa=nearest[item],
                tile=tile.index if tile else None,
                l3=l3.index if l3 else None,
            )
        )
    return tuple(cores)


def _usable_memories(document: hwloc.Document) -> list[hwloc.Item]:
    nodes = document.of("NUMANode")
    allowed = [node for node in nodes if document.allowed_nodes >> node.os_index & 1]
    return [node for node in allowed if node.size] or allowed


def _nearest_memories(
    cores: Iterable[hwloc.Item], memories: Sequence[hwloc.Item], document: hwloc.Document
) -> dict[hwloc.Item, int]:
    """Return the os index of the main memory of each core.

    Main memory comes before other kinds, then the nearest, then the largest. The order of os
    indexes is not used: firmware may count MCDRAM before, between or after the DDR. The cores of a
    part without memory get the same domain: the one with the lowest latency. If no latency is
    known, it is a domain in the same package, and of these the one with the fewest cores.
    """
    chosen = {}
    alone: dict[hwloc.Item, list[hwloc.Item]] = {}
    cores = [*cores]
    shared = _of_whole_node(memories)
    for place, core in enumerate(cores):
        if shared:
            chosen[core] = shared[place * len(shared) // len(cores)]
        elif near := [node for node in memories if node.cpus & core.cpus]:
            chosen[core] = min(near, key=_main_and_near).os_index
        else:
            alone.setdefault(_without_memory(core, memories), []).append(core)
    held = Counter(chosen.values())
    for of_part in alone.values():
        first = of_part[0]
        nearest = min(
            memories, key=lambda node: (*_distance(first, node, document), held[node.os_index])
        )
        held[nearest.os_index] += len(of_part)
        chosen |= dict.fromkeys(of_part, nearest.os_index)
    return chosen


def _of_whole_node(memories: Sequence[hwloc.Item]) -> list[int]:
    """Return the main memories that hwloc attaches to the whole node, if they are equal parts.

    It does so if the cores of a domain are in several packages, or if no package has it. Which
    cores a domain has is then only known to Linux (`Topology.of_kernel`).
    """
    main = [node for node in memories if node.subtype in MAIN_MEMORY]
    if any(above.type != "Machine" for node in main for above in node.above):
        return []
    sizes = sorted(node.size for node in main)
    alike = len({node.cpus for node in main}) == 1 and _near(sizes[0], sizes[-1])
    return sorted(node.os_index for node in main) if alike and len(main) > 1 else []


def _without_memory(core: hwloc.Item, memories: Sequence[hwloc.Item]) -> hwloc.Item:
    """Return the largest part around `core` that has no memory: a die, a cache or the core."""
    part = core
    for above in core.above:
        if any(node.cpus & above.cpus for node in memories):
            break
        part = above
    return part


def _distance(
    core: hwloc.Item, node: hwloc.Item, document: hwloc.Document
) -> tuple[bool, float, bool]:
    """Return a key that sorts memories by their distance from `core`.

    Main memory is first, then the lowest latency, then the package of the core.
    """
    own = [each.os_index for each in document.of("NUMANode") if each.cpus & core.cpus]
    latencies = [document.latencies.get((each, node.os_index), math.inf) for each in own]
    elsewhere = node.over("Package") is not core.over("Package")
    return node.subtype not in MAIN_MEMORY, min(latencies, default=math.inf), elsewhere


def _main_and_near(node: hwloc.Item) -> tuple[bool, int, bool, int]:
    named = node.subtype == "DRAM"
    return node.subtype not in MAIN_MEMORY, node.cpus.bit_count(), not named, -node.size


def _domains(document: hwloc.Document, cores: tuple[Core, ...]) -> tuple[NumaDomain, ...]:
    nodes = sorted(_usable_memories(document), key=lambda node: node.os_index)
    domains = []
    for node in nodes:
        indexes = tuple(core.index for core in cores if core.numa == node.os_index)
        near = [core for core in cores if node.cpus >> core.pus[0] & 1]
        if indexes and _of_whole_node(nodes):
            near = [core for core in near if core.index in indexes]
        kind = _kind(node.subtype, has_cores=bool(indexes))
        near_indexes = tuple(core.index for core in near)
        domains.append(NumaDomain(node.os_index, node.size, kind, indexes, near_indexes))
    return tuple(domains)


def _kind(subtype: str, *, has_cores: bool) -> MemoryKind:
    """Return the kind that the topology names; else main memory is that of cores."""
    if subtype in MAIN_MEMORY:
        return "ddr" if subtype == "DRAM" or has_cores else "other"
    return KIND_OF.get(subtype, "other")


def _caches(document: hwloc.Document, cores: tuple[Core, ...]) -> tuple[Cache, ...]:
    counted: Counter[tuple[int, int, int]] = Counter()
    masks = [sum(1 << pu for pu in core.pus) for core in cores]
    for cache in document.of(*CACHES):
        sharing = sum(bool(cache.cpus & mask) for mask in masks)
        if sharing:
            counted[int(cache.type[1]), cache.size, sharing] += 1
    return tuple(Cache(*like, count) for like, count in sorted(counted.items()))


class NumaShape(tuple[tuple[int, int], ...]):
    """The hardware threads and the bytes of each NUMA domain, sorted; MCDRAM has no threads."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return it as text: ``2 × 48 GiB with 20 CPUs, 2 × 8 GiB with no CPUs``."""
        alike = Counter((threads, round(size / 2**30)) for threads, size in reversed(self))
        return ", ".join(
            f"{number} × {gib} GiB with {threads or 'no'} CPUs"
            for (threads, gib), number in alike.items()
        )


def numa_shape_of_domains(domains: list[tuple[int, int]]) -> NumaShape:
    """Return the shape of domains. One of 0 bytes beside others is left out, as in a topology."""
    return NumaShape(sorted([each for each in domains if each[1]] or domains))


def numa_shape(topology: Topology) -> NumaShape:
    """Return the shape of the NUMA domains of `topology`, as Linux states them."""
    domains = []
    for domain in topology.numa_domains:
        cores = domain.cores and domain.near  # not those of a domain without memory
        domains.append((sum(len(topology.cores[core].pus) for core in cores), domain.bytes))
    return numa_shape_of_domains(domains)


def same_numa_shape(actual: NumaShape, expected: NumaShape) -> bool:
    """Return whether a node has the expected domains; an expected size of 0 bytes is unknown."""
    return [threads for threads, _ in actual] == [threads for threads, _ in expected] and all(
        _near(own, other) for (_, own), (_, other) in zip(actual, expected, strict=True)
    )


def _near(actual: int, expected: int) -> bool:
    return not expected or abs(actual - expected) <= MEMORY_TOLERANCE * expected
