"""One figure of all like nodes: where the limit lies, and what it is able to find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from proofmark.judge.fleet.critical_values import (
    LEAST_NODES,
    Floats,
    centre_and_spread,
    critical_value,
    power,
)

FAMILY_LEVEL = 0.01
"""Probability that anything at all is flagged in a run on a healthy machine."""
LEAST_DROP = 0.01
"""What is less than one percent off is no fault, however like the others are."""
SURE = 0.95
"""Power at which a drop counts as one that is found."""
DROPS = (0.03, 0.05, 0.10, 0.50)
"""Drops whose power is stated."""


@dataclass(frozen=True)
class FleetLimit:
    """What a figure of a node is held against: those of its fellows.

    Attributes:
        nodes: how many like ones were measured.
        centre: their median, in the figure's unit; `limit` likewise.
        spread: their robust standard deviation as a part of the centre.
        critical: how many spreads a node may be off.
        limit: the last value that is accepted; None where the test has no power.
        detectable: the drop that is found in 95 of 100 cases, as a part of the centre.
        powerless: why nothing can be found, or an empty string.
    """

    nodes: int
    centre: float
    spread: float
    critical: float
    limit: float | None
    detectable: float
    powerless: str = ""

    def power_at(self, drop: float) -> float:
        """Return the probability that a node worse by `drop` (0.05: five percent) is found."""
        if self.limit is None or drop < LEAST_DROP:
            return 0.0
        return power(drop, self.spread, self.critical)

    def deviation(self, value: float) -> float:
        """Return how many spreads `value` is from the centre."""
        distance = abs(value - self.centre) / self.centre
        return distance / self.spread if self.spread else (float("inf") if distance else 0.0)


def level_of_one(family: float, figures: int) -> float:
    """Return the level of one figure, so that `figures` of them together have the level `family`.

    Šidák's inequality: exact where the figures are independent, cautious where they are not.
    """
    return float(-np.expm1(np.log1p(-family) / max(1, figures)))


def fleet_limit(
    values: Sequence[float] | Floats, better: Literal["higher", "lower"], level: float
) -> FleetLimit:
    """Return the limit for each of `values`, one a node, in one unit.

    One-sided: a node that is better than the others is never flagged.

    Args:
        values: what like nodes measured.
        better: which direction is good.
        level: probability that any of them is flagged if all are healthy.
    """
    there: Floats = np.asarray(values, dtype=np.float64)
    nodes, centre = len(there), float(np.median(there)) if len(there) else 0.0
    if nodes < LEAST_NODES:
        why = f"{nodes} like nodes: too few to tell which is the odd one ({LEAST_NODES} needed)"
        return FleetLimit(nodes, centre, 0.0, 0.0, None, 1.0, why)
    if centre <= 0:
        return FleetLimit(nodes, centre, 0.0, 0.0, None, 1.0, "the median of the like nodes is 0")
    sign = -1.0 if better == "higher" else 1.0
    _, spreads = centre_and_spread(sign * there[None, :] / centre)
    spread, critical = float(spreads[0]), critical_value(nodes, level)
    drop = max(LEAST_DROP, critical * spread)
    detectable = max(LEAST_DROP, (critical + NormalDist().inv_cdf(SURE)) * spread)
    if drop >= 1:
        why = (
            f"{nodes} like nodes with a spread of {100 * spread:.1f} %: "
            "not even one that fails altogether stands out"
        )
        return FleetLimit(nodes, centre, spread, critical, None, detectable, why)
    return FleetLimit(nodes, centre, spread, critical, centre * (1 + sign * drop), detectable)
