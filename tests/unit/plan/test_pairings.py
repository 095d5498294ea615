"""Rounds of disjoint pairs: every host and every level of the fabric is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fixtures.kit import examples

from proofmark.plan.pairings import (
    ROUNDS,
    WAVES,
    Numbers,
    distances_of,
    nested,
    rounds,
    waves,
)


def tree(hosts: int, *sizes: int) -> Numbers:
    """Return the switches of `hosts` hosts, `sizes` hosts on each switch of a level."""
    levels = [np.arange(hosts) // size for size in sizes]
    return np.array(levels, dtype=np.int64).reshape(len(sizes), hosts)


@st.composite
def fabrics(draw: st.DrawFn, most: int = 70) -> Numbers:
    """Return a fabric of any form: switches of any size, hosts in any order, not always nested."""
    hosts = draw(st.integers(1, most))
    levels = draw(st.integers(0, 3))
    switch = st.integers(0, max(1, hosts // 3))
    rows = [draw(st.lists(switch, min_size=hosts, max_size=hosts)) for _ in range(levels)]
    return np.array(rows, dtype=np.int64).reshape(levels, hosts)


def keys(pairs: Numbers) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in np.sort(pairs, axis=1).tolist()]


@examples(1)
@given(fabrics(), st.integers(1, 20))
def test_a_host_is_in_a_round_at_most_once(switches: Numbers, number: int) -> None:
    made = rounds(switches, number)
    for each in [*made, *waves(switches, made, number)]:
        assert len(np.unique(each.pairs)) == each.pairs.size
        assert len(each.pairs)
        found = set(distances_of(nested(switches), each.pairs).tolist())
        assert found == {each.distance} or (each.distance is None and len(found) > 1)
    again = rounds(switches.copy(), number)
    assert [each.pairs.tolist() for each in made] == [each.pairs.tolist() for each in again]


SMALL_GROUPS = np.zeros((2, 33), dtype=np.int64)
SMALL_GROUPS[0, [5, 9, 15]] = 1, 2, 2
SMALL_GROUPS[1, [5, 9, 15, 29, 30, 31, 32]] = 1


@examples(1)
@example(SMALL_GROUPS)  # rounds of several shifts of one distance precede those of the next
@given(fabrics())
def test_each_distance_has_a_round_with_as_many_pairs_as_possible(switches: Numbers) -> None:
    made = rounds(switches)
    groups = nested(switches)
    for distance in range(len(groups) - 1):
        possible = 0
        for outer in range(int(groups[distance + 1].max()) + 1):
            inner = groups[distance][groups[distance + 1] == outer]
            sizes = np.unique(inner, return_counts=True)[1]
            possible += min(len(inner) // 2, len(inner) - int(sizes.max()))
        found = [len(each.pairs) for each in made if each.distance == distance]
        assert max(found, default=0) == possible


@pytest.mark.parametrize("levels", [(), (4,), (4, 8), (3,)])
@pytest.mark.parametrize("hosts", range(2, 17))
def test_a_small_partition_measures_each_pair(hosts: int, levels: tuple[int, ...]) -> None:
    switches = tree(hosts, *levels)
    whole = hosts - 1 + hosts % 2
    made = rounds(switches)
    assert whole <= len(made) <= whole + len(levels) + 1
    pairs = [key for each in made[len(made) - whole :] for key in keys(each.pairs)]
    assert len(pairs) == len(set(pairs)) == hosts * (hosts - 1) // 2


@pytest.mark.parametrize(
    "switches",
    [tree(17), tree(25, 5), tree(27, 3, 9), tree(64, 16), tree(96, 8, 32), tree(8305, 32, 1024)],
    ids=lambda switches: "hosts-{1}-levels-{0}".format(*switches.shape),
)
def test_the_rounds_of_a_large_partition_leave_out_each_host_equally_often(
    switches: Numbers,
) -> None:
    """A switch with an odd number of hosts leaves one of them out in each round."""
    made = rounds(switches)
    missed = ROUNDS - np.bincount(np.concatenate([each.pairs.ravel() for each in made]))
    assert len(made) == ROUNDS
    assert missed.max() <= np.ceil(missed.mean())
    inside = [key for each in made if each.distance == 0 for key in keys(each.pairs)]
    if len(switches):
        assert len(inside) == len(set(inside))
    random = [key for each in made if each.distance is None for key in keys(each.pairs)]
    assert len(random) == len(set(random))
    senders = np.bincount(np.concatenate([each.pairs[:, 0] for each in made]))
    assert np.median(senders) == pytest.approx(ROUNDS / 2, abs=1)


@examples(1)
@given(fabrics(), st.integers(1, 40))
def test_no_two_pairs_of_a_wave_share_a_nearest_switch(switches: Numbers, number: int) -> None:
    made = rounds(switches)
    alone = waves(switches, made, number)
    nearest = nested(switches)[1]
    for each in alone:
        used = [switch for pair in each.pairs for switch in set(nearest[pair].tolist())]
        assert len(used) == len(set(used))
    pairs = [key for each in alone for key in keys(each.pairs)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) <= {key for each in made for key in keys(each.pairs)}
    assert len(alone) <= number


def test_waves_without_levels_are_single_pairs_until_all_are_measured() -> None:
    switches = tree(5)
    assert [len(each.pairs) for each in waves(switches, rounds(switches))] == [1] * 10


def test_waves_measure_hosts_that_no_earlier_wave_has() -> None:
    switches = tree(64, 16)
    alone = waves(switches, rounds(switches))
    assert len(alone) == WAVES
    assert {each.distance for each in alone} == {0, 1}
    assert len(np.unique(np.concatenate([each.pairs for each in alone]))) == 64
