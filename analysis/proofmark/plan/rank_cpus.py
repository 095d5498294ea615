"""The CPUs of one rank: the one type for planned bindings and for reported ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, repeat
from operator import eq
from typing import Annotated, Any, NamedTuple, overload

from pydantic import PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator

from proofmark.common.input_limits import MAX_NODES


class RankCpus(NamedTuple):
    """The CPUs of one rank, as planned or as the rank reported them.

    Attributes:
        node: index of its node in the nodes of the step, of the measurement or of the report.
        cpus: CPU numbers of the operating system. Planned: one per thread, in thread order.
            Reported: ascending.
    """

    node: int
    cpus: tuple[int, ...]

    def as_reported(self) -> RankCpus:
        """Return them as a rank reports them: each CPU once, ascending."""
        return RankCpus(self.node, tuple(sorted(set(self.cpus))))


@dataclass(frozen=True, slots=True)
class NodeRange:
    """Consecutive nodes with the same CPUs for their ranks.

    Attributes:
        cpus: for each rank of such a node, in rank order, the hardware thread (os index) of each
            thread; empty for idle nodes.
    """

    nodes: int
    cpus: tuple[tuple[int, ...], ...]


class PlacedRanks(Sequence[RankCpus]):
    """The CPUs of every rank, in rank order; `RankCpus.node` counts the nodes from 0.

    A rank is made when it is read: a step on 8,305 nodes has 565,000 of them. It equals each
    sequence of the same ranks.
    """

    __slots__ = ("ranges",)

    def __init__(self, ranges: Sequence[NodeRange]) -> None:
        self.ranges = ranges

    def __len__(self) -> int:
        return sum(each.nodes * len(each.cpus) for each in self.ranges)

    def __iter__(self) -> Iterator[RankCpus]:
        for first, each in ranges_of(self):
            for node in range(first, first + each.nodes):
                yield from map(RankCpus, repeat(node), each.cpus)

    @overload
    def __getitem__(self, place: int) -> RankCpus: ...
    @overload
    def __getitem__(self, place: slice) -> list[RankCpus]: ...
    def __getitem__(self, place: int | slice) -> RankCpus | list[RankCpus]:
        if isinstance(place, slice):
            return [*self][place]
        number = range(len(self))[place]
        return next(islice(self, number, None))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))


def ranges_of(ranks: Sequence[RankCpus]) -> Iterator[tuple[int, NodeRange]]:
    """Yield the nodes of some ranks in rank order, each range with the number of its first node.

    A node may be in several ranges of one node, and is never in several of more.
    """
    if isinstance(ranks, PlacedRanks):
        first = 0
        for each in ranks.ranges:
            yield first, each
            first += each.nodes
        return
    for node, of_node in groupby(ranks, lambda rank: rank.node):
        yield node, NodeRange(1, tuple(rank.cpus for rank in of_node))


def _fold(ranks: Sequence[RankCpus]) -> list[list[Any]]:
    """Write consecutive nodes with the same CPUs as ``[first, last, [CPUs of each rank]]``."""
    alike: list[tuple[int, int, tuple[tuple[int, ...], ...]]] = []
    for first, each in ranges_of(ranks):
        if not each.cpus:
            continue
        before = alike.pop() if alike and alike[-1][1:] == (first - 1, each.cpus) else None
        alike.append((before[0] if before else first, first + each.nodes - 1, each.cpus))
    entries = []
    for first, last, cpus_of_ranks in alike:
        if first < last:
            entries.append([first, last, list(cpus_of_ranks)])
        else:
            entries += [[first, cpus] for cpus in cpus_of_ranks]
    return entries


def _read(entries: Any, validate: ValidatorFunctionWrapHandler) -> Sequence[RankCpus]:
    """Return a list from JSON, unfolded and checked; a list of `RankCpus` is returned as it is."""
    if isinstance(entries, PlacedRanks):
        return entries
    if isinstance(entries, list) and all(type(entry) is RankCpus for entry in entries):
        return entries  # a full-scale step has hundreds of thousands
    ranks: list[RankCpus] = validate(_unfold(entries))
    return ranks


def _unfold(entries: Any) -> Any:
    if not isinstance(entries, list):
        return entries
    ranks = []
    for entry in entries:
        if isinstance(entry, list) and len(entry) == 3:
            first, last, cpus_of_ranks = entry
            typed = isinstance(first, int) and isinstance(last, int)
            typed = typed and isinstance(cpus_of_ranks, list)
            if not typed or not 0 <= last - first < MAX_NODES:
                raise ValueError(f"{str(entry)[:80]}: accepted: [first, last, [CPUs of each rank]]")
            for node in range(first, last + 1):
                ranks += [(node, cpus) for cpus in cpus_of_ranks]
        else:
            ranks.append(entry)
    return ranks


RankCpusList = Annotated[
    Sequence[RankCpus], WrapValidator(_read), PlainSerializer(_fold, when_used="json")
]
"""One entry per rank. JSON has one entry for consecutive nodes with the same CPUs."""
