"""How many ranks each node gets. Ranks of consecutive numbers stay together on a node.

Each function returns ``(nodes, ranks on each)`` for consecutive like nodes.
"""

from __future__ import annotations

from proofmark.plan.placement.request import PlacementRequest, counted

Shares = list[tuple[int, int]]


def balanced(ask: PlacementRequest) -> Shares:
    """Give every node the same number of ranks; the first ones get one more where it must be."""
    each, more = divmod(ask.ranks, ask.nodes)
    _check_room(ask, each + bool(more))
    return [(more, each + 1), (ask.nodes - more, each)]


def filled(ask: PlacementRequest) -> Shares:
    """Fill a node before the next is used; nodes may stay idle."""
    needed = -(-ask.ranks // ask.nodes)
    _check_room(ask, needed)
    # Beyond its room a node only goes when all the nodes have to.
    room = max(ask.room_of_node, needed)
    full, rest = divmod(ask.ranks, room)
    used = full + bool(rest)
    return [(full, room), (used - full, rest), (ask.nodes - used, 0)]


def one_pair(ask: PlacementRequest) -> Shares:
    """Two ranks of one thread on one node."""
    if (ask.ranks, ask.threads, ask.nodes) != (2, 1, 1):
        raise ask.refuse(_asked(ask), "2 ranks of 1 thread on 1 node")
    return [(1, 2)]


def pairs_across(ask: PlacementRequest) -> Shares:
    """Ranks in pairs over two nodes: of 2n ranks, rank i is paired with rank i + n."""
    if ask.nodes != 2 or ask.ranks % 2:
        raise ask.refuse(_asked(ask), "an even number of ranks on 2 nodes")
    return balanced(ask)


def _asked(ask: PlacementRequest) -> str:
    return f"{ask.of_threads(ask.ranks)} on {counted(ask.nodes, 'node')}"


def _check_room(ask: PlacementRequest, ranks: int) -> None:
    """Refuse more ranks on a node than it has room for."""
    if ranks <= ask.room_of_node or ask.oversubscribe:
        return
    cores = counted(len(ask.topology.cores), "core")
    lent = f"{ask.pus_per_core} of {counted(ask.topology.threads_per_core, 'hardware thread')} each"
    raise ask.refuse(
        _asked(ask), f"{ask.limit(len(ask.topology.cores))} on a node ({cores}, {lent})"
    )
