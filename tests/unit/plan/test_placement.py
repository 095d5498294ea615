"""Each placement by name, on the machines of its paper, and the requests that it refuses."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.topologies import read_topology
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.plan.placement import (
    RULES,
    Layout,
    PlacementRequest,
    Rule,
    balanced,
    close,
    place,
)
from proofmark.plan.rank_cpus import PlacedRanks
from proofmark.site.node.topology import Core, NumaDomain, Topology

HWLOC = ROOT / "tests" / "data" / "hwloc"
NODES = {file.stem: read_topology(file) for file in HWLOC.glob("*.xml")}
KNL = NODES["knl_quad_flat"]
SNC4 = NODES["knl_snc4_flat_uneven"]
SKL = NODES["skl"]
SNC2 = NODES["skl_snc2_smt2"]
SQUARE = NODES["tachyon1"]
P595 = NODES["p595"]


def cores(node: Topology, placement: PlacedRanks) -> list[list[Core]]:
    """Return the core of each thread of each rank."""
    return [[node.core_of[cpu] for cpu in rank.cpus] for rank in placement]


def indexes(node: Topology, placement: PlacedRanks) -> list[list[int]]:
    return [[core.index for core in cores_of_rank] for cores_of_rank in cores(node, placement)]


def firsts(node: Topology, placement: PlacedRanks) -> list[int]:
    return [cores_of_rank[0].index for cores_of_rank in cores(node, placement)]


def pus(placement: PlacedRanks) -> list[tuple[int, ...]]:
    return [rank.cpus for rank in placement]


def per_node(placement: PlacedRanks) -> list[int]:
    held = Counter(rank.node for rank in placement)
    return [held[node] for node in range(sum(each.nodes for each in placement.ranges))]


class TestThreadsOfOneProcess:
    """P2: close and spread on 68 cores, and more threads than cores."""

    def test_close_takes_neighbours_and_spread_one_core_of_each_tile(self) -> None:
        close = place(PlacementRequest(KNL, "close", 1, threads=34))
        spread = place(PlacementRequest(KNL, "spread", 1, threads=34))
        assert pus(close) == [tuple(range(34))]
        assert len({core.tile for core in cores(KNL, close)[0]}) == 17
        assert [core.tile for core in cores(KNL, spread)[0]] == list(range(34))

    def test_thread_35_is_the_first_to_share_a_tile_when_spread(self) -> None:
        (threads,) = cores(KNL, place(PlacementRequest(KNL, "spread", 1, threads=35)))
        tiles = Counter(core.tile for core in threads)
        assert sorted(tiles.values()) == [1] * 33 + [2]

    def test_thread_69_goes_to_the_second_hardware_thread_of_core_0(self) -> None:
        placed = place(PlacementRequest(KNL, "close", 1, threads=69, pus_per_core=2))
        assert set(pus(placed)[0]) == {*range(68), 68}
        assert indexes(KNL, placed)[0].count(0) == 2
        assert pus(placed)[0][:3] == (0, 68, 1)  # consecutive threads share a core

    def test_136_threads_take_two_hardware_threads_of_every_core(self) -> None:
        placed = place(PlacementRequest(KNL, "close", 1, threads=136, pus_per_core=4))
        assert set(pus(placed)[0]) == set(range(136))

    def test_hardware_threads_above_pus_per_core_are_not_used(self) -> None:
        with pytest.raises(BadInput) as refusal:
            place(PlacementRequest(KNL, "close", 1, threads=69, asked_in="benchmarks/stream.yml"))
        assert str(refusal.value) == (
            "benchmarks/stream.yml: placement close: found a request for 1 rank × 69 threads on"
            " 1 node; accepted: ranks of at most 68 threads on a node"
            " (68 cores, 1 of 4 hardware threads each)"
        )

    def test_the_numbers_of_hardware_threads_are_those_of_the_system(self) -> None:
        assert pus(place(PlacementRequest(NODES["tachyon2"], "close", 5))) == [
            (0,),
            (2,),
            (4,),
            (6,),
            (1,),
        ]


class TestRanksOnANode:
    def test_close_fills_one_socket_first(self) -> None:
        placed = place(PlacementRequest(SKL, "close", 10))
        assert {core.socket for rank in cores(SKL, placed) for core in rank} == {0}  # P1.ior.skl

    def test_ranks_of_several_threads_lie_in_blocks(self) -> None:
        assert indexes(SQUARE, place(PlacementRequest(SQUARE, "close", 3, threads=2))) == [
            [0, 1],
            [2, 3],
            [4, 5],
        ]
        assert indexes(SQUARE, place(PlacementRequest(SQUARE, "spread", 2, threads=4))) == [
            [0, 2, 4, 6],
            [8, 10, 12, 14],
        ]
        assert indexes(SQUARE, place(PlacementRequest(SQUARE, "BD", 4, threads=3))) == [
            [0, 1, 2],
            [4, 5, 6],
            [8, 9, 10],
            [12, 13, 14],
        ]

    def test_a_rank_crosses_sockets_only_when_it_must(self) -> None:
        assert indexes(SQUARE, place(PlacementRequest(SQUARE, "BD", 4, threads=3)))[1] == [4, 5, 6]
        assert indexes(SQUARE, place(PlacementRequest(SQUARE, "BD", 5, threads=3)))[1] == [6, 7, 8]
        interleaved = Topology(
            cores=tuple(Core(n, (n,), n // 6, None, 0, None, None) for n in range(12)),
            numa_domains=(NumaDomain(0, 0, "ddr", tuple(range(12)), tuple(range(12))),),
        )
        placed = place(PlacementRequest(interleaved, "BD", 2, threads=4))
        assert indexes(interleaved, placed) == [[0, 1, 2, 3], [6, 7, 8, 9]]

    def test_second_hardware_threads_are_used_before_ranks_share_cores(self) -> None:
        placed = place(PlacementRequest(SNC2, "close", 20, threads=3, pus_per_core=2))
        assert pus(placed)[:2] == [(0, 40, 1), (2, 42, 3)]
        assert len({core.index for rank in cores(SNC2, placed) for core in rank}) == 40

    def test_threads_of_a_rank_are_not_split_to_share_cores(self) -> None:
        """3 hardware threads hold one rank of 2 threads: the third one stays idle."""
        assert len(place(PlacementRequest(KNL, "close", 68, threads=2, pus_per_core=3))) == 68
        with pytest.raises(BadInput, match="at most 68 ranks × 2 threads on a node"):
            place(PlacementRequest(KNL, "close", 69, threads=2, pus_per_core=3))

    def test_more_ranks_than_cores(self) -> None:
        assert pus(place(PlacementRequest(SNC2, "BA", 80, pus_per_core=2)))[:3] == [
            (0,),
            (40,),
            (1,),
        ]
        dealt = place(PlacementRequest(SNC2, "BD", 80, pus_per_core=2))
        assert pus(dealt)[0] == (0,)
        assert pus(dealt)[40] == (40,)


class TestNamesOfP5AndP4:
    """16 nodes of 8 books × 4 packages × 2 cores."""

    def test_balanced_over_nodes_and_distributed_over_books(self) -> None:
        placed = place(PlacementRequest(P595, "BD", 130, nodes=16))
        assert per_node(placed) == [9, 9] + [8] * 14
        assert [rank[0].book for rank in cores(P595, placed)][:9] == [*range(8), 0]
        assert firsts(P595, placed)[8] == 2  # in book 0 again, but in its second package

    def test_adjacent_fills_a_book_first(self) -> None:
        placed = place(PlacementRequest(P595, "BA", 160, nodes=16))
        assert [rank[0].book for rank in cores(P595, placed)][:10] == [0] * 8 + [1] * 2

    def test_unbalanced_fills_a_node_first(self) -> None:
        for name in ("UD", "UA"):
            assert (
                per_node(place(PlacementRequest(P595, name, 130, nodes=16)))
                == [64, 64, 2] + [0] * 13
            )

    def test_full_nodes_differ_in_order_only(self) -> None:
        full = {
            name: place(PlacementRequest(P595, name, 1024, nodes=16))
            for name in ("BD", "BA", "UD", "UA")
        }
        assert firsts(P595, full["BD"]) == firsts(P595, full["UD"])
        assert firsts(P595, full["BA"]) == firsts(P595, full["UA"]) == list(range(64)) * 16
        assert sorted(firsts(P595, full["BD"])[:64]) == list(range(64))

    @pytest.mark.parametrize(
        ("name", "same"),
        [("BAL-DIST", "BD"), ("BAL-ACC", "BA"), ("UNBAL-DIST", "UD"), ("UNBAL-ACC", "UA")],
    )
    def test_p4_names_the_same_four(self, name: str, same: str) -> None:
        one, other = (
            place(PlacementRequest(P595, name, 100, nodes=3)),
            place(PlacementRequest(P595, same, 100, nodes=3)),
        )
        assert one.ranges == other.ranges


class TestFittedToNumaDomains:
    """C1.2: SNC-4 on 34 tiles."""

    def test_uneven_domains_lend_what_the_smallest_has(self) -> None:
        placed = place(PlacementRequest(SNC4, "fitted", 4, threads=16))
        domains = [{core.numa for core in rank} for rank in cores(SNC4, placed)]
        assert domains == [{0}, {1}, {2}, {3}]
        assert firsts(SNC4, placed) == [0, 18, 36, 52]
        with pytest.raises(BadInput, match=r"at most 16 threads in each \(domain 2 has 16 cores\)"):
            place(PlacementRequest(SNC4, "fitted", 4, threads=17))

    def test_all_domains_are_laid_alike_also_with_second_hardware_threads(self) -> None:
        placed = place(PlacementRequest(SNC4, "fitted", 4, threads=17, pus_per_core=2))
        shapes = {tuple(Counter(rank).values()) for rank in indexes(SNC4, placed)}
        assert shapes == {(2, *[1] * 15)}

    @pytest.mark.parametrize("ranks", [3, 66])
    def test_ranks_that_the_domains_do_not_divide_are_refused(self, ranks: int) -> None:
        with pytest.raises(BadInput, match="NUMA domains; accepted: a multiple of 4 ranks"):
            place(PlacementRequest(SNC4, "fitted", ranks))

    def test_every_node_must_fit(self) -> None:
        assert per_node(place(PlacementRequest(SNC4, "fitted", 12, nodes=3))) == [4, 4, 4]
        with pytest.raises(BadInput, match="a request for 5 ranks on a node of 4 NUMA domains"):
            place(PlacementRequest(SNC4, "fitted", 9, nodes=2))

    @pytest.mark.parametrize(("ranks", "threads"), [(4, 17), (1, 68), (67, 1), (2, 34), (3, 16)])
    def test_unfitted_is_close_where_it_does_not_fit(self, ranks: int, threads: int) -> None:
        unfitted = place(PlacementRequest(SNC4, "unfitted", ranks, threads=threads))
        assert unfitted == place(PlacementRequest(SNC4, "close", ranks, threads=threads))

    def test_unfitted_is_refused_where_it_would_be_fitted(self) -> None:
        for ranks, threads in [(2, 20), (4, 10), (40, 1)]:
            with pytest.raises(BadInput, match="which fit the 2 NUMA domains"):
                place(PlacementRequest(SKL, "unfitted", ranks, threads=threads))
        with pytest.raises(BadInput, match="which fit the 4 NUMA domains"):
            place(PlacementRequest(SNC4, "unfitted", 68))

    def test_domains_of_unequal_size_are_filled_if_all_their_cores_are_needed(self) -> None:
        held = Counter(
            rank[0].numa for rank in cores(SNC4, place(PlacementRequest(SNC4, "fitted", 68)))
        )
        assert sorted(held.values()) == [16, 16, 18, 18]

    def test_a_node_of_one_domain_has_no_boundary_to_mind(self) -> None:
        one, other = (
            place(PlacementRequest(KNL, name, 4, threads=17)) for name in ("fitted", "unfitted")
        )
        assert one.ranges == other.ranges


class TestPairs:
    """P3: two ranks at a distance."""

    @pytest.mark.parametrize(
        ("node", "name", "pair"),
        [
            (KNL, "same-tile", [0, 1]),
            (KNL, "same-socket", [0, 2]),
            (SQUARE, "same-socket", [0, 1]),
            (SQUARE, "other-socket", [0, 4]),
            (SQUARE, "1-hop", [0, 4]),
            (SQUARE, "2-hop", [0, 12]),
            (SNC2, "same-socket", [0, 1]),
            (SNC2, "other-socket", [0, 20]),
            (SNC2, "1-hop", [0, 20]),
            (P595, "other-socket", [0, 2]),
        ],
    )
    def test_distance_as_named(self, node: Topology, name: str, pair: list[int]) -> None:
        assert firsts(node, place(PlacementRequest(node, name, 2))) == pair

    def test_other_socket_is_the_nearest(self) -> None:
        far_first = {pair: 16 if pair in ((0, 3), (3, 0)) else 22 for pair in SQUARE.distances}
        node = Topology(SQUARE.cores, SQUARE.numa_domains, SQUARE.caches, far_first)
        assert firsts(node, place(PlacementRequest(node, "other-socket", 2))) == [0, 12]

    def test_pairs_between_nodes_are_rank_i_and_rank_i_plus_n(self) -> None:
        placed = place(PlacementRequest(SQUARE, "other-node", 32, nodes=2))
        assert [rank.node for rank in placed] == [0] * 16 + [1] * 16
        assert firsts(SQUARE, placed) == list(range(16)) * 2

    @pytest.mark.parametrize(
        ("node", "name", "complaint"),
        [
            (SQUARE, "same-tile", "two cores of one level 2 cache; accepted: a node that has such"),
            (KNL, "other-socket", "two sockets; accepted: a node that has them: .*flat.xml has 1"),
            (SKL, "1-hop", "two sockets 1 hop apart; .* distances of .*skl.xml tell: none"),
            (SNC2, "2-hop", "two sockets 2 hops apart; .*smt2.xml tell: 1 hop$"),
        ],
    )
    def test_a_distance_that_the_node_lacks(
        self, node: Topology, name: str, complaint: str
    ) -> None:
        with pytest.raises(BadInput, match=complaint):
            place(PlacementRequest(node, name, 2))

    def test_cores_of_unknown_caches_share_none(self) -> None:
        node = Topology(
            cores=tuple(Core(n, (n,), 0, None, 0, None, None) for n in range(2)),
            numa_domains=(NumaDomain(0, 0, "ddr", (0, 1), (0, 1)),),
        )
        with pytest.raises(BadInput, match="two cores of one level 2 cache"):
            place(PlacementRequest(node, "same-tile", 2))

    def test_a_socket_of_one_core_has_no_pair(self) -> None:
        node = Topology(
            cores=tuple(Core(n, (n,), n, None, 0, None, None) for n in range(2)),
            numa_domains=(NumaDomain(0, 0, "ddr", (0, 1), (0, 1)),),
        )
        with pytest.raises(BadInput, match="two cores of one socket"):
            place(PlacementRequest(node, "same-socket", 2))

    @pytest.mark.parametrize(
        ("name", "ranks", "nodes", "threads", "accepted"),
        [
            ("same-socket", 4, 1, 1, "2 ranks of 1 thread on 1 node"),
            ("same-socket", 2, 2, 1, "2 ranks of 1 thread on 1 node"),
            ("1-hop", 2, 1, 2, "2 ranks of 1 thread on 1 node"),
            ("other-node", 2, 1, 1, "an even number of ranks on 2 nodes"),
            ("other-node", 3, 2, 1, "an even number of ranks on 2 nodes"),
        ],
    )
    def test_other_counts_than_a_pair_are_refused(
        self, name: str, ranks: int, nodes: int, threads: int, accepted: str
    ) -> None:
        with pytest.raises(BadInput, match=f"accepted: {accepted}"):
            place(PlacementRequest(SQUARE, name, ranks, nodes=nodes, threads=threads))


class TestRefusals:
    @pytest.mark.fault("placement-too-large")
    @pytest.mark.parametrize("name", ["close", "UA"])
    def test_more_than_the_machine_holds(self, name: str) -> None:
        assert len(place(PlacementRequest(SQUARE, name, 31, nodes=2))) == 31
        with pytest.raises(BadInput) as refusal:
            place(PlacementRequest(SQUARE, name, 33, nodes=2, asked_in="benchmarks/ior.yml"))
        assert str(refusal.value) == (
            f"benchmarks/ior.yml: placement {name}: found a request for 33 ranks × 1 thread on"
            " 2 nodes; accepted: at most 16 ranks × 1 thread on a node"
            " (16 cores, 1 of 1 hardware thread each)"
        )

    def test_oversubscription_shares_hardware_threads(self) -> None:
        for name in ("close", "spread", "BD", "UA", "fitted"):
            placed = place(PlacementRequest(SQUARE, name, 36, oversubscribe=True))
            shared = Counter(pus(placed))
            assert sum(shared.values()) == 36
            assert max(shared.values()) == 3
            assert len(shared) == 16
        assert per_node(place(PlacementRequest(SQUARE, "UA", 33, nodes=2, oversubscribe=True))) == [
            17,
            16,
        ]
        assert pus(place(PlacementRequest(SQUARE, "close", 1, threads=17, oversubscribe=True)))[0][
            :3
        ] == (0, 0, 1)

    def test_an_unknown_name_gets_the_nearest(self) -> None:
        for wrong, right in [("spred", "spread"), ("bd", "BD"), ("2hop", "2-hop")]:
            with pytest.raises(BadInput, match=f"{wrong!r}, did you mean {right!r}"):
                place(PlacementRequest(SQUARE, wrong, 2))

    @pytest.mark.parametrize("key", ["ranks", "pus_per_core"])
    def test_counts_start_at_one(self, key: str) -> None:
        counts: dict[str, Any] = {"ranks": 1, key: 0}
        with pytest.raises(BadInput, match=f"plan: {key}: found 0; accepted: a number from 1"):
            place(PlacementRequest(SQUARE, "close", **counts))

    def test_hardware_threads_that_cores_lack(self) -> None:
        with pytest.raises(BadInput, match="pus_per_core: found 3; accepted: at most 2"):
            place(PlacementRequest(SNC2, "close", 1, pus_per_core=3))


class TestTheOpenTable:
    def test_a_placement_is_added_by_a_function_and_a_line(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def reverse(request: PlacementRequest, ranks: int) -> Layout:
            return [tuple(reversed(own)) for own in reversed(close(request, ranks))]

        monkeypatch.setitem(RULES, "reverse", Rule(balanced, reverse))
        assert firsts(SQUARE, place(PlacementRequest(SQUARE, "reverse", 3))) == [2, 1, 0]

    def test_a_placement_that_shares_a_hardware_thread_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def heap(request: PlacementRequest, ranks: int) -> Layout:
            return [request.topology.cores[:1]] * ranks

        monkeypatch.setitem(RULES, "heap", Rule(balanced, heap))
        assert pus(place(PlacementRequest(SNC2, "heap", 2, pus_per_core=2))) == [(0,), (40,)]
        with pytest.raises(BadInput, match=r"more threads on core 0 than .*; accepted: 2 threads"):
            place(PlacementRequest(SNC2, "heap", 3, pus_per_core=2))


class TestManyNodes:
    def test_like_nodes_are_laid_out_once(self) -> None:
        placed = place(PlacementRequest(KNL, "BD", 64 * 8305 + 7, nodes=8305))
        assert [each.nodes for each in placed.ranges] == [7, 8298]
        assert len(placed) == 64 * 8305 + 7
        assert placed[-1].node == 8304

    def test_fewer_ranks_than_nodes_leave_nodes_idle(self) -> None:
        assert per_node(place(PlacementRequest(SQUARE, "BD", 2, nodes=4))) == [1, 1, 0, 0]


PAGE = (ROOT / "docs" / "placement.md").read_text(encoding="utf-8")
PICTURES = re.findall(r"^(\S+) +(\d+) × (\d+) +(\[.*\])$", PAGE, flags=re.MULTILINE)


def picture(name: str, ranks: int, threads: int, nodes: int, sockets: int) -> str:
    """Draw nodes of sockets of four cores; the numbers are ranks, or one rank's threads."""
    node = SQUARE if sockets == 4 else two_sockets()
    placed = place(
        PlacementRequest(
            node, name, ranks, nodes=nodes, threads=threads, pus_per_core=1 + (threads > 8)
        )
    )
    cells: dict[tuple[int, int], list[str]] = {}
    for number, rank in enumerate(placed):
        for thread, cpu in enumerate(rank.cpus):
            text = str(thread if ranks == 1 else number)
            cells.setdefault((rank.node, node.core_of[cpu].index), []).append(text)
    drawn = [
        " | ".join(
            " ".join(
                ",".join(cells.get((at, core.index), ["."]))
                for core in node.cores
                if core.socket == socket
            )
            for socket in range(sockets)
        )
        for at in range(nodes)
    ]
    return " ".join(f"[{text}]" for text in drawn)


def two_sockets() -> Topology:
    node = Topology.from_lstopo("pack:2 [numa] l2:2 core:2 pu:2")
    return replace(node, distances={(a, b): 10 if a == b else 20 for a in (0, 1) for b in (0, 1)})


@pytest.mark.parametrize(("name", "ranks", "threads", "drawn"), PICTURES)
def test_the_pictures_of_the_page(name: str, ranks: str, threads: str, drawn: str) -> None:
    nodes = drawn.count("[")
    sockets = drawn.count("|") // nodes + 1
    assert picture(name, int(ranks), int(threads), nodes, sockets) == drawn


def test_the_page_describes_and_draws_every_placement() -> None:
    assert [name for name in RULES if f"`{name}`" not in PAGE] == []
    drawn = {id(RULES[name]) for name, *_ in PICTURES}
    assert [name for name, rule in RULES.items() if id(rule) not in drawn] == []


@pytest.mark.parametrize("adapter", [None, 0, 1])
def test_pairs_between_nodes_are_beside_the_adapter_and_its_interrupts(adapter: int | None) -> None:
    """Half of the cores of SNC2 are in the other domain of a socket."""
    near = [core.index for core in SNC2.cores if adapter in (None, core.numa)]
    for ranks in (2, 2 * len(near) - 2):
        placed = place(PlacementRequest(SNC2, "other-node", ranks, nodes=2, adapter=adapter))
        each = ranks // 2
        assert firsts(SNC2, placed) == 2 * near[1 : each + 1]


def test_pairs_between_nodes_take_all_cores_if_they_need_them() -> None:
    for ranks in (2 * len(SNC2.cores), len(SNC2.cores)):
        placed = place(PlacementRequest(SNC2, "other-node", ranks, nodes=2, adapter=1))
        assert len(set(firsts(SNC2, placed))) == ranks // 2
