"""Rounds of disjoint pairs of hosts, which together measure every link of a fabric.

Hosts are numbers from 0. The fabric is an array of shape (levels, hosts) with the number of the
switch of each host, the nearest level first. The distance of two hosts is the number of the first
level whose switch they share; it is the number of levels if they share none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from proofmark.cases.vocabulary import TOGETHER

Numbers = NDArray[np.int64]

ROUNDS = 16
"""The number of rounds of a partition that is too large for all pairs."""
WAVES = 16
"""The largest number of waves in which pairs measure alone."""
SHIFTS = 4
"""The number of rounds of each distance of a partition that is too large for all pairs."""
_SEED = 20170921


@dataclass(frozen=True)
class DisjointPairs:
    """Disjoint pairs of hosts.

    Attributes:
        pairs: of shape (pairs, 2); the first host of a pair sends.
        distance: the distance of every pair; None if the pairs differ in it.
    """

    pairs: Numbers
    distance: int | None = None


@lru_cache(maxsize=64)
def schedule(
    switches: tuple[tuple[int, ...], ...], hosts: int, most: int, measured: str
) -> tuple[DisjointPairs, ...]:
    """Return all rounds or all waves of a fabric.

    Args:
        switches: the numbers of hosts of successive switches, one tuple for each level.
        measured: ``together`` gives rounds, ``alone`` gives waves.
    """
    numbers = [np.repeat(np.arange(len(sizes)), sizes) for sizes in switches]
    fabric = np.array(numbers, dtype=np.int64).reshape(len(switches), hosts)
    if measured == TOGETHER:
        return tuple(rounds(fabric, most))
    return tuple(waves(fabric, schedule(switches, hosts, ROUNDS, TOGETHER), most))


def rounds(switches: Numbers, number: int = ROUNDS) -> list[DisjointPairs]:
    """Return rounds in which all pairs measure at the same time.

    For each distance that two hosts have, one round has as many pairs of this distance as there can
    be, and no others: hosts of one half of a switch measure with hosts of the other half. If there
    are too many hosts for all pairs, `SHIFTS` rounds of each distance differ in the shift between
    the halves. If the number of the destination chooses the link above a switch, the pairs of a
    shift use all of these links equally. Random pairs share some of them, and a shared link hides
    slow ones.

    The other rounds are those of the circle method (Kirkman 1847) over the hosts in a random order
    that is always the same. If all pairs need at most `number` of them, these are all pairs; else
    they fill up to `number` rounds. No pair is in two of the rounds of one kind. Of an odd number
    of hosts each is left out in turn.

    Args:
        switches: the fabric, of shape (levels, hosts).
    """
    groups = nested(switches)
    hosts = groups.shape[1]
    missed = np.zeros(hosts, dtype=np.int64)
    crossing: list[DisjointPairs] = []
    whole = hosts - 1 + hosts % 2 if hosts > 1 else 0
    levels = groups.shape[0] - 1
    shifts = 1 if whole <= number else max(1, min(SHIFTS, number // levels))
    for distance in range(levels):
        crossing += _shifts(groups[distance + 1], groups[distance], missed, distance, shifts)
    order = np.random.default_rng(_SEED).permutation(hosts)
    order = order[np.argsort(missed[order], kind="stable")]  # the circle leaves out the first ones
    circle = [
        _of_distance(groups, _alternating(order[_circle(hosts, each)]))
        for each in range(min(whole, number))
    ]
    if whole > number:
        first = [each for each in crossing if len(each.pairs)]
        return first + circle[: max(0, number - len(first))]
    most: dict[int | None, int] = {
        distance: max((len(each.pairs) for each in circle if each.distance == distance), default=0)
        for distance in range(levels)
    }
    return [each for each in crossing if len(each.pairs) > most[each.distance]] + circle


def waves(
    switches: Numbers, together: Sequence[DisjointPairs], number: int = WAVES
) -> list[DisjointPairs]:
    """Return waves of pairs of `together` of which no two share a switch of the nearest level.

    Without levels a wave is one pair. The pairs of a wave have one distance, and the distances take
    turns. Hosts that no earlier wave has are preferred, so that few waves measure many hosts. Each
    pair is in one wave at most.

    Args:
        switches: the fabric, of shape (levels, hosts).
    """
    hosts = switches.shape[1]
    groups = nested(switches)
    nearest = groups[1]
    pairs = np.concatenate([_NO_PAIRS, *(each.pairs for each in together)])
    _, first = np.unique(np.sort(pairs, axis=1) @ [hosts, 1], return_index=True)
    pairs = pairs[np.sort(first)]
    distances = distances_of(groups, pairs)
    enough = hosts + number * (int(nearest.max()) + 1)
    left = {int(each): pairs[distances == each][:enough] for each in np.unique(distances)}
    measured = np.zeros(hosts, dtype=np.int64)
    found: list[DisjointPairs] = []
    while left and len(found) < number:
        for distance in sorted(left):
            if len(found) == number:
                break
            candidates = left.pop(distance)
            taken = _apart(candidates, nearest, measured)
            chosen = candidates[taken]
            np.add.at(measured, chosen.ravel(), 1)
            found.append(DisjointPairs(chosen, distance))
            if not taken.all():
                left[distance] = candidates[~taken]
    return found


def nested(switches: Numbers) -> Numbers:
    """Return the groups of the hosts at each level, between single hosts and all of them.

    The shape is (levels + 2, hosts). Hosts are in one group of a level if they share the switches
    of this level and of all higher ones.
    """
    levels, hosts = switches.shape
    groups = np.zeros((levels + 2, hosts), dtype=np.int64)
    for level in range(levels - 1, -1, -1):
        both = groups[level + 2] * (switches[level].max(initial=0) + 1) + switches[level]
        groups[level + 1] = np.unique(both, return_inverse=True)[1]
    groups[0] = np.arange(hosts)
    return groups


def distances_of(groups: Numbers, pairs: Numbers) -> Numbers:
    """Return the distance of each of `pairs`, of shape (pairs,), in the groups of `nested`."""
    found: Numbers = np.argmax(groups[1:, pairs[:, 0]] == groups[1:, pairs[:, 1]], axis=0)
    return found


_NO_PAIRS: Numbers = np.empty((0, 2), dtype=np.int64)


def _of_distance(groups: Numbers, pairs: Numbers) -> DisjointPairs:
    """Return a round of `pairs` with their distance, in the groups of `nested`."""
    distances = {*distances_of(groups, pairs).tolist()}
    return DisjointPairs(pairs, distances.pop() if len(distances) == 1 else None)


def _circle(hosts: int, number: int) -> Numbers:
    """Return the pairs of the round `number`, from 0, of the circle method.

    An even number of hosts has hosts - 1 rounds, which are all pairs. Of an odd number the host
    `number` is left out.
    """
    seats = hosts - 1 + hosts % 2
    steps = np.arange(1, (seats + 1) // 2)
    pairs = np.stack([(number + steps) % seats, (number - steps) % seats], axis=1)
    if hosts % 2:
        return pairs
    return np.concatenate([np.array([[seats, number % seats]]), pairs])


def _shifts(
    outer: Numbers, inner: Numbers, missed: Numbers, distance: int, number: int
) -> list[DisjointPairs]:
    """Return up to `number` rounds of one distance without a common pair.

    All have as many pairs as the first. `missed` counts the hosts that they leave out.
    """
    found: list[DisjointPairs] = []
    known = set[int]()
    for shift in range(number):
        pairs, left_out = _crossing(outer, inner, missed, shift)
        keys = (np.sort(pairs, axis=1) @ [len(outer), 1]).tolist()
        if found and (len(pairs) < len(found[0].pairs) or not known.isdisjoint(keys)):
            continue
        known.update(keys)
        missed[left_out] += 1
        found.append(DisjointPairs(_alternating(pairs, 1 - shift % 2), distance))
    return found


def _crossing(
    outer: Numbers, inner: Numbers, missed: Numbers, shift: int = 0
) -> tuple[Numbers, Numbers]:
    """Return as many pairs as possible inside the groups `outer` that cross the groups `inner`.

    The hosts of an outer group are ordered by inner group. The host i of the first half measures
    with the host i of the second half: they are in different inner groups if none of these is
    larger than a half. With a shift, the host i measures with the host i + shift, and with that of
    another inner group if these have several hosts; a pair that crosses none is left out.

    Returns:
        The pairs; and the hosts without one, which are those with the smallest `missed`.
    """
    hosts, of_inner = np.bincount(outer), np.bincount(inner)[inner]
    # The largest inner group of each outer one; of equal ones that with the smallest number.
    size_first, best = of_inner * len(outer) - inner, np.zeros_like(hosts)
    np.maximum.at(best, outer, size_first)
    is_first, largest = size_first == best[outer], -(-best // len(outer))
    half = np.minimum(hosts // 2, hosts - largest)
    # Of an inner group that is larger than all others together only its hosts are left out.
    may_stay = ~is_first & (largest > half)[outer]
    order = np.lexsort((missed, may_stay, outer))
    out = _places(hosts, outer[order]) < (hosts - 2 * half)[outer[order]]
    kept = np.sort(order[~out])
    ordered = kept[np.lexsort((inner[kept], ~is_first[kept], outer[kept]))]
    group = outer[ordered]
    place = _places(2 * half, group)
    first = place < half[group]
    group, place = group[first], place[first]
    turn = shift * (1 + np.where(largest > 1, largest, 0))
    turned = (place + turn[group]) % half[group] + half[group] - place
    both = np.stack([ordered[first], ordered[np.flatnonzero(first) + turned]], axis=1)
    return both[inner[both[:, 0]] != inner[both[:, 1]]], order[out]


def _places(sizes: Numbers, groups: Numbers) -> Numbers:
    """Return the places of members inside of their groups; those of one group are successive."""
    return np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[groups]


def _alternating(pairs: Numbers, first: int = 1) -> Numbers:
    """Return `pairs` with every second one reversed, so that each switch sends and receives."""
    turned = pairs.copy()
    turned[first::2] = pairs[first::2, ::-1]
    return turned


def _apart(pairs: Numbers, group: Numbers, measured: Numbers) -> NDArray[np.bool_]:
    """Return which of `pairs` to take so that no two of them have a host in the same group."""
    taken = np.zeros(len(pairs), dtype=bool)
    used: set[int] = set()
    ends = group[pairs].tolist()
    for place in np.argsort(measured[pairs].sum(axis=1), kind="stable").tolist():
        if used.isdisjoint(ends[place]):
            used.update(ends[place])
            taken[place] = True
    return taken
