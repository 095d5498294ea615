"""How ranks lie inside a node.

Each function takes what is asked and the number of ranks on this node, and returns the core of
each thread of each rank. How hardware threads are handed out on a core is the engine's part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from proofmark.plan.placement import openmp
from proofmark.plan.placement.request import PlacementRequest, counted
from proofmark.site.node.topology import Core, NumaDomain

Cores = tuple[Core, ...]
Layout = list[Cores]
Level = Callable[[Core], Hashable]
Thing = TypeVar("Thing")

# What a node is divided into, the coarsest first.
LEVELS: tuple[Level, ...] = (
    lambda core: core.book,
    lambda core: core.socket,
    lambda core: core.numa,
    lambda core: core.l3,
    lambda core: core.tile,
)


def close(ask: PlacementRequest, ranks: int) -> Layout:
    """Next to each other, from the first core on: OpenMP's ``close`` over ranks and threads."""
    return _blocks(ask.topology.cores, ranks, ask.threads)


def spread(ask: PlacementRequest, ranks: int) -> Layout:
    """Far apart: OpenMP's ``spread`` over ranks, and over the threads in each rank's share."""
    cores = ask.topology.cores
    if ranks > len(cores):
        return _blocks(cores, ranks, ask.threads)
    shares = [cores[part.start : part.stop] for part in openmp.subpartitions(ranks, len(cores))]
    return [tuple(own[at] for at in openmp.spread(ask.threads, len(own))) for own in shares]


def distributed(ask: PlacementRequest, ranks: int) -> Layout:
    """Dealt out in turn to books, in each book to its sockets, …; a rank's threads stay close."""
    cores = ask.topology.cores
    width = min(ask.threads, max(1, len(cores) // ranks))
    slots = _deal(_slots(cores, width, min(ranks, len(cores))), LEVELS)
    return [_fill(slots[rank % len(slots)], ask.threads) for rank in range(ranks)]


def fitted(ask: PlacementRequest, ranks: int) -> Layout:
    """As many ranks in each NUMA domain, every rank inside one, all laid alike.

    Of uneven domains each lends as many cores as the smallest has; a number of ranks that the
    domains do not divide is refused.
    """
    domains = _domains(ask)
    share, odd = divmod(ranks, len(domains))
    if odd:
        asked = f"{counted(ranks, 'rank')} on a node of {counted(len(domains), 'NUMA domain')}"
        raise ask.refuse(asked, f"a multiple of {counted(len(domains), 'rank')} a node")
    least = min(domains, key=lambda domain: len(domain.cores))
    lent = len(least.cores)
    if share > ask.room(lent) and not ask.oversubscribe:
        asked = f"{ask.of_threads(share)} in each NUMA domain"
        holds = f"domain {least.os_index} has {counted(lent, 'core')}"
        raise ask.refuse(asked, f"{ask.limit(lent)} in each ({holds})")
    layout: Layout = []
    for domain in domains:
        cores = [ask.topology.cores[index] for index in domain.cores[:lent]]
        layout += _blocks(cores, share, ask.threads)
    return layout


def unfitted(ask: PlacementRequest, ranks: int) -> Layout:
    """As `close`, blind to NUMA domains; refused where the ranks fit several domains all the same.

    They fit when every rank is inside one domain and every domain has as many ranks.
    """
    layout = close(ask, ranks)
    domains = _domains(ask)
    homes = [{core.numa for core in cores} for cores in layout]
    held = {sum(domain.os_index in home for home in homes) for domain in domains}
    if len(domains) > 1 and len(held) == 1 and all(len(home) == 1 for home in homes):
        asked = f"{ask.of_threads(ranks)}, which fit the {len(domains)} NUMA domains"
        raise ask.refuse(asked, "ranks × threads that cross or unbalance them, or 'fitted'")
    return layout


def _domains(ask: PlacementRequest) -> list[NumaDomain]:
    return [domain for domain in ask.topology.numa_domains if domain.cores]


def _blocks(cores: Sequence[Core], ranks: int, threads: int) -> Layout:
    """Give each rank cores of its own, one block after the other; a core to several if it must."""
    if ranks > len(cores):
        return [_fill((cores[at],), threads) for at in openmp.close(ranks, len(cores))]
    width = min(threads, len(cores) // ranks)
    return [_fill(cores[at * width : (at + 1) * width], threads) for at in range(ranks)]


def _fill(own: Sequence[Core], threads: int) -> Cores:
    """Lay a rank's threads close on its cores."""
    return tuple(own[at] for at in openmp.close(threads, len(own)))


def _slots(cores: Sequence[Core], width: int, wanted: int) -> list[Cores]:
    """Cut the cores into runs of `width`, across domain, socket or book only if they must be."""
    divisions = [_divide(cores, level) for level in (*LEVELS[:3], lambda core: None)]
    slots: list[Cores] = []
    for parts in sorted(divisions, key=len, reverse=True):
        slots = [
            tuple(part[at : at + width])
            for part in parts
            for at in range(0, len(part) - width + 1, width)
        ]
        if len(slots) >= wanted:
            break
    return slots


def _divide(things: Iterable[Thing], level: Callable[[Thing], Hashable]) -> list[list[Thing]]:
    parts: dict[Hashable, list[Thing]] = {}
    for thing in things:
        parts.setdefault(level(thing), []).append(thing)
    return list(parts.values())


def _deal(slots: list[Cores], levels: Sequence[Level]) -> list[Cores]:
    """Order the slots so that at each level the parts take turns; a part used up is passed over."""
    if not levels:
        return slots
    first, *finer = levels
    queues = [_deal(part, finer) for part in _divide(slots, lambda slot: first(slot[0]))]
    longest = max(len(queue) for queue in queues)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
