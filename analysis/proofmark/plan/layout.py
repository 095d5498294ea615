"""Computes the placement and the memory of the points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofmark.cases.vocabulary import DOMAIN, RAIL
from proofmark.common.errors import InputError
from proofmark.plan.placement import (
    LackingError,
    Placement,
    PlacementError,
    PlacementRequest,
    place,
)
from proofmark.site.node.topology import NumaDomain, Topology


class Layouts:
    """The placements on one topology; points with the same request share one computation."""

    def __init__(self, topology: Topology, rails: Mapping[str, int | None] | None = None) -> None:
        self.topology, self.rails = topology, rails or {}
        self._placements: dict[tuple[object, ...], Placement | PlacementError] = {}

    @property
    def several_kinds_of_memory(self) -> bool:
        """Whether the node has several kinds of memory, such as DDR and MCDRAM."""
        return len({domain.kind for domain in self.topology.numa_domains}) > 1

    @property
    def parts(self) -> list[str]:
        """The NUMA domains with cores, and the sockets if they are other parts.

        It is empty for a node of one domain and one socket.
        """
        domains = [each.os_index for each in self.topology.numa_domains if each.cores]
        sockets = sorted({core.socket for core in self.topology.cores})
        parts = [f"numa-{number}" for number in domains] if len(domains) > 1 else []
        if len(sockets) > 1 and len(sockets) != len(domains):
            parts += [f"socket-{number}" for number in sockets]
        return parts

    def of_part(self, point: Mapping[str, Any]) -> Topology:
        """Return the part of the node that a point uses: a domain, a socket, or that of its rail.

        The whole node is returned if the point has no part, or if the domain of a rail is not known
        or has no cores.
        """
        part = str(point.get(DOMAIN, ""))
        if (near := self.rails.get(str(point.get(RAIL)))) is not None:
            part = f"numa-{near}"
        unused: set[int] = set()
        for core in self.topology.cores:
            if part not in (f"numa-{core.numa}", f"socket-{core.socket}"):
                unused.update(core.pus)
        left = self.topology.without(unused) if part else self.topology
        return left if left.cores else self.topology

    def _adapter(self, point: Mapping[str, Any]) -> int | None:
        """Return the domain of the rail of a point, or of the first rail whose domain is known."""
        known = [each for each in self.rails.values() if each is not None]
        of_rail = self.rails.get(str(point.get(RAIL)))
        return of_rail if of_rail is not None else next(iter(known), None)

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
        part = (point.get(DOMAIN), point.get(RAIL))
        key = (point["placement"], *counts.values(), point.get("pus_per_core", 1), *part, file)
        if key not in self._placements:
            try:
                self._placements[key] = place(
                    PlacementRequest(
                        self.of_part(point),
                        str(point["placement"]),
                        counts["ranks"],
                        nodes=counts["nodes"],
                        threads=counts["threads"],
                        pus_per_core=int(point.get("pus_per_core", 1)),
                        adapter=self._adapter(point),
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
            LackingError: the node has no such memory.
        """
        domains = [domain for domain in self.topology.numa_domains if domain.kind == kind]
        if not domains:
            kinds = ", ".join(sorted({domain.kind for domain in self.topology.numa_domains}))
            raise LackingError(InputError(file, f"memory {kind}", "none in the node", kinds))
        if placement is None:
            return domains
        used = set()
        for nodes in placement.node_ranges:
            for cpus in nodes.cpus:
                used |= {self.topology.core_of[cpu].index for cpu in cpus}
        return [domain for domain in domains if not used.isdisjoint(domain.near)] or domains
