"""Makes the steps of the rounds of pairs from the step of one pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from proofmark.cases.suite_use import SuiteUse
from proofmark.cases.vocabulary import ALONE, TOGETHER, Measured
from proofmark.common.message import Message
from proofmark.common.network_time import everywhere_s
from proofmark.plan.pair_round import PairRound
from proofmark.plan.pairings import Numbers, nested, schedule
from proofmark.plan.step import Step
from proofmark.site.inventory import Site


@dataclass(frozen=True)
class RoundSteps:
    """The steps of the rounds of a case, and what they do not measure."""

    steps: list[Step]
    left_out: list[Message]


def steps_of_rounds(step: Step, use: SuiteUse, site: Site) -> RoundSteps:
    """Return one step for each round of pairs of the hosts of `site`.

    All rounds of the same hosts are one job, because they have the same nodes.

    Args:
        step: the step of one pair.
        use: its use, with ``pairs: rounds``.
        site: the site, with more than two hosts.
    """
    steps: list[Step] = []
    left_out: list[Message] = []
    limit = site.partition.nodes_per_job
    groups = node_groups(site, limit)
    if len(groups) > 1:
        cut = {"limit": limit or 0, "jobs": len(groups)}
        left_out.append(Message("left-pairs", case=step.case, **cut))
    how = ALONE if use.pairs == "alone" else TOGETHER
    idle = 0
    for hosts in groups:
        measured = np.zeros(len(hosts), dtype=bool)
        for each in pair_rounds(site, hosts, use.rounds, how):
            changes = {
                "id": f"{step.id}-{each.slug}",
                "scope": use.scope,
                "round": each,
                "nodes": hosts,
                "seconds": step.seconds + everywhere_s(len(hosts)),
            }
            steps.append(step.model_copy(update=changes))
            measured[each.pairs(len(hosts))] = True
        idle += int((~measured).sum())
    if idle:
        code = "left-waves" if use.pairs == "alone" else "left-rounds"
        left_out.append(Message(code, case=step.case, nodes=idle, rounds=use.rounds))
    return RoundSteps(steps, left_out)


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
