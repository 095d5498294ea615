"""Where the ranks of a point go on one partition's nodes, and which memory they are bound to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from proofmark.common.errors import InputError
from proofmark.plan.placement import Placement, PlacementError, place
from proofmark.site.node.topology import NumaDomain, Topology

RankCpus = tuple[int, tuple[int, ...]]
"""One rank: its node's index in the step's nodes, and its CPUs in the order of its threads."""


def _fold(ranks: Sequence[RankCpus]) -> list[list[Any]]:
    """Write consecutive nodes that are laid out alike as ``[first, last, [CPUs of each rank]]``."""
    by_node = [(node, [rank[1] for rank in own]) for node, own in groupby(ranks, lambda r: r[0])]
    entries: list[list[Any]] = []
    # Consecutive nodes have a constant difference between number and place in the list.
    for _, group in groupby(enumerate(by_node), lambda at: (at[1][0] - at[0], at[1][1])):
        alike = [node for _, node in group]
        (first, seats), (last, _) = alike[0], alike[-1]
        if first < last:
            entries.append([first, last, seats])
        else:
            entries += [[first, cpus] for cpus in seats]
    return entries


def _unfold(entries: Any) -> Any:
    if not isinstance(entries, list):
        return entries
    ranks: list[Any] = []
    for entry in entries:
        if len(entry) == 3:
            first, last, seats = entry
            ranks += [(node, cpus) for node in range(first, last + 1) for cpus in seats]
        else:
            ranks.append(entry)
    return ranks


RankCpusList = Annotated[
    list[RankCpus], BeforeValidator(_unfold), PlainSerializer(_fold, when_used="json")
]
"""One entry a rank; in JSON like nodes stand together."""


class Layouts:
    """The layouts of one topology; each is computed once, however many points share it."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._known: dict[tuple[object, ...], Placement | PlacementError] = {}

    def of(self, point: Mapping[str, Any], counts: Mapping[str, int], file: str) -> Placement:
        """Lay the ranks of `point`; `counts` are its nodes, ranks and threads.

        Raises:
            BadInput: no such placement or senseless counts; `PlacementError`: not on these nodes.
        """
        key = (point["placement"], *counts.values(), point.get("pus_per_core", 1), file)
        if key not in self._known:
            try:
                self._known[key] = place(
                    self.topology,
                    str(point["placement"]),
                    counts["ranks"],
                    nodes=counts["nodes"],
                    threads=counts["threads"],
                    pus_per_core=int(point.get("pus_per_core", 1)),
                    asked_in=file,
                )
            except PlacementError as refused:
                self._known[key] = refused
        found = self._known[key]
        if isinstance(found, PlacementError):
            raise found
        return found

    def memory(self, kind: str, placement: Placement | None, file: str) -> list[NumaDomain]:
        """Return the domains of memory of `kind` next to the cores of `placement`.

        Memory that is next to no core of it counts only where none of that kind is. Without a
        placement all domains of the kind are meant.

        Raises:
            PlacementError: the node has no such memory.
        """
        there = [domain for domain in self.topology.numa_domains if domain.kind == kind]
        if not there:
            kinds = ", ".join(sorted({domain.kind for domain in self.topology.numa_domains}))
            raise PlacementError(InputError(file, f"memory {kind}", "none in the node", kinds))
        if placement is None:
            return there
        seats = [seat for stretch in placement.stretches for seat in stretch.seats]
        used = {core.index for seat in seats for core in seat.cores}
        return [domain for domain in there if not used.isdisjoint(domain.near)] or there


def ranks_of(placement: Placement) -> list[RankCpus]:
    """Return every rank's node and CPUs."""
    return [(rank.node, rank.pus) for rank in placement.ranks]
