"""What is asked of a placement, what the node has room for, and how a refusal reads."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.common.errors import BadInput, InputError
from proofmark.site.node.topology import Topology


class PlacementError(BadInput):
    """The nodes cannot hold what is asked for; others may."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """Ranks × threads to lay on like nodes.

    Attributes:
        topology: of each node.
        name: of the placement.
        ranks: on all the nodes.
        nodes: to lay them on.
        threads: of each rank.
        pus_per_core: hardware threads of a core that count as room.
        oversubscribe: whether ranks may share hardware threads when there is no room left.
        asked_in: the file or option that asks, for messages.
    """

    topology: Topology
    name: str
    ranks: int
    nodes: int
    threads: int
    pus_per_core: int
    oversubscribe: bool
    asked_in: str

    def room(self, cores: int) -> int:
        """Ranks that so many cores hold when no rank shares a core with others unless it must."""
        if self.threads >= self.pus_per_core:
            return cores // -(-self.threads // self.pus_per_core)
        return cores * (self.pus_per_core // self.threads)

    @property
    def room_of_node(self) -> int:
        """Ranks that a node holds."""
        return self.room(len(self.topology.cores))

    def of_threads(self, ranks: int) -> str:
        """Say how many ranks of how many threads."""
        return f"{counted(ranks, 'rank')} × {counted(self.threads, 'thread')}"

    def limit(self, cores: int) -> str:
        """Say what so many cores hold at most: of such ranks, or if not even one, of threads."""
        if self.room(cores):
            return f"at most {self.of_threads(self.room(cores))}"
        return f"ranks of at most {counted(cores * self.pus_per_core, 'thread')}"

    def refuse(self, asked: str, available: str) -> PlacementError:
        """The error that this placement cannot be had: what was asked for, what there is."""
        key = f"placement {self.name}"
        return PlacementError(InputError(self.asked_in, key, f"a request for {asked}", available))


def counted(number: int, noun: str) -> str:
    """Put a number before its noun: 1 rank, 2 ranks."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
