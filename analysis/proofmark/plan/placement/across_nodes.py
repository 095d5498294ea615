"""Distributes ranks over nodes. Each node gets ranks of consecutive numbers.

Each function returns ``(nodes, ranks per node)`` for consecutive nodes with as many ranks.
"""

from __future__ import annotations

from proofmark.plan.placement.request import PlacementRequest, counted

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
