"""Distributes ranks over nodes. Each node gets ranks of consecutive numbers.

Each function returns ``(nodes, ranks per node)`` for consecutive nodes with as many ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from proofmark.plan.placement.placement_request import PlacementRequest, counted
from proofmark.plan.placement.within_node import Layout
from proofmark.site.node.topology import Core

Shares = list[tuple[int, int]]


def balanced(request: PlacementRequest) -> Shares:
    """Give every node the same number of ranks; a remainder goes to the first nodes, one each."""
    each, more = divmod(request.ranks, request.nodes)
    _check_room(request, each + bool(more))
    return [(more, each + 1), (request.nodes - more, each)]


def filled(request: PlacementRequest) -> Shares:
    """Fill each node before the next one is used; the last nodes may stay idle."""
    needed = -(-request.ranks // request.nodes)
    _check_room(request, needed)
    # With oversubscription, a node holds more than its room only if all nodes have to.
    room = max(request.room_of_node, needed)
    full, rest = divmod(request.ranks, room)
    used = full + bool(rest)
    return [(full, room), (used - full, rest), (request.nodes - used, 0)]


def one_pair(request: PlacementRequest) -> Shares:
    """Give one node two ranks of one thread."""
    if (request.ranks, request.threads, request.nodes) != (2, 1, 1):
        raise request.error(_described(request), "2 ranks of 1 thread on 1 node")
    return [(1, 2)]


def pairs_across(request: PlacementRequest) -> Shares:
    """Distribute pairs of ranks over two nodes: of 2n ranks, rank i is paired with rank i + n."""
    if request.nodes != 2 or request.ranks % 2:
        raise request.error(_described(request), "an even number of ranks on 2 nodes")
    return balanced(request)


def _described(request: PlacementRequest) -> str:
    return f"{request.of_threads(request.ranks)} on {counted(request.nodes, 'node')}"


def _check_room(request: PlacementRequest, ranks: int) -> None:
    """Raise `PlacementError` if a node has no room for `ranks` ranks."""
    if ranks <= request.room_of_node or request.oversubscribe:
        return
    cores = counted(len(request.topology.cores), "core")
    threads = counted(request.topology.threads_per_core, "hardware thread")
    usable = f"{request.pus_per_core} of {threads} each"
    raise request.error(
        _described(request),
        f"{request.limit(len(request.topology.cores))} on a node ({cores}, {usable})",
    )


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
