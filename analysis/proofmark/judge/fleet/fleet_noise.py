"""How much of the spread of like nodes is the noise of their repeats."""

from __future__ import annotations

import numpy as np

from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.critical_values import MAD_VARIANCE
from proofmark.judge.fleet.thresholds import FleetLimit
from proofmark.judge.power import median_variance, repeats_needed
from proofmark.records.columns import Numbers

_SAMPLE = 1000
"""From how many nodes the noise of a repeat is taken, at most."""


def repeats_of_nodes(
    figures: Aggregates, members: Numbers, limit: FleetLimit, material: float
) -> float:
    """Return with how many repeats of each node a material change of one would be seen.

    The spread of the nodes contains the noise of their repeats. Nodes that differ by no more than
    their repeats, within two standard errors of the spread, are taken as equal.
    """
    if limit.detectable <= material or not limit.spread:
        return float(figures.count[members].max())
    logs = [
        np.log(values)
        for each in members[:_SAMPLE].tolist()
        if min(values := figures.values(each)) > 0
    ]
    freedom = sum(len(each) - 1 for each in logs)
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    repeats = int(np.median(figures.count[members]))
    per_repeat = median_variance(repeats) * within / freedom if freedom else np.nan
    explained = per_repeat / repeats * (1 + 2 * np.sqrt(MAD_VARIANCE / limit.nodes)) ** 2
    spread = per_repeat / repeats if limit.spread**2 <= explained else limit.spread**2
    return float(repeats_needed(material / limit.detectable, spread, per_repeat, repeats))
