"""Rounds of pairs in a plan: the rule that a step has, and the pairs of nodes that follow from it.

A plan has the sizes of the switches and the number of the round, not the names of the pairs: a
round of 8,305 nodes has 4,152 of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer

from proofmark.cases.models import ALONE, TOGETHER, Measured, Slug
from proofmark.common.limits import MAX_NODES
from proofmark.common.strict_model import StrictModel
from proofmark.plan.pairings import ROUNDS, Numbers, Round, nested, rounds, waves
from proofmark.site.inventory import Site

_RUN = re.compile(r"(?:(\d{1,7})\*)?(\d{1,7})")


def _sizes(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    runs = [_RUN.fullmatch(word) for word in given.split()]
    if not all(runs) or sum(int(run[1] or 1) for run in runs if run) > MAX_NODES:
        raise ValueError(f"{given[:80]!r} is no list of sizes such as '259*32 17'")
    return [int(run[2]) for run in runs if run for _ in range(int(run[1] or 1))]


def _short(sizes: Sequence[int]) -> str:
    runs = [(size, len(list(same))) for size, same in groupby(sizes)]
    return " ".join(f"{times}*{size}" if times > 1 else f"{size}" for size, times in runs)


Size = Annotated[int, Field(ge=1)]
Sizes = Annotated[
    tuple[Size, ...], BeforeValidator(_sizes), PlainSerializer(_short, when_used="json")
]
"""The numbers of hosts of successive switches. The JSON is a text such as ``259*32 17``."""


class PairRound(StrictModel):
    """The rule of one round of pairs (`proofmark.plan.pairings`).

    The hosts of each switch follow each other in the nodes of the step.

    Attributes:
        measured: ``together``: all pairs of a round of `rounds`; ``alone``: a wave of `waves`.
        number: of the round or wave, from 1.
        most: the largest number of rounds or waves.
        distance: the level of every pair, or ``top``; empty if the pairs differ in it.
        top: the distance of two hosts that share no switch.
        switches: the hosts of the successive switches by level, the nearest level first.
    """

    measured: Measured
    number: Annotated[int, Field(ge=1)]
    most: Annotated[int, Field(ge=1)]
    distance: Slug | Literal[""] = ""
    top: Slug
    switches: dict[Slug, Sizes] = {}

    def pairs(self, hosts: int) -> Numbers:
        """Return the pairs of numbers of hosts, of shape (pairs, 2); the first one sends.

        Raises:
            ValueError: the switches are not those of so many hosts, or there is no such round.
        """
        if wrong := [name for name, sizes in self.switches.items() if sum(sizes) != hosts]:
            raise ValueError(f"round.switches.{wrong[0]}: not the sizes for {hosts} nodes")
        made = _schedule(tuple(self.switches.values()), hosts, self.most, self.measured)
        if self.number > len(made):
            raise ValueError(f"round.number: {self.number}, but there are {len(made)} rounds")
        return made[self.number - 1].pairs

    @property
    def levels(self) -> list[str]:
        """The names of the possible distances of a pair, the nearest first."""
        return [*self.switches, self.top]

    @property
    def slug(self) -> str:
        """The part of the id of a step that names the round."""
        return f"{'wave' if self.measured == ALONE else 'round'}-{self.number}"


def node_groups(site: Site, limit: int | None) -> list[list[str]]:
    """Return the hosts of `site`, those of a switch one after the other, in one group for each job.

    A group has at most `limit` hosts. A last host that would be alone is paired with the host
    before it, which is then in two groups.
    """
    groups = nested(_switches(site, site.hosts))[1:-1]
    order = np.lexsort((np.arange(len(site.hosts)), *groups))
    ordered = [site.hosts[place] for place in order.tolist()]
    number = -(-len(ordered) // limit) if limit else 1
    borders = [-(-len(ordered) * each // number) for each in range(number + 1)]
    return [ordered[max(0, min(first, last - 2)) : last] for first, last in pairwise(borders)]


def pair_rounds(site: Site, hosts: Sequence[str], most: int, measured: Measured) -> list[PairRound]:
    """Return the rounds of the pairs of `hosts`, which `node_groups` has ordered.

    Args:
        site: their site.
        hosts: at least two hosts.
        most: the largest number of rounds or waves.
        measured: ``together`` or ``alone``.
    """
    fabric = site.partition.fabric
    groups = nested(_switches(site, hosts))[1:-1]
    sizes = {
        level.name: tuple(len(list(same)) for _, same in groupby(of_level.tolist()))
        for level, of_level in zip(fabric.levels, groups, strict=True)
    }
    made = _schedule(tuple(sizes.values()), len(hosts), most, measured)
    return [
        PairRound(
            measured=measured,
            number=number,
            most=most,
            distance="" if each.distance is None else fabric.names[each.distance],
            top=fabric.top,
            switches=sizes,
        )
        for number, each in enumerate(made, start=1)
    ]


@lru_cache(maxsize=64)
def _schedule(
    switches: tuple[tuple[int, ...], ...], hosts: int, most: int, measured: str
) -> tuple[Round, ...]:
    """Return all rounds, or all waves, of hosts on switches of these sizes."""
    numbers = [np.repeat(np.arange(len(sizes)), sizes) for sizes in switches]
    fabric = np.array(numbers, dtype=np.int64).reshape(len(switches), hosts)
    if measured == TOGETHER:
        return tuple(rounds(fabric, most))
    return tuple(waves(fabric, rounds(fabric, ROUNDS), most))


def _switches(site: Site, hosts: Sequence[str]) -> Numbers:
    """Return the numbers of the switches of `hosts`, of shape (levels, hosts).

    A host without a declared switch has one for itself.
    """
    levels = len(site.partition.fabric.levels)
    numbers = np.empty((levels, len(hosts)), dtype=np.int64)
    known: dict[tuple[int, str], int] = {}
    for place, host in enumerate(hosts):
        for level, switch in enumerate(site.switches(host)):
            name = f"switch {switch}" if switch else f"host {host}"
            numbers[level, place] = known.setdefault((level, name), len(known))
    return numbers
