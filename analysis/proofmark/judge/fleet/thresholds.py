"""The limit for one figure of like nodes, and the power of its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import hosts_of
from proofmark.judge.fleet.critical_values import (
    LEAST_NODES,
    Floats,
    centre_and_spread,
    critical_value,
    deviation_of_one,
    power,
    untied,
)
from proofmark.judge.intervals import SURE

FAMILY_LEVEL = 0.01
"""Probability that any node is flagged in a run on a healthy machine."""
LEAST_DROP = 0.01
"""The least drop that is flagged. A drop of less than 1 % is accepted at any spread."""
DROPS = (0.03, 0.05, 0.10, 0.50)
"""Drops for which the report states the power."""


Members = Literal["peers", "pairs", "targets"]
"""What is compared: the first word of the codes of messages."""


@dataclass(frozen=True)
class FleetLimit:
    """The limit for a figure of a node, from the values of like nodes.

    Attributes:
        nodes: the number of like nodes that were measured.
        centre: their median, in the unit of the figure.
        spread: their robust standard deviation, as a part of the centre.
        critical: the accepted distance from the centre, in spreads.
        limit: the last accepted value, in the unit of the figure; None if the test has no power.
        detectable: the drop that is flagged in 95 of 100 cases, as a part of the centre.
        powerless: the reason why the test has no power, or `NOTHING`.
    """

    nodes: int
    centre: float
    spread: float
    critical: float
    limit: float | None
    detectable: float
    powerless: Message = NOTHING

    def missed(self, values: Floats | float) -> Any:
        """Return whether values are worse than the limit: a mask for an array."""
        if self.limit is None:
            return np.zeros(np.shape(values), dtype=bool)
        return values < self.limit if self.limit < self.centre else values > self.limit

    def power_at(self, drop: float) -> float:
        """Return the probability that a node worse by `drop` (0.05: five percent) is flagged."""
        if self.limit is None or drop < LEAST_DROP:
            return 0.0
        return power(drop, self.spread, self.critical, deviation_of_one(self.nodes))

    def deviation(self, value: float) -> float:
        """Return the distance of `value` from the centre, in spreads."""
        distance = abs(value - self.centre) / self.centre
        return distance / self.spread if self.spread else (float("inf") if distance else 0.0)


def members_of(node: str, *, targets: bool) -> Members:
    """Return what is compared with a figure of `node`, a host or a set of hosts."""
    if targets:
        return "targets"
    return "pairs" if len(hosts_of(node)) == 2 else "peers"


def level_of_one(family: float, figures: int) -> float:
    """Return the level of one figure with which `figures` figures have the level `family`.

    Šidák's inequality: exact for independent figures, conservative for others.
    """
    return float(-np.expm1(np.log1p(-family) / max(1, figures)))


def fleet_limit(
    values: Sequence[float] | Floats,
    better: Literal["higher", "lower"],
    level: float,
    members: Members = "peers",
) -> FleetLimit:
    """Return the limit below or above which a like node is flagged.

    The test is one-sided: a node that is better than the others is never flagged.

    Args:
        values: one for each node, in one unit.
        better: whether a higher or a lower value is better.
        level: probability that any of the nodes is flagged if all are healthy.
        members: like nodes (``peers``), pairs of nodes or storage targets; for the reasons.
    """
    array: Floats = np.asarray(values, dtype=np.float64)
    nodes, centre = len(array), float(np.median(array)) if len(array) else 0.0
    if nodes < LEAST_NODES:
        why = Message(f"{members}-few", nodes=nodes, needed=LEAST_NODES)
        return FleetLimit(nodes, centre, 0.0, 0.0, None, 1.0, why)
    if centre <= 0:
        return FleetLimit(nodes, centre, 0.0, 0.0, None, 1.0, Message(f"{members}-zero"))
    sign = -1.0 if better == "higher" else 1.0
    _, spreads = centre_and_spread(sign * untied(array)[None, :] / centre)
    spread, critical = float(spreads[0]), critical_value(nodes, level)
    drop = max(LEAST_DROP, critical * spread)
    detectable = max(
        LEAST_DROP, (critical + NormalDist().inv_cdf(SURE) * deviation_of_one(nodes)) * spread
    )
    if detectable >= 1:
        why = Message(f"{members}-blind", nodes=nodes, spread=f"{100 * spread:.1f}")
        return FleetLimit(nodes, centre, spread, critical, None, detectable, why)
    return FleetLimit(nodes, centre, spread, critical, centre * (1 + sign * drop), detectable)
