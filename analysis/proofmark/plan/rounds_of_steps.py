"""Makes the steps of the rounds of pairs from the step of one pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proofmark.cases.models import ALONE, TOGETHER, SuiteUse
from proofmark.common.network_time import everywhere_s
from proofmark.plan.pair_rounds import node_groups, pair_rounds
from proofmark.plan.step import Step
from proofmark.site.inventory import Site


@dataclass(frozen=True)
class RoundSteps:
    """The steps of the rounds of a case, and what they do not measure."""

    steps: list[Step]
    left_out: list[str]


def steps_of_rounds(step: Step, use: SuiteUse, site: Site) -> RoundSteps:
    """Return one step for each round of pairs of the hosts of `site`.

    All rounds of the same hosts are one job, because they have the same nodes.

    Args:
        step: the step of one pair.
        use: its use, with ``pairs: rounds``.
        site: the site, with more than two hosts.
    """
    steps: list[Step] = []
    left_out: list[str] = []
    limit = site.partition.nodes_per_job
    groups = node_groups(site, limit)
    if len(groups) > 1:
        left_out.append(
            f"{step.case}: pairs of nodes of different jobs: nodes_per_job {limit} divides the "
            f"nodes into {len(groups)} jobs"
        )
    idle = 0
    for hosts in groups:
        measured = np.zeros(len(hosts), dtype=bool)
        for each in pair_rounds(site, hosts, use.rounds, ALONE if use.alone else TOGETHER):
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
        of = f"waves of pairs {ALONE}" if use.alone else f"rounds of pairs {TOGETHER}"
        left_out.append(f"{step.case}: {idle} nodes, which are in none of the {use.rounds} {of}")
    return RoundSteps(steps, left_out)
