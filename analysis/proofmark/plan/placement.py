"""Placements: named rules for the CPUs of ranks and threads, computed from the topology.

``docs/placement.md`` draws each of them. A new placement is a function and a line of `RULES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, combinations, pairwise, starmap, zip_longest
from typing import TypeVar

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.grouping import batched, gathered
from proofmark.common.text import counted
from proofmark.plan.rank_cpus import NodeRange, PlacedRanks
from proofmark.site.node.topology import Core, NumaDomain, Topology


class PlacementError(BadInput):
    """The nodes cannot hold the requested ranks; other nodes may."""


class LackingError(PlacementError):
    """The nodes or the file system lack what the value of one axis asks for."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """Ranks and threads to place on nodes of one topology.

    Attributes:
        name: the name of the placement, one of `proofmark.plan.placement.RULES`.
        ranks: number of ranks on all nodes together.
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
        """Return the error that this placement is not possible."""
        key = f"placement {self.name}"
        return PlacementError(InputError(self.asked_in, key, f"a request for {asked}", available))


# The rules of OpenMP 5.x, "Controlling OpenMP Thread Affinity", for T threads on P places and a
# team whose first thread is on place 0. If P is not a multiple of T (or T of P), the specification
# leaves to the implementation which places or subpartitions get one more: here the first ones, as
# in GCC's libgomp. For T > P the result differs from libgomp. The specification gives each place
# threads of *consecutive* numbers: of 69 threads on 68 places, threads 0 and 1 are on place 0.
# libgomp gives every place floor(T/P) threads and the rest to the first places: threads 0 and 68
# are on place 0. The number of threads of each place is the same in both.


def _portions(whole: int, parts: int) -> list[int]:
    """Divide `whole` into `parts` numbers that differ by 1 at most, the larger ones first."""
    least, more = divmod(whole, parts)
    return [least + 1] * more + [least] * (parts - more)


def close_places(threads: int, places: int) -> tuple[int, ...]:
    """Return the place of each thread: consecutive places, shared by S_p threads if T > P."""
    if threads <= places:
        return tuple(range(threads))
    places_of_threads = []
    for place, count in enumerate(_portions(threads, places)):
        places_of_threads += [place] * count
    return tuple(places_of_threads)


def subpartitions(parts: int, places: int) -> tuple[range, ...]:
    """Divide the places 0 … `places` - 1 into `parts` ≤ `places` ranges of consecutive places."""
    borders = accumulate(_portions(places, parts), initial=0)
    return tuple(starmap(range, pairwise(borders)))


def spread_places(threads: int, places: int) -> tuple[int, ...]:
    """Return the place of each thread: the first place of its subpartition.

    It is that of `close_places` if T > P.
    """
    if threads > places:
        return close_places(threads, places)
    return tuple(part.start for part in subpartitions(threads, places))


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
    shares = [cores[part.start : part.stop] for part in subpartitions(ranks, len(cores))]
    return [
        tuple(share[at] for at in spread_places(request.threads, len(share))) for share in shares
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
    layout = []
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
        return [_fill((cores[at],), threads) for at in close_places(ranks, len(cores))]
    width = min(threads, len(cores) // ranks)
    return [_fill(cores[at * width : (at + 1) * width], threads) for at in range(ranks)]


def _fill(cores: Sequence[Core], threads: int) -> Cores:
    """Return the core of each thread of a rank: the threads are close on `cores`."""
    return tuple(cores[at] for at in close_places(threads, len(cores)))


def _groups(cores: Sequence[Core], width: int, wanted: int) -> list[Cores]:
    """Divide the cores into groups of `width`.

    A group crosses a NUMA domain, socket or book only if there are fewer than `wanted` others.
    """
    divisions = [_divide(cores, level) for level in (*LEVELS[:3], lambda core: None)]
    groups: list[Cores] = []
    for parts in sorted(divisions, key=len, reverse=True):
        groups = []
        for part in parts:
            groups += [tuple(group) for group in batched(part, width) if len(group) == width]
        if len(groups) >= wanted:
            break
    return groups


def _divide(things: Iterable[Thing], level: Callable[[Thing], Hashable]) -> list[list[Thing]]:
    return [*gathered((level(thing), thing) for thing in things).values()]


def _deal(groups: list[Cores], levels: Sequence[Level]) -> list[Cores]:
    """Order the groups so that at each level the parts take turns; an empty part is skipped."""
    if not levels:
        return groups
    first, *finer = levels
    parts = _divide(groups, lambda group: first(group[0]))
    turns = zip_longest(*(_deal(part, finer) for part in parts))
    return [*filter(None, chain.from_iterable(turns))]


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
    return [cores[0] for cores in _divide(request.topology.cores, lambda core: core.socket)]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of placement.

    Attributes:
        over: returns ``(nodes, ranks per node)`` for consecutive nodes with as many ranks.
        within: returns the core of each thread of each rank of one node, from its number of ranks.
    """

    over: Callable[[PlacementRequest], Shares]
    within: Callable[[PlacementRequest, int], Layout]


RULES: dict[str, Rule] = {
    "close": Rule(balanced, close),
    "spread": Rule(balanced, spread),
    # P5: balanced or unbalanced over the nodes, distributed or adjacent inside a node.
    "BD": Rule(balanced, distributed),
    "BA": Rule(balanced, close),
    "UD": Rule(filled, distributed),
    "UA": Rule(filled, close),
    # P1 (C1.2): fitted to the NUMA domains, or not.
    "fitted": Rule(balanced, fitted),
    "unfitted": Rule(balanced, unfitted),
    # P3: pairs by distance.
    "same-tile": Rule(one_pair, same_tile),
    "same-socket": Rule(one_pair, same_socket),
    "other-socket": Rule(one_pair, other_socket),
    "1-hop": Rule(one_pair, hops_away(1)),
    "2-hop": Rule(one_pair, hops_away(2)),
    "other-node": Rule(pairs_across, beside_adapter),
    "other-node-spread": Rule(pairs_across, spread),
}
# P4's names for P5's four placements.
RULES |= {
    "BAL-DIST": RULES["BD"],
    "BAL-ACC": RULES["BA"],
    "UNBAL-DIST": RULES["UD"],
    "UNBAL-ACC": RULES["UA"],
}


def place(request: PlacementRequest) -> PlacedRanks:
    """Return the placed ranks of a request; `RankCpus.node` counts the requested nodes from 0.

    Two threads never share a hardware thread, and two ranks never share a core, unless there are
    more ranks than cores and `pus_per_core` > 1 or `oversubscribe` of the request allows it.

    Raises:
        BadInput: there is no such placement, or a count is less than 1 or more than possible.
        PlacementError: the nodes cannot hold the ranks.
    """
    if (rule := RULES.get(request.name)) is None:
        hint = nearest(request.name, RULES) or nearest(request.name.upper(), RULES)
        found = f"{request.name!r}{hint}"
        raise bad_input(request.asked_in, "placement", found, ", ".join(RULES))
    for key in ("ranks", "nodes", "threads", "pus_per_core"):
        count = getattr(request, key)
        if count < 1:
            raise bad_input(request.asked_in, key, str(count), "a number from 1")
    if request.pus_per_core > request.topology.threads_per_core:
        available = f"at most {request.topology.threads_per_core}, the hardware threads of a core"
        raise bad_input(request.asked_in, "pus_per_core", str(request.pus_per_core), available)
    node_ranges = (
        NodeRange(count, _cpus(request, rule, per_node))
        for count, per_node in rule.over(request)
        if count
    )
    return PlacedRanks(tuple(node_ranges))


def _cpus(request: PlacementRequest, rule: Rule, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Return the hardware threads of each rank of a node: those of a core in order of use."""
    if not ranks:
        return ()
    taken: Counter[int] = Counter()
    cpus_of_ranks = []
    for cores in rule.within(request, ranks):
        pus = []
        for core in cores:
            if taken[core.index] >= request.pus_per_core and not request.oversubscribe:
                found = f"more threads on core {core.index} than it has room for"
                raise request.error(found, counted(request.pus_per_core, "thread"))
            pus.append(core.pus[taken[core.index] % request.pus_per_core])
            taken[core.index] += 1
        cpus_of_ranks.append(tuple(pus))
    return tuple(cpus_of_ranks)
