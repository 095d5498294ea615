"""Computes the placement and the memory of the points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofmark.common.errors import InputError
from proofmark.plan.placement import Placement, PlacementError, PlacementRequest, place
from proofmark.site.node.topology import NumaDomain, Topology


class Layouts:
    """The placements on one topology; points with the same request share one computation."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._placements: dict[tuple[object, ...], Placement | PlacementError] = {}

    @property
    def several_kinds_of_memory(self) -> bool:
        """Whether the node has several kinds of memory, such as DDR and MCDRAM."""
        return len({domain.kind for domain in self.topology.numa_domains}) > 1

    def of(self, point: Mapping[str, Any], counts: Mapping[str, int], file: str) -> Placement:
        """Return the placement of `point`.

        Args:
            point: the values of the axes.
            counts: its numbers of nodes, ranks and threads.
            file: the file of the case, for messages.

        Raises:
            BadInput: there is no such placement, or a count is not possible.
            PlacementError: the nodes cannot hold the ranks.
        """
        key = (point["placement"], *counts.values(), point.get("pus_per_core", 1), file)
        if key not in self._placements:
            try:
                self._placements[key] = place(
                    PlacementRequest(
                        self.topology,
                        str(point["placement"]),
                        counts["ranks"],
                        nodes=counts["nodes"],
                        threads=counts["threads"],
                        pus_per_core=int(point.get("pus_per_core", 1)),
                        asked_in=file,
                    )
                )
            except PlacementError as error:
                self._placements[key] = error
        placement = self._placements[key]
        if isinstance(placement, PlacementError):
            raise placement
        return placement

    def memory(self, kind: str, placement: Placement | None, file: str) -> list[NumaDomain]:
        """Return the NUMA domains with memory of `kind` next to the cores of `placement`.

        All domains of the kind are returned if none of them is next to these cores, or if
        `placement` is None.

        Raises:
            PlacementError: the node has no such memory.
        """
        domains = [domain for domain in self.topology.numa_domains if domain.kind == kind]
        if not domains:
            kinds = ", ".join(sorted({domain.kind for domain in self.topology.numa_domains}))
            raise PlacementError(InputError(file, f"memory {kind}", "none in the node", kinds))
        if placement is None:
            return domains
        used = {
            self.topology.core_of[cpu].index
            for nodes in placement.node_ranges
            for cpus in nodes.cpus
            for cpu in cpus
        }
        return [domain for domain in domains if not used.isdisjoint(domain.near)] or domains
