"""Estimates of the run time of MPI benchmarks from ranks, message sizes and the rate of a link.

An estimate chooses repetitions and the time limit of a step. It judges no result. All functions are
pure. Times are in seconds, sizes in bytes, rates in bytes/s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

ACHIEVED = 0.5
"""The part of the rate of a link that a collective is assumed to reach."""
COPY_BYTES_PER_S = 5e8
"""The rate at which a rank copies a message while all other cores copy, too: a slow core."""
NODE_LATENCY_S = 2e-6
"""The time of a short message inside a node."""
LINK_LATENCY_S = 2e-5
"""The time of a short message between nodes: above InfiniBand, near TCP."""
MESSAGE_S = 2.5e-7
"""The time that a link takes for each message, however short it is: an adapter of 2008."""
RANK_MESSAGE_S = 1e-6
"""The time that a rank takes for each of many short messages in a row."""
START_S, RANK_START_S = 5.0, 0.02
"""The time to start an MPI program, and the additional time for each rank of a node."""
PEER_START_S = 5e-4
"""The additional time of a start for each rank of all nodes: the exchange of their addresses."""
EVERYWHERE_S, NODE_START_S = 1.0, 0.001
"""The time to start a script on all nodes of a job, and the additional time for each node."""

ALL = "all"
"""Name of all collectives of a step together."""
COLLECTIVES = ("bcast", "allreduce", "allgather", "alltoall", "alltoallv")
BARRIER = "barrier"
"""Name of the collective without a message. It is no member of `COLLECTIVES`."""

IMB_WARM_UPS = 10
"""IMB warms up with a tenth of the repetitions, but with at least this number (or with all)."""
IMB_SAMPLE_S = 1.0
"""IMB measures one repetition, and then repetitions for about this time, to choose their number."""
IMB_EXCESS = 2.5
"""One repetition of each size may take longer than the budget. Then all sizes may take this many
times as long, so that short messages are repeated, too."""
IMB_VOLUMES_MB = (40, 16, 8, 4, 2, 1)
"""Values of IMB's overall volume in MiB: a size is repeated at most volume ÷ size times."""


def start_s(ranks: int, nodes: int = 1) -> float:
    """Return the time in seconds to start and to end an MPI program of `ranks` ranks on `nodes`.

    Nodes start their ranks at the same time. With one node, all ranks are started in a row, which
    is also a bound for launchers that start the ranks of all nodes in a row.
    """
    exchange = PEER_START_S * ranks if nodes > 1 else 0.0
    return START_S + RANK_START_S * math.ceil(ranks / nodes) + exchange


def everywhere_s(nodes: int) -> float:
    """Return the time to start a script on each of `nodes` nodes of a job, and to wait for all."""
    return EVERYWHERE_S + NODE_START_S * nodes


def collective_s(
    collective: str, size: float, ranks: int, nodes: int, cores: int, link: float
) -> float:
    """Return the time of one operation with messages of `size` bytes.

    The ranks may be spread over `nodes` or fill nodes of `cores` cores: the slower of both counts.

    Args:
        collective: a name of `COLLECTIVES`, `BARRIER`, or `ALL` for one operation of each of
            `COLLECTIVES`; any case.
        size: the bytes that a rank sends to each other rank, or to all of them.
        link: the rate of the link of a node, one direction.

    Raises:
        ValueError: there is no such collective, or a number is not positive.
    """
    name = collective.lower()
    if name == ALL:
        return sum(collective_s(each, size, ranks, nodes, cores, link) for each in COLLECTIVES)
    if name == BARRIER:  # a reduction of nothing
        name, size = "allreduce", 0
    if name not in COLLECTIVES:
        raise ValueError(f"no collective {collective!r}; there are {', '.join(COLLECTIVES)}")
    if min(ranks, nodes, cores) < 1 or link <= 0 or size < 0:
        raise ValueError("ranks, nodes, cores and link must be positive")
    filled, spread = min(ranks, cores), math.ceil(ranks / nodes)
    layouts = {filled, spread} if nodes > 1 else {ranks}
    return max(_of_layout(name, size, ranks, per_node, link) for per_node in layouts)


def _of_layout(name: str, size: float, ranks: int, per_node: int, link: float) -> float:
    """Return the time of one operation with `per_node` ranks on each node."""
    outside = ranks - min(ranks, per_node)
    latency = LINK_LATENCY_S if outside else NODE_LATENCY_S
    rounds = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    rate = ACHIEVED * link
    if name in ("bcast", "allreduce"):
        # A tree of messages; a reduction is sent up and down.
        hop = latency + size * (1 / COPY_BYTES_PER_S + (1 / rate if outside else 0.0))
        return (2 if name == "allreduce" else 1) * rounds * hop
    # Every rank sends a block to every other rank. The link of a node carries the blocks from its
    # ranks to those of other nodes. (A good allgather needs less.)
    pairs = per_node * outside
    copied = 2 * ranks * size / COPY_BYTES_PER_S
    direct = pairs * max(size / rate, MESSAGE_S) + (ranks - 1) * NODE_LATENCY_S + copied
    # Bruck: a few rounds, in each of which half of all blocks is sent on.
    blocks = per_node * ranks / 2 * size
    bruck = rounds * (latency + (blocks / rate if outside else 0.0) + copied / 2)
    return latency + min(direct, bruck)


def collective_times(
    collective: str, sizes: Sequence[float], ranks: int, nodes: int, cores: int, link: float
) -> list[float]:
    """Return the time of one operation for each of `sizes`; see `collective_s`."""
    return [collective_s(collective, size, ranks, nodes, cores, link) for size in sizes]


def message_times(sizes: Sequence[float], pairs: int, nodes: int, link: float) -> list[float]:
    """Return for each size the time in which `pairs` pairs send one message each.

    The pairs share one link if there is more than one node.
    """
    if nodes < 2:
        return [RANK_MESSAGE_S + 2 * size / COPY_BYTES_PER_S for size in sizes]
    rate = ACHIEVED * link
    return [max(RANK_MESSAGE_S, pairs * max(size / rate, MESSAGE_S)) for size in sizes]


def round_trips(sizes: Sequence[float], nodes: int, link: float) -> list[float]:
    """Return the time of a message of each size there and back."""
    latency = LINK_LATENCY_S if nodes > 1 else NODE_LATENCY_S
    one_way = message_times(sizes, 1, nodes, link)
    return [2 * (latency + each) for each in one_way]


def fitting(times: Sequence[float], budget: float, most: int, least: int) -> int:
    """Return how often every size can be repeated within `budget` seconds, from `least` to `most`.

    `least` repetitions may take longer than `budget`.
    """
    whole = sum(times)
    return max(least, min(most, int(budget / whole) if whole > 0 else most))


def imb_repetitions(
    times: Sequence[float], sizes: Sequence[float], budget: float, most: int
) -> list[int]:
    """Return the repetitions and the overall volume in MiB: the values of IMB's ``-iter``.

    They are the largest with which all sizes are measured within `budget` seconds, or within
    `IMB_EXCESS` × the time of one repetition of each size, if that is longer.

    Args:
        times: the time of one operation, for each of `sizes`.
        budget: the time for all sizes.
        most: the largest number of repetitions.
    """
    choices = [(most, volume) for volume in IMB_VOLUMES_MB]
    while choices[-1][0] > 1:
        choices.append((max(1, choices[-1][0] // 2), IMB_VOLUMES_MB[-1]))
    allowed = max(budget, IMB_EXCESS * imb_s(times, sizes, *choices[-1]))
    return list(next(each for each in choices if imb_s(times, sizes, *each) <= allowed))


def imb_s(
    times: Sequence[float], sizes: Sequence[float], repetitions: int, volume_mb: int
) -> float:
    """Return the time of an IMB benchmark over all `sizes`.

    IMB measures a size with one repetition, with repetitions for about a second to choose their
    number, with warm-ups, and then with min(`repetitions`, volume ÷ size), at least once.
    """
    total = 0.0
    for time, size in zip(times, sizes, strict=True):
        count = repetitions
        if size > 0:
            count = max(1, min(repetitions, int(volume_mb * 2**20 // size)))
        warm_ups = max(count // 10, min(IMB_WARM_UPS, count))
        sampled = min(count * time, IMB_SAMPLE_S + time) if count > 1 else 0.0
        total += time * (1 + warm_ups + count) + sampled
    return total


def imb_sample_s(limit: float, smallest_log2: int, largest_log2: int) -> int:
    """Return the value of IMB's ``-time`` with which IMB skips no size within `limit` seconds.

    IMB skips the remaining sizes after (the number of doublings - 1) × this value.
    """
    return math.ceil(limit / max(1, largest_log2 - smallest_log2 - 1))


def collective_messages(collective: str, ranks: int) -> float:
    """Return about how many messages one operation has, with the usual algorithms.

    Raises:
        ValueError: there is no such collective.
    """
    name = collective.lower()
    if name == ALL:
        return sum(collective_messages(each, ranks) for each in COLLECTIVES)
    if name not in (*COLLECTIVES, BARRIER):
        raise ValueError(f"no collective {collective!r}; there are {', '.join(COLLECTIVES)}")
    rounds = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    if name in ("allreduce", "allgather", BARRIER):
        return ranks * rounds
    if name == "bcast":
        return ranks - 1
    return ranks * (ranks - 1)
