"""Places two ranks at a named distance inside a node: on the first such cores of the topology."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from proofmark.plan.placement.request import PlacementRequest, counted
from proofmark.plan.placement.within_node import Layout
from proofmark.site.node.topology import Core


def same_tile(request: PlacementRequest, ranks: int) -> Layout:
    """Return two cores that share a level 2 cache."""
    for one, other in combinations(request.topology.cores, 2):
        if one.tile is not None and one.tile == other.tile:
            return [(one,), (other,)]
    available = f"a node that has such cores: {request.topology.source} does not"
    raise request.error("two cores of one level 2 cache", available)


def same_socket(request: PlacementRequest, ranks: int) -> Layout:
    """Return two cores of one socket, if possible of two tiles and of one NUMA domain."""

    def preference(pair: tuple[Core, Core]) -> tuple[bool, bool]:
        one, other = pair
        return one.tile is not None and one.tile == other.tile, one.numa != other.numa

    pairs = combinations(request.topology.cores, 2)
    same = [(one, other) for one, other in pairs if one.socket == other.socket]
    if not same:
        available = f"a node that has such cores: {request.topology.source} does not"
        raise request.error("two cores of one socket", available)
    one, other = min(same, key=preference)
    return [(one,), (other,)]


def other_socket(request: PlacementRequest, ranks: int) -> Layout:
    """Return the first core, and the first core of the nearest other socket."""
    first, *others = _first_cores(request)
    if not others:
        raise request.error("two sockets", f"a node that has them: {request.topology.source} has 1")
    hops = request.topology.socket_hops
    nearest = min(others, key=lambda core: hops.get((first.socket, core.socket), 0))
    return [(first,), (nearest,)]


def hops_away(wanted: int) -> Callable[[PlacementRequest, int], Layout]:
    """Return the rule for two sockets `wanted` hops apart, by their NUMA distances."""

    def lay(request: PlacementRequest, ranks: int) -> Layout:
        hops = request.topology.socket_hops
        for one, other in combinations(_first_cores(request), 2):
            if hops.get((one.socket, other.socket)) == wanted:
                return [(one,), (other,)]
        known = ", ".join(counted(hop, "hop") for hop in sorted(set(hops.values())))
        # This text is part of plans with points left out: another text is another digest.
        available = f"what the NUMA distances of {request.topology.source} tell: {known or 'none'}"
        raise request.error(f"two sockets {counted(wanted, 'hop')} apart", available)

    return lay


def _first_cores(request: PlacementRequest) -> list[Core]:
    """Return the first core of every socket."""
    firsts: dict[int, Core] = {}
    for core in request.topology.cores:
        firsts.setdefault(core.socket, core)
    return list(firsts.values())
