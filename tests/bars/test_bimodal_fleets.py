"""Pairs of a healthy fabric of two distances are no outliers; a slow node, or link, is one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fixtures.pairs import SIZES, Slower, fleet_of, nodes, other_leaf, pair_times

from proofmark.common.nodesets import hosts_of

NODES, LEAF = 27, 18
SMALL = 8192
"""Up to this size the distance decides the time of a message, in bytes."""
PLACES = {
    host: {"leaf": f"leaf-{(int(host[1:]) - 1) // LEAF}", "rack": f"rack-{int(host[1:]) % 4}"}
    for host in nodes(NODES)
}


@pytest.mark.parametrize("fleets", [2, pytest.param(50, marks=pytest.mark.soak)])
@pytest.mark.parametrize("leaf", [14, 18, 24])
@pytest.mark.parametrize("factor", [1.02, 1.04, 1.25])
def test_no_more_outliers_than_the_level_allows(leaf: int, factor: float, fleets: int) -> None:
    flagged = 0
    for seed in range(fleets):
        fleet = fleet_of(pair_times(NODES, other_leaf(leaf, factor, SMALL), seed))
        flagged += len(fleet.failed) > 0
        judged = [each for each in fleet.figures if each.fleet_limit.limit is not None]
        assert len(judged) >= sum(size > SMALL for size in SIZES) - 2
    assert flagged <= fleets // 25


@pytest.mark.parametrize("fleets", [1, pytest.param(50, marks=pytest.mark.soak)])
def test_values_with_long_tails_are_no_outliers_by_one_size(fleets: int) -> None:
    flagged = spiked = 0
    for seed in range(fleets):
        tails = np.random.default_rng(seed)
        times = pair_times(NODES, other_leaf(NODES, 1, 0), seed)
        longer = {
            pair: [time * float(np.exp(0.01 * tails.standard_t(3))) for time in of_pair]
            for pair, of_pair in times.items()
        }
        fleet = fleet_of(longer)
        flagged += len(fleet.failed) > 0
        spiked += len(fleet.spiked)
    assert spiked > 0
    assert flagged <= fleets // 25


def test_pairs_of_unknown_distance_are_not_judged() -> None:
    fleet = fleet_of(pair_times(NODES, other_leaf(LEAF, 1.25, SMALL)))
    first = fleet.figures[0].fleet_limit
    assert first.powerless.code == "pairs-populations"
    assert first.powerless.fields == {
        "many": 189,
        "few": 162,
        "usual": "1.8 us",
        "other": "2.25 us",
    }
    judgement = fleet.judge(0)
    assert judgement and (judgement.outcome, judgement.reason) == ("UNJUDGED", first.powerless)


def with_bad(slower: Slower, bad: set[str], factor: float = 1.5, least: int = 1) -> Slower:
    """Return `slower` with bad nodes, or with a bad link if both ends are named."""

    def also(one: str, other: str, size: int) -> float:
        hit = {one, other} & bad if len(bad) == 1 else {one, other} == bad
        return slower(one, other, size) * (factor if hit and size >= least else 1)

    return also


@pytest.mark.parametrize("least", [1, 1 << 20])
@pytest.mark.parametrize("bad", [{"n05"}, {"n03", "n07"}])
def test_a_slow_node_or_link_is_found_within_the_leaves(bad: set[str], least: int) -> None:
    slower = with_bad(other_leaf(LEAF, 1.25, SMALL), bad, least=least)
    fleet = fleet_of(pair_times(NODES, slower), PLACES)
    kinds = {figure.kind for figure in fleet.figures}
    assert kinds == {"", "leaf: same", "leaf: different"}
    assert not any(figure.fleet_limit.powerless for figure in fleet.figures)
    pairs = [{*hosts_of(name)} for figure in fleet.figures for name in figure.flagged]
    assert pairs and all(bad & pair if len(bad) == 1 else pair == bad for pair in pairs)
    sizes = sum(size >= least for size in SIZES)
    ends = NODES - 1 if len(bad) == 1 else 1
    assert len(fleet.failed) == sizes * ends


def test_two_bad_nodes_are_no_population() -> None:
    """Pairs of another leaf are fast among themselves; those of bad nodes are not."""

    def slower(one: str, other: str, size: int) -> float:
        return 1.5 if {one, other} & {"n05", "n09"} else 1.0

    fleet = fleet_of(pair_times(NODES, slower))
    assert len(fleet.failed) == len(SIZES) * (2 * (NODES - 1) - 1)


@pytest.mark.core("no unit test has pairs of many sizes")
def test_one_size_of_one_pair_is_measured_again() -> None:
    times = pair_times(NODES, other_leaf(NODES, 1, 0))
    times["n01", "n02"][5] *= 3
    fleet = fleet_of(times)
    assert not len(fleet.failed) and not any(figure.flagged for figure in fleet.figures)
    (spiked,) = fleet.spiked.tolist()
    assert fleet.figures[int(fleet.of[spiked])].record.parameters == {"bytes": SIZES[5]}
    judgement = fleet.judge(spiked)
    assert judgement and (judgement.outcome, judgement.reason.code) == ("UNJUDGED", "pairs-spike")
