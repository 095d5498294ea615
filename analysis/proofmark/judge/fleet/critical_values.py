"""Critical values: the distance, in spreads, from the median at which a node is an outlier.

They hold for healthy nodes with normal, independent values. The spread of few nodes is uncertain.
Therefore the critical value depends on the number of nodes, and is larger for few nodes. From it
follow the limit for one figure of like nodes, and the power of its test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import hosts_of
from proofmark.common.text import percent
from proofmark.judge.confidence import POWER

Floats = NDArray[np.float64]

LEAST_NODES = 4
"""Three like values are not enough to decide which one is the outlier."""
MIN_NODES_OF_MAD = 20
"""From this number of nodes on the spread is the MAD, which is inefficient for fewer nodes."""
MAX_NODES_OF_TABLE = 1000
"""Above this number of nodes median and MAD are normal to a good approximation."""
MAD_TO_SIGMA = 1 / NormalDist().inv_cdf(0.75)
"""Standard deviation ÷ median absolute deviation of a normal distribution."""
MEDIAN_VARIANCE, MAD_VARIANCE = math.pi / 2, 1.3601
"""n times the variance of the median and of the scaled MAD of n standard normal values.

Source: Rousseeuw and Croux, JASA 88 (1993).
"""

_SEED = 20100
_NUMBERS = 4_000_000  # random numbers of one calibration, which takes about 0.1 s
_PART = 400_000  # of them at one time
_RESOLVED = 1e-3  # the lowest level at which the quantile of the samples is accurate


MOST_DECIMALS = 9
MOST_STEP = 0.1
"""The largest step of values, as a part of them, that rounding explains."""


def resolution(values: Floats) -> float:
    """Return the step between values that a program can print; 0 if none shows.

    It is the last printed digit. A rate of a time in whole milliseconds has many digits and few
    values: if half of the values are equal to others, it is the least distance of two.
    """
    unique = np.unique(values)
    decimals = next(
        (n for n in range(MOST_DECIMALS) if np.allclose(values, values.round(n), 1e-12, 0)), None
    )
    digit = 0.0 if decimals is None else 10.0**-decimals
    if not 1 < len(unique) <= len(values) / 2:
        return digit
    step = float(np.diff(unique).min())
    return max(digit, step if step <= MOST_STEP * float(np.median(values)) else 0.0)


def untied(values: Floats) -> Floats:
    """Return sorted values, the equal ones spread over the interval that was rounded to them.

    A program that prints 0.52 and 0.53 hides their spread: half of the values are equal, and their
    MAD is 0. Values that are all equal, or all different, are not changed.
    """
    unique, counts = np.unique(values, return_counts=True)
    if not 1 < len(unique) < len(values):
        return np.sort(values)
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    inside = (place + 0.5) / np.repeat(counts, counts) - 0.5
    spread = np.repeat(unique, counts) + inside * resolution(values)
    positive: Floats = np.maximum(spread, unique[0] / 2)
    return positive


def centre_and_spread(badness: Floats) -> tuple[Floats, Floats]:
    """Return the median and a robust standard deviation of each row.

    Args:
        badness: values of which a larger one is worse; shape (fleets, nodes).

    Returns:
        Two arrays of shape (fleets,). The spread is the MAD × 1.4826. For fewer nodes than
        `MIN_NODES_OF_MAD` it is the standard deviation of the better two thirds, which a few slow
        nodes cannot enlarge. The critical value for few nodes is calibrated with the same rule.
    """
    centre = np.median(badness, axis=1)
    nodes = badness.shape[1]
    if nodes >= MIN_NODES_OF_MAD:
        return centre, MAD_TO_SIGMA * np.median(np.abs(badness - centre[:, None]), axis=1)
    better = np.sort(badness, axis=1)[:, : nodes - _left_out(nodes)]
    return centre, np.std(better, axis=1, ddof=1)


def _left_out(nodes: int) -> int:
    return max(1, nodes // 3)


@lru_cache(maxsize=1024)
def critical_value(nodes: int, level: float) -> float:
    """Return the distance from the centre, in spreads, that healthy nodes exceed with `level`.

    Args:
        level: probability that any of `nodes` healthy nodes exceeds it.

    Raises:
        ValueError: too few nodes, or a level that is not between 0 and 1.
    """
    if nodes < LEAST_NODES or not 0 < level < 1:
        raise ValueError(f"no critical value for {nodes} nodes at level {level}")
    if nodes < MIN_NODES_OF_MAD:
        return _of_few(nodes, level)
    from scipy.special import ndtr  # 0.3 s, which a run of few nodes does not need

    scales, weights = _scales(nodes)
    level_of_node = -math.expm1(math.log1p(-level) / nodes)
    low, high = 0.0, 64.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        beyond = ndtr(-middle * scales) @ weights
        low, high = (middle, high) if beyond > level_of_node else (low, middle)
    return high


def _of_few(nodes: int, level: float) -> float:
    """Return the quantile of the worst node's distance in random fleets.

    For levels below `_RESOLVED` the tail is extrapolated by a power law, as the tail of Student's
    t. Its exponent tends to the degrees of freedom of the spread, and is smaller before: three
    quarters of them are used.
    """
    centre, spread, worst = _few(nodes)
    quantile = float(np.quantile((worst - centre) / spread, 1 - max(level, _RESOLVED)))
    freedom = 0.75 * (nodes - _left_out(nodes) - 1)
    return float(quantile * max(1.0, _RESOLVED / level) ** (1 / freedom))


@lru_cache(maxsize=MIN_NODES_OF_MAD)
def _few(nodes: int) -> tuple[Floats, Floats, Floats]:
    """Return centre, spread and worst value of random fleets."""
    found = [(*centre_and_spread(fleets), fleets.max(axis=1)) for fleets in _fleets(nodes)]
    centre, spread, worst = map(np.concatenate, zip(*found, strict=True))
    return centre, spread, worst


def _fleets(nodes: int) -> Iterator[Floats]:
    """Yield random fleets, in parts of at most `_PART` numbers: their copies need memory."""
    random = np.random.default_rng(_SEED)
    fleets, part = _NUMBERS // nodes, _PART // nodes
    for first in range(0, fleets, part):
        yield random.standard_normal((min(part, fleets - first), nodes))


@lru_cache(maxsize=1024)
def deviation_of_one(nodes: int) -> float:
    """Return the standard deviation of a node's distance from the centre, in measured spreads.

    The spread of few nodes is that of the better ones, which is less than that of all.
    """
    least = 1.0 if nodes >= MIN_NODES_OF_MAD else 1 / float(np.mean(_few(nodes)[1]))
    return least * math.sqrt(1 + MEDIAN_VARIANCE / nodes)


@lru_cache(maxsize=256)
def _scales(nodes: int) -> tuple[Floats, Floats]:
    """Return values of the measured spread, in true standard deviations, with their probability.

    The random error of the centre is included.

    That a node is part of the fleet that gives the spread is neglected. With 20 nodes the false
    alarms are half of what the level allows, with 100 nodes nine tenths.
    """
    wider = math.sqrt(1 + MEDIAN_VARIANCE / nodes)
    if nodes > MAX_NODES_OF_TABLE:
        steps = np.linspace(-5, 5, 81)
        weights = np.exp(-(steps**2) / 2)
        return (1 + steps * math.sqrt(MAD_VARIANCE / nodes)) / wider, weights / weights.sum()
    spread = np.sort(np.concatenate([centre_and_spread(each)[1] for each in _fleets(nodes)]))
    # Small spreads decide the tail: all of them are kept, and every twentieth of the others.
    few = len(spread) // 20
    kept = np.concatenate([spread[:few], spread[few::20]])
    weights = np.concatenate([np.ones(few), np.full(len(kept) - few, 20.0)])
    return kept / wider, weights / weights.sum()


FAMILY_LEVEL = 0.01
"""Probability that any node is flagged in a run on a healthy machine."""
LEAST_DROP = 0.02
"""The least drop that is flagged. Less is not material: the levels of healthy nodes have heavy
tails."""


Members = Literal["peers", "pairs", "targets"]
"""What is compared: the first word of the codes of messages."""


@dataclass(frozen=True)
class FleetLimit:
    """The limit for a figure of a node, from the values of like nodes.

    Attributes:
        centre: their median, in the unit of the figure.
        spread: their robust standard deviation, as a part of the centre.
        critical: the accepted distance from the centre, in spreads.
        limit: the last accepted value, in the unit of the figure; None if the test has no power.
        detectable: the drop that is flagged in 95 of 100 cases, as a part of the centre.
        powerless: the reason why the test has no power, or `NOTHING`.
    """

    nodes: int
    centre: float
    spread: float = 0.0
    critical: float = 0.0
    limit: float | None = None
    detectable: float = 1.0
    powerless: Message = NOTHING

    def missed(self, values: Floats | float) -> Any:
        """Return whether values are worse than the limit: a mask for an array."""
        if self.limit is None:
            return np.zeros(np.shape(values), dtype=bool)
        return values < self.limit if self.limit < self.centre else values > self.limit

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
        level: probability that any of the nodes is flagged if all are healthy.
        members: like nodes (``peers``), pairs of nodes or storage targets; for the reasons.
    """
    array: Floats = np.asarray(values, dtype=np.float64)
    nodes, centre = len(array), float(np.median(array)) if len(array) else 0.0
    if nodes < LEAST_NODES:
        gap = percent(float(np.ptp(array) / array.max())) if nodes and array.max() > 0 else "0"
        why = Message(f"{members}-few", nodes=nodes, gap=gap, needed=LEAST_NODES)
        return FleetLimit(nodes, centre, powerless=why)
    if centre <= 0:
        return FleetLimit(nodes, centre, powerless=Message(f"{members}-zero"))
    sign = -1.0 if better == "higher" else 1.0
    _, spreads = centre_and_spread(sign * untied(array)[None, :] / centre)
    rounding = resolution(array) / math.sqrt(12) / centre  # of equal chances within a step
    spread, critical = max(float(spreads[0]), rounding), critical_value(nodes, level)
    drop = max(LEAST_DROP, critical * spread)
    detectable = max(
        LEAST_DROP, (critical + NormalDist().inv_cdf(POWER) * deviation_of_one(nodes)) * spread
    )
    if detectable >= 1:
        why = Message(f"{members}-blind", nodes=nodes, spread=f"{100 * spread:.1f}")
        return FleetLimit(nodes, centre, spread, critical, detectable=detectable, powerless=why)
    limit = centre * (1 + sign * drop)
    return FleetLimit(nodes, centre, spread, critical, limit=limit, detectable=detectable)
