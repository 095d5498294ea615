"""Rounds of pairs in a plan: the order of the hosts, and the pairs of the rule of a round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from proofmark.cases.models import Measured
from proofmark.plan.pair_round import PairRound
from proofmark.plan.pairings import Numbers, nested, schedule
from proofmark.site.inventory import Site


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
    made = schedule(tuple(sizes.values()), len(hosts), most, measured)
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
