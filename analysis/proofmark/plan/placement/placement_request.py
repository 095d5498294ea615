"""The request for a placement: the ranks, the room of a node, and the error if it is too small."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.common.errors import BadInput, InputError
from proofmark.site.node.topology import Topology


class PlacementError(BadInput):
    """The nodes cannot hold the requested ranks; other nodes may."""


class LackingError(PlacementError):
    """The nodes or the file system lack what the value of one axis asks for."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """Ranks and threads to place on nodes of one topology.

    Attributes:
        topology: the topology of each node.
        name: the name of the placement, one of `proofmark.plan.placement.RULES`.
        ranks: number of ranks on all nodes together.
        nodes: number of nodes.
        threads: number of threads of each rank.
        pus_per_core: number of hardware threads of a core that may be used. The second one is used
            only if there are more threads than cores.
        oversubscribe: whether threads may share hardware threads if there are too few of them.
        adapter: the NUMA domain of the adapter through which messages leave a node; None if it is
            not known.
        asked_in: the file or option with the request, for messages.
    """

    topology: Topology
    name: str
    ranks: int
    nodes: int = 1
    threads: int = 1
    pus_per_core: int = 1
    oversubscribe: bool = False
    adapter: int | None = None
    asked_in: str = "plan"

    def room(self, cores: int) -> int:
        """Return the number of ranks that `cores` cores hold.

        Ranks share a core only if one core has hardware threads for several of them.
        """
        if self.threads >= self.pus_per_core:
            return cores // -(-self.threads // self.pus_per_core)
        return cores * (self.pus_per_core // self.threads)

    @property
    def room_of_node(self) -> int:
        """The number of ranks that a node holds."""
        return self.room(len(self.topology.cores))

    def of_threads(self, ranks: int) -> str:
        """Return `ranks` and the threads of each as text."""
        return f"{counted(ranks, 'rank')} × {counted(self.threads, 'thread')}"

    def limit(self, cores: int) -> str:
        """Return the most that `cores` cores hold as text: ranks, or threads if no rank fits."""
        if self.room(cores):
            return f"at most {self.of_threads(self.room(cores))}"
        return f"ranks of at most {counted(cores * self.pus_per_core, 'thread')}"

    def error(self, asked: str, available: str) -> PlacementError:
        """Return the error that this placement is not possible.

        Args:
            asked: what was requested.
            available: what the nodes can hold.
        """
        key = f"placement {self.name}"
        return PlacementError(InputError(self.asked_in, key, f"a request for {asked}", available))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 rank, 2 ranks."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
