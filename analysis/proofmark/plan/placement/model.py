"""What a placement is once it is computed: for every rank its node, its hardware threads, cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from proofmark.site.node.topology import Core


@dataclass(frozen=True, slots=True)
class CpuSlot:
    """One rank's share of a node: a hardware thread (os index) and its core for each thread."""

    pus: tuple[int, ...]
    cores: tuple[Core, ...]


@dataclass(frozen=True, slots=True)
class NodeRange:
    """Consecutive nodes that are laid out alike.

    Attributes:
        nodes: how many.
        seats: of each of these nodes, one a rank, in rank order; empty for idle nodes.
    """

    nodes: int
    seats: tuple[CpuSlot, ...]

    @property
    def ranks(self) -> int:
        """The ranks on all its nodes."""
        return self.nodes * len(self.seats)


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where one rank goes; each tuple has one entry a thread.

    Attributes:
        rank: from 0.
        node: from 0, among the nodes that were asked for.
        pus: os indexes of hardware threads.
        cores: the cores that these belong to.
    """

    rank: int
    node: int
    pus: tuple[int, ...]
    cores: tuple[Core, ...]

    @property
    def sockets(self) -> tuple[int, ...]:
        """The logical index of each thread's socket."""
        return tuple(core.socket for core in self.cores)

    @property
    def numa(self) -> tuple[int, ...]:
        """The os index of each thread's domain of main memory."""
        return tuple(core.numa for core in self.cores)

    @property
    def tiles(self) -> tuple[int | None, ...]:
        """The logical index of each thread's level 2 cache, None where the topology has none."""
        return tuple(core.tile for core in self.cores)


@dataclass(frozen=True, slots=True)
class RankPlacements(Sequence[RankPlace]):
    """Every rank's place, made when it is looked at: thousands of like nodes cost no memory."""

    stretches: tuple[NodeRange, ...]

    def __len__(self) -> int:
        return sum(stretch.ranks for stretch in self.stretches)

    def __iter__(self) -> Iterator[RankPlace]:
        rank = 0
        nodes = (stretch for stretch in self.stretches for _ in range(stretch.nodes))
        for node, stretch in enumerate(nodes):
            for seat in stretch.seats:
                yield RankPlace(rank, node, seat.pus, seat.cores)
                rank += 1

    @overload
    def __getitem__(self, rank: int) -> RankPlace: ...

    @overload
    def __getitem__(self, rank: slice) -> tuple[RankPlace, ...]: ...

    def __getitem__(self, rank: int | slice) -> RankPlace | tuple[RankPlace, ...]:
        if isinstance(rank, slice):
            return tuple(self[each] for each in range(*rank.indices(len(self))))
        wanted = rank if rank >= 0 else rank + len(self)
        before = node = 0
        for stretch in self.stretches:
            if before <= wanted < before + stretch.ranks:
                further, seat = divmod(wanted - before, len(stretch.seats))
                chosen = stretch.seats[seat]
                return RankPlace(wanted, node + further, chosen.pus, chosen.cores)
            before += stretch.ranks
            node += stretch.nodes
        raise IndexError(f"rank {rank} of {len(self)}")


@dataclass(frozen=True, slots=True)
class Placement:
    """Ranks laid on nodes.

    Attributes:
        name: the placement's name as it was asked for.
        threads: threads of each rank.
        stretches: the nodes in order, like ones together.
    """

    name: str
    threads: int
    stretches: tuple[NodeRange, ...]

    @property
    def ranks(self) -> RankPlacements:
        """Every rank's place, in rank order."""
        return RankPlacements(self.stretches)

    @property
    def nodes(self) -> int:
        """The nodes that were asked for; some may be idle."""
        return sum(stretch.nodes for stretch in self.stretches)
