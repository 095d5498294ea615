"""Properties of every placement, on nodes and requests that hypothesis generates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.fixtures.kit import examples

from proofmark.common.errors import BadInput
from proofmark.plan.placement import RULES, PlacementRequest, place
from proofmark.plan.rank_cpus import PlacedRanks, RankCpus
from proofmark.site.node.topology import Core, NumaDomain, Topology

PAIRS = ("same-tile", "same-socket", "other-socket", "1-hop", "2-hop")
OTHER_NAMES = ("BAL-DIST", "BAL-ACC", "UNBAL-DIST", "UNBAL-ACC")  # of BD, BA, UD, UA
GENERAL = [
    name for name in RULES if name not in (*PAIRS, "other-node", "other-node-spread", *OTHER_NAMES)
]
WHOLE_NODE = [name for name in GENERAL if name not in ("fitted", "unfitted")]


@dataclass
class Request:
    node: Topology
    ranks: int
    nodes: int
    threads: int
    pus_per_core: int

    def placed(self, name: str, *, oversubscribe: bool = False) -> PlacedRanks:
        return place(
            PlacementRequest(
                self.node,
                name,
                self.ranks,
                nodes=self.nodes,
                threads=self.threads,
                pus_per_core=self.pus_per_core,
                oversubscribe=oversubscribe,
            )
        )

    def placed_if_it_fits(self, name: str) -> PlacedRanks:
        try:
            return self.placed(name)
        except BadInput:
            assume(False)
            raise


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Books of sockets of NUMA domains of tiles of cores; domains and tiles may be uneven."""
    per_book = draw(st.sampled_from([0, 0, 1, 2]))
    smt = draw(st.integers(1, 4))
    sockets = draw(
        st.lists(  # sockets
            st.lists(  # of domains
                st.lists(st.integers(1, 3), min_size=1, max_size=4),  # of tiles: cores in each
                min_size=1,
                max_size=3,
            ),
            min_size=1,
            max_size=4,
        )
    )
    total = sum(sum(tiles) for domains in sockets for tiles in domains)
    cores: list[Core] = []
    owned: dict[int, list[int]] = {}
    tile = numa = 0
    for socket, domains in enumerate(sockets):
        book = socket // per_book if per_book else None
        for tiles in domains:
            for size in tiles:
                for _ in range(size):
                    index = len(cores)
                    pus = tuple(index + total * thread for thread in range(smt))
                    cores.append(Core(index, pus, socket, book, numa, tile, socket))
                    owned.setdefault(numa, []).append(index)
                tile += 1
            numa += 1
    values = st.sampled_from([16, 21, 22])
    distances = {
        (a, b): 10 if a == b else draw(values) for a in range(numa) for b in range(a, numa)
    }
    distances |= {(b, a): value for (a, b), value in distances.items()}
    return Topology(
        cores=tuple(cores),
        numa_domains=tuple(
            NumaDomain(number, 0, "ddr", tuple(own), tuple(own)) for number, own in owned.items()
        ),
        distances=draw(st.sampled_from([distances, {}])),
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Ranks × threads on nodes, most of which fit."""
    node = draw(topologies())
    nodes = draw(st.integers(1, 4))
    pus_per_core = draw(st.integers(1, node.threads_per_core))
    room = len(node.cores) * pus_per_core
    few = st.integers(1, pus_per_core)
    threads = draw(st.one_of(st.just(1), few, st.integers(1, room)))
    ranks = draw(st.integers(1, max(1, nodes * room // threads)))
    return Request(node, ranks, nodes, threads, pus_per_core)


def cores_of(node: Topology, rank: RankCpus) -> list[Core]:
    """Return the core of each thread of a rank."""
    return [node.core_of[cpu] for cpu in rank.cpus]


def on_nodes(placement: PlacedRanks) -> dict[int, list[RankCpus]]:
    nodes: dict[int, list[RankCpus]] = {}
    for rank in placement:
        nodes.setdefault(rank.node, []).append(rank)
    return nodes


@pytest.mark.parametrize("name", GENERAL)
@examples(0.5)
@given(request_=requests())
def test_every_rank_is_placed_once_and_shares_nothing_by_default(
    name: str, request_: Request
) -> None:
    placement = request_.placed_if_it_fits(name)
    ranks = placement
    assert len(ranks) == request_.ranks
    assert all(0 <= rank.node < request_.nodes for rank in ranks)
    assert [rank.node for rank in ranks] == sorted(rank.node for rank in ranks)
    for rank in ranks:
        assert len(rank.cpus) == request_.threads
        for cpu in rank.cpus:
            assert cpu in request_.node.core_of[cpu].pus[: request_.pus_per_core]
    available = len(request_.node.cores)
    if name == "fitted":
        lent = [len(domain.cores) for domain in request_.node.numa_domains]
        available = min(lent) * len(lent)
    for own in on_nodes(placement).values():
        pus = [pu for rank in own for pu in rank.cpus]
        assert len(set(pus)) == len(pus)
        cores = [cores_of(request_.node, rank) for rank in own]
        ranks_of_core = Counter(core.index for cores_of_rank in cores for core in {*cores_of_rank})
        if len(own) <= available:
            assert max(ranks_of_core.values()) == 1
        if len(pus) <= available:
            assert len({core.index for cores_of_rank in cores for core in cores_of_rank}) == len(
                pus
            )


@pytest.mark.parametrize("name", GENERAL)
@examples(0.5)
@given(request_=requests())
def test_balance_over_nodes(name: str, request_: Request) -> None:
    placement = request_.placed_if_it_fits(name)
    held = [len(on_nodes(placement).get(node, [])) for node in range(request_.nodes)]
    if name in ("UD", "UA"):
        used = [count for count in held if count]
        assert held == used + [0] * (len(held) - len(used))
        assert len(set(used[:-1])) <= 1
        if len(used) > 1:  # a full node holds no further rank
            one_more = Request(request_.node, used[0] + 1, 1, request_.threads, 1)
            one_more.pus_per_core = request_.pus_per_core
            with pytest.raises(BadInput):
                one_more.placed(name)
    else:
        assert max(held) - min(held) <= 1


@pytest.mark.parametrize("name", WHOLE_NODE)
@examples(0.5)
@given(request_=requests())
def test_only_ranks_that_do_not_fit_are_refused(name: str, request_: Request) -> None:
    cores = len(request_.node.cores)
    each = -(-request_.ranks // request_.nodes)
    own_cores = each * -(-request_.threads // request_.pus_per_core) <= cores
    sharing_cores = -(-each // cores) * request_.threads <= request_.pus_per_core
    try:
        request_.placed(name)
        refused = False
    except BadInput:
        refused = True
    assert refused == (not (own_cores or sharing_cores))


@pytest.mark.parametrize("name", GENERAL)
@examples(0.5)
@given(request_=requests(), more=st.integers(1, 50))
def test_more_than_all_hardware_threads_is_refused(name: str, request_: Request, more: int) -> None:
    node = request_.node
    request_.threads, request_.nodes = 1, 1
    request_.ranks = len(node.cores) * request_.pus_per_core + more
    with pytest.raises(BadInput, match=f"placement {name}: found a request for .*; accepted: "):
        request_.placed(name)


@pytest.mark.parametrize("name", WHOLE_NODE)
@examples(0.5)
@given(request_=requests(), factor=st.integers(1, 5))
def test_oversubscription_is_even(name: str, request_: Request, factor: int) -> None:
    request_.threads, request_.nodes = 1, 1
    request_.ranks *= factor
    placement = request_.placed(name, oversubscribe=True)
    firsts = [rank.cpus[0] for rank in placement]
    assert len(firsts) == request_.ranks
    held = Counter(request_.node.core_of[cpu].index for cpu in firsts)
    counts = [held[core.index] for core in request_.node.cores]
    assert max(counts) - min(counts) <= 1
    for core in request_.node.cores:
        of_core = [cpu for cpu in firsts if cpu in core.pus]
        usable = core.pus[: request_.pus_per_core]
        assert set(of_core) <= set(usable)
        assert max(Counter(of_core).values(), default=0) <= -(-len(of_core) // len(usable))


def levels_above(core: Core) -> list[tuple[Hashable, Hashable]]:
    """Every (whole, part of it) that a core is in."""
    chain = [0, core.book, core.socket, core.numa, core.tile]
    return [(tuple(chain[:at]), tuple(chain[: at + 1])) for at in range(1, len(chain))]


@pytest.mark.parametrize("name", ["BD", "UD"])
@examples(0.5)
@given(request_=requests())
def test_distributed_is_even_at_every_level(name: str, request_: Request) -> None:
    """In each whole, parts differ by one rank at most, but for those that are full."""
    request_.threads = 1
    request_.ranks = min(request_.ranks, len(request_.node.cores) * request_.nodes)
    placement = request_.placed(name)
    size = Counter(level for core in request_.node.cores for level in levels_above(core))
    for own in on_nodes(placement).values():
        if len(own) > len(request_.node.cores):
            continue
        held = Counter(
            level for rank in own for level in levels_above(cores_of(request_.node, rank)[0])
        )
        for one in size:
            for other in size:
                if one[0] == other[0] and held[one] < size[one]:
                    assert held[other] - held[one] <= 1


@examples(0.5)
@given(request_=requests())
def test_spread_leaves_even_gaps_and_close_none(request_: Request) -> None:
    request_.threads = request_.nodes = 1
    request_.ranks = min(request_.ranks, len(request_.node.cores))
    close, spread = (
        [cores_of(request_.node, rank)[0].index for rank in request_.placed(name)]
        for name in ("close", "spread")
    )
    assert close == list(range(request_.ranks))
    starts = [*spread, len(request_.node.cores)]
    gaps = [after - before for before, after in pairwise(starts)]
    assert starts[0] == 0
    assert max(gaps) - min(gaps) <= 1


def fits(own: list[RankCpus], asked: Request) -> bool:
    """Return whether each rank is in one domain, and all domains have as many ranks or are full."""
    node = asked.node
    domains = [{core.numa for core in cores_of(node, rank)} for rank in own]
    held = Counter(min(of_rank) for of_rank in domains)
    counts = {held[domain.os_index] for domain in node.numa_domains}
    room = PlacementRequest(
        node, "fitted", asked.ranks, asked.nodes, asked.threads, asked.pus_per_core
    ).room
    full = len(own) == sum(room(len(domain.cores)) for domain in node.numa_domains)
    return all(len(of_rank) == 1 for of_rank in domains) and (len(counts) == 1 or full)


@examples(0.5)
@given(request_=requests())
def test_fitted_fits_and_unfitted_does_not(request_: Request) -> None:
    domains = len(request_.node.numa_domains)
    for name in ("fitted", "unfitted"):
        try:
            placement = request_.placed(name)
        except BadInput:
            continue
        for own in on_nodes(placement).values():
            if domains > 1:
                assert fits(own, request_) == (name == "fitted")


@examples(0.5)
@given(node=topologies(), multiple=st.integers(1, 4))
def test_fitted_is_possible_whenever_the_smallest_domain_has_room(
    node: Topology, multiple: int
) -> None:
    smallest = min(len(domain.cores) for domain in node.numa_domains)
    ranks = len(node.numa_domains) * multiple
    if multiple <= smallest:
        assert (
            len(place(PlacementRequest(node, "fitted", ranks, threads=smallest // multiple)))
            == ranks
        )
    elif ranks != len(node.cores):
        with pytest.raises(BadInput, match="placement fitted: found a request for"):
            place(PlacementRequest(node, "fitted", ranks))


@pytest.mark.parametrize("name", PAIRS)
@examples(0.5)
@given(node=topologies())
def test_a_pair_is_at_its_distance_or_there_is_none(name: str, node: Topology) -> None:
    hops = node.socket_hops
    holds: dict[str, Callable[[Core, Core], bool]] = {
        "same-tile": lambda a, b: a.tile == b.tile,
        "same-socket": lambda a, b: a.socket == b.socket,
        "other-socket": lambda a, b: a.socket != b.socket,
        "1-hop": lambda a, b: hops.get((a.socket, b.socket)) == 1,
        "2-hop": lambda a, b: hops.get((a.socket, b.socket)) == 2,
    }
    possible = any(holds[name](a, b) for a in node.cores for b in node.cores if a != b)
    try:
        placement = place(PlacementRequest(node, name, 2))
    except BadInput:
        assert not possible
        return
    one, other = (cores_of(node, rank)[0] for rank in placement)
    assert one != other
    assert holds[name](one, other)
    if name == "other-socket" and hops:
        assert hops[one.socket, other.socket] == min(
            hop for (a, _), hop in hops.items() if a == one.socket
        )


@examples(0.5)
@given(node=topologies(), pairs=st.integers(1, 40))
def test_pairs_between_nodes_are_on_the_same_core_of_each(node: Topology, pairs: int) -> None:
    assume(pairs <= len(node.cores))
    ranks = place(PlacementRequest(node, "other-node", 2 * pairs, nodes=2))
    for pair in range(pairs):
        one, other = ranks[pair], ranks[pair + pairs]
        assert (one.node, other.node) == (0, 1)
        assert one.cpus == other.cpus
