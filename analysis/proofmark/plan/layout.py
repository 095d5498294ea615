"""Where the ranks of a point go on one partition's nodes, and which memory they are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofmark.common.errors import InputError
from proofmark.plan.placement import Placement, PlacementError, place
from proofmark.site.node.topology import NumaDomain, Topology


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
        used = {
            self.topology.core_of[cpu].index
            for nodes in placement.node_ranges
            for cpus in nodes.cpus
            for cpu in cpus
        }
        return [domain for domain in there if not used.isdisjoint(domain.near)] or there
