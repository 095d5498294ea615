"""Two ranks at a named distance inside a node: the first two such cores of the topology."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from proofmark.plan.placement.request import PlacementRequest, counted
from proofmark.plan.placement.within_node import Layout
from proofmark.site.node.topology import Core


def same_tile(ask: PlacementRequest, ranks: int) -> Layout:
    """Two cores of one level 2 cache."""
    for one, other in combinations(ask.topology.cores, 2):
        if one.tile is not None and one.tile == other.tile:
            return [(one,), (other,)]
    available = f"a node that has such cores: {ask.topology.source} does not"
    raise ask.refuse("two cores of one level 2 cache", available)


def same_socket(ask: PlacementRequest, ranks: int) -> Layout:
    """Two cores of one socket; not of one tile, and of one NUMA domain, where there are such."""

    def preference(pair: tuple[Core, Core]) -> tuple[bool, bool]:
        one, other = pair
        return one.tile is not None and one.tile == other.tile, one.numa != other.numa

    pairs = combinations(ask.topology.cores, 2)
    mates = [(one, other) for one, other in pairs if one.socket == other.socket]
    if not mates:
        available = f"a node that has such cores: {ask.topology.source} does not"
        raise ask.refuse("two cores of one socket", available)
    one, other = min(mates, key=preference)
    return [(one,), (other,)]


def other_socket(ask: PlacementRequest, ranks: int) -> Layout:
    """The first core, and the first core of the nearest other socket."""
    first, *others = _first_cores(ask)
    if not others:
        raise ask.refuse("two sockets", f"a node that has them: {ask.topology.source} has 1")
    hops = ask.topology.socket_hops
    nearest = min(others, key=lambda core: hops.get((first.socket, core.socket), 0))
    return [(first,), (nearest,)]


def hops_away(wanted: int) -> Callable[[PlacementRequest, int], Layout]:
    """Make the placement of two sockets at so many hops, as their NUMA distances tell."""

    def lay(ask: PlacementRequest, ranks: int) -> Layout:
        hops = ask.topology.socket_hops
        for one, other in combinations(_first_cores(ask), 2):
            if hops.get((one.socket, other.socket)) == wanted:
                return [(one,), (other,)]
        known = ", ".join(counted(hop, "hop") for hop in sorted(set(hops.values())))
        available = f"what the NUMA distances of {ask.topology.source} tell: {known or 'none'}"
        raise ask.refuse(f"two sockets {counted(wanted, 'hop')} apart", available)

    return lay


def _first_cores(ask: PlacementRequest) -> list[Core]:
    """The first core of every socket."""
    firsts: dict[int, Core] = {}
    for core in ask.topology.cores:
        firsts.setdefault(core.socket, core)
    return list(firsts.values())
