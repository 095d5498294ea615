"""Which hosts of unknown hardware were measured against each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from proofmark.common.nodesets import folded
from proofmark.judge.fleet.populations import slow_alike
from proofmark.packages.foreign.adopted_outputs import measured_groups

SMALL = [f"n{number:04d}" for number in range(1, 13)]
LARGE = [f"n{number:04d}" for number in range(13, 49)]


def sweep(hosts: list[str]) -> list[str]:
    return [folded(pair) for pair in combinations(hosts, 2)]


@pytest.mark.parametrize(
    "more",
    [
        [],
        [folded(SMALL + LARGE)],
        [folded([SMALL[0], LARGE[0]])],
        [folded([SMALL[0], host]) for host in LARGE[:3]],
    ],
    ids=["apart", "a job of all", "one pair", "three pairs"],
)
def test_only_the_pairs_of_a_sweep_connect_hosts(more: list[str]) -> None:
    found = measured_groups([*sweep(SMALL), *sweep(LARGE), *more])
    assert found == [tuple(SMALL), tuple(LARGE)]
    assert measured_groups([*sweep(SMALL + LARGE), *more]) == []


@pytest.mark.parametrize(("bad", "alike"), [(1, False), (3, False), (6, True), (12, True)])
def test_hosts_that_are_slow_alike_may_be_a_kind(bad: int, alike: bool) -> None:
    hosts = [*SMALL, *LARGE]
    pairs = [*combinations(hosts, 2)]
    slow = np.array([bool({*pair} & {*hosts[:bad]}) for pair in pairs])
    noise = np.random.default_rng(3).normal(0, 0.01, len(pairs))
    values = np.exp(noise) * np.where(slow, 0.87, 1)
    assert slow_alike([folded(pair) for pair in pairs], slow, values) is alike
    uneven = values * np.where(slow, np.linspace(0.6, 1, len(pairs)), 1)
    assert not slow_alike([folded(pair) for pair in pairs], slow, uneven)
