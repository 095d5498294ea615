"""Places the ranks of one node on its cores.

Each function takes the request and the number of ranks on this node, and returns the core of each
thread of each rank. `engine` then chooses the hardware threads of a core.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from proofmark.plan.placement import openmp
from proofmark.plan.placement.placement_request import PlacementRequest, counted
from proofmark.site.node.topology import Core, NumaDomain

Cores = tuple[Core, ...]
Layout = list[Cores]
Level = Callable[[Core], Hashable]
Thing = TypeVar("Thing")

# The parts of a node, the coarsest first.
LEVELS: tuple[Level, ...] = (
    lambda core: core.book,
    lambda core: core.socket,
    lambda core: core.numa,
    lambda core: core.l3,
    lambda core: core.tile,
)


def close(request: PlacementRequest, ranks: int) -> Layout:
    """Use consecutive cores from the first one on: OpenMP's ``close`` over ranks and threads."""
    return _blocks(request.topology.cores, ranks, request.threads)


def beside_adapter(request: PlacementRequest, ranks: int) -> Layout:
    """Use consecutive cores of the NUMA domain of the adapter, and not its first one.

    The first core of a domain handles interrupts of the adapter and of timers. It is used if the
    others have no room, and so are the cores of other domains.
    """
    cores = request.topology.cores
    near = [core for core in cores if request.adapter in (None, core.numa)] or list(cores)
    for chosen in (near[1:], near):
        if ranks <= request.room(len(chosen)):
            return _blocks(chosen, ranks, request.threads)
    return close(request, ranks)


def spread(request: PlacementRequest, ranks: int) -> Layout:
    """Use cores far apart: OpenMP's ``spread`` over ranks, and over the threads in each share."""
    cores = request.topology.cores
    if ranks > len(cores):
        return _blocks(cores, ranks, request.threads)
    shares = [cores[part.start : part.stop] for part in openmp.subpartitions(ranks, len(cores))]
    return [
        tuple(share[at] for at in openmp.spread(request.threads, len(share))) for share in shares
    ]


def distributed(request: PlacementRequest, ranks: int) -> Layout:
    """Give ranks in turn to the books, then to their sockets, …; threads of a rank are close."""
    cores = request.topology.cores
    width = min(request.threads, max(1, len(cores) // ranks))
    groups = _deal(_groups(cores, width, min(ranks, len(cores))), LEVELS)
    return [_fill(groups[rank % len(groups)], request.threads) for rank in range(ranks)]


def fitted(request: PlacementRequest, ranks: int) -> Layout:
    """Give each NUMA domain the same number of ranks, every rank inside one domain.

    In each domain as many cores are used as the smallest domain has. If this is not possible and
    the ranks need all cores of domains of unequal size, each domain gets as many as it holds.

    Raises:
        PlacementError: the ranks do not fill all domains, and their number is no multiple of the
            number of domains; or a domain has too few cores.
    """
    domains = _domains(request)
    share, rest = divmod(ranks, len(domains))
    least = min(domains, key=lambda domain: len(domain.cores))
    usable = len(least.cores)
    crowded = share > request.room(usable)
    if (rest or crowded) and _filled(request, ranks):
        rooms = [(domain.cores, request.room(len(domain.cores))) for domain in domains]
    elif rest:
        asked = f"{counted(ranks, 'rank')} on a node of {counted(len(domains), 'NUMA domain')}"
        raise request.error(asked, f"a multiple of {counted(len(domains), 'rank')} a node")
    elif crowded and not request.oversubscribe:
        asked = f"{request.of_threads(share)} in each NUMA domain"
        holds = f"domain {least.os_index} has {counted(usable, 'core')}"
        raise request.error(asked, f"{request.limit(usable)} in each ({holds})")
    else:
        rooms = [(domain.cores[:usable], share) for domain in domains]
    layout: Layout = []
    for indexes, room in rooms:
        if room:
            cores = [request.topology.cores[index] for index in indexes]
            layout += _blocks(cores, room, request.threads)
    return layout


def unfitted(request: PlacementRequest, ranks: int) -> Layout:
    """Place ranks as `close` does, without regard to NUMA domains.

    Raises:
        PlacementError: the ranks fit several domains nevertheless: every rank is inside one domain,
            and every domain has the same number of ranks or is full.
    """
    layout = close(request, ranks)
    domains = _domains(request)
    used = [{core.numa for core in cores} for cores in layout]
    counts = {sum(domain.os_index in of_rank for of_rank in used) for domain in domains}
    balanced = len(counts) == 1 or _filled(request, ranks)
    if len(domains) > 1 and balanced and all(len(of_rank) == 1 for of_rank in used):
        asked = f"{request.of_threads(ranks)}, which fit the {len(domains)} NUMA domains"
        raise request.error(asked, "ranks × threads that cross or unbalance them, or 'fitted'")
    return layout


def _domains(request: PlacementRequest) -> list[NumaDomain]:
    return [domain for domain in request.topology.numa_domains if domain.cores]


def _filled(request: PlacementRequest, ranks: int) -> bool:
    """Return whether `ranks` ranks, each inside one NUMA domain, need the room of all domains."""
    return ranks == sum(request.room(len(domain.cores)) for domain in _domains(request))


def _blocks(cores: Sequence[Core], ranks: int, threads: int) -> Layout:
    """Give each rank a block of cores; ranks share a core if there are more ranks than cores."""
    if ranks > len(cores):
        return [_fill((cores[at],), threads) for at in openmp.close(ranks, len(cores))]
    width = min(threads, len(cores) // ranks)
    return [_fill(cores[at * width : (at + 1) * width], threads) for at in range(ranks)]


def _fill(cores: Sequence[Core], threads: int) -> Cores:
    """Return the core of each thread of a rank: the threads are close on `cores`."""
    return tuple(cores[at] for at in openmp.close(threads, len(cores)))


def _groups(cores: Sequence[Core], width: int, wanted: int) -> list[Cores]:
    """Divide the cores into groups of `width`.

    A group crosses a NUMA domain, socket or book only if there are fewer than `wanted` others.
    """
    divisions = [_divide(cores, level) for level in (*LEVELS[:3], lambda core: None)]
    groups: list[Cores] = []
    for parts in sorted(divisions, key=len, reverse=True):
        groups = []
        for part in parts:
            groups += [
                tuple(part[at : at + width]) for at in range(0, len(part) - width + 1, width)
            ]
        if len(groups) >= wanted:
            break
    return groups


def _divide(things: Iterable[Thing], level: Callable[[Thing], Hashable]) -> list[list[Thing]]:
    parts: dict[Hashable, list[Thing]] = {}
    for thing in things:
        parts.setdefault(level(thing), []).append(thing)
    return list(parts.values())


def _deal(groups: list[Cores], levels: Sequence[Level]) -> list[Cores]:
    """Order the groups so that at each level the parts take turns; an empty part is skipped."""
    if not levels:
        return groups
    first, *finer = levels
    queues = [_deal(part, finer) for part in _divide(groups, lambda group: first(group[0]))]
    longest = max(len(queue) for queue in queues)
    dealt = []
    for turn in range(longest):
        dealt += [queue[turn] for queue in queues if turn < len(queue)]
    return dealt
