"""How many spreads below its fellows a node must be, so that a healthy fleet is seldom accused.

The critical values hold for normal, independent healthy nodes. With few nodes the spread itself is
known badly: what is asked for then grows accordingly, instead of a constant for all sizes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_NODES = 4
"""Of three like values nobody can tell which is the odd one, and how odd."""
FEW = 20
"""From so many nodes on the spread is the MAD; below, it throws too much of the sample away."""
MANY = 1000
"""From so many nodes on median and MAD are normal to a good approximation."""
MAD_TO_SIGMA = 1 / NormalDist().inv_cdf(0.75)
MEDIAN_VARIANCE, MAD_VARIANCE = math.pi / 2, 1.3601
"""Of median and scaled MAD of n normal values, times n (Rousseeuw and Croux, JASA 88, 1993)."""

_SEED = 20100
_NUMBERS = 4_000_000  # random numbers of one calibration: about a tenth of a second
_RESOLVED = 1e-3  # the rarest event that so many samples of few nodes still count well


def centre_and_spread(badness: Floats) -> tuple[Floats, Floats]:
    """Return the median and a robust standard deviation of each row.

    Args:
        badness: rows of values, the larger the worse; shape (fleets, nodes).

    Returns:
        Two arrays of shape (fleets,). The spread is the MAD × 1.4826. Below `FEW` nodes it is the
        standard deviation of the better two thirds, from which the few worst cannot hide: their
        critical value is calibrated with the same rule.
    """
    centre = np.median(badness, axis=1)
    nodes = badness.shape[1]
    if nodes >= FEW:
        return centre, MAD_TO_SIGMA * np.median(np.abs(badness - centre[:, None]), axis=1)
    better = np.sort(badness, axis=1)[:, : nodes - _left_out(nodes)]
    return centre, np.std(better, axis=1, ddof=1)


def _left_out(nodes: int) -> int:
    return max(1, nodes // 3)


@lru_cache(maxsize=1024)
def critical_value(nodes: int, level: float) -> float:
    """Return how many spreads above the centre the worst of `nodes` healthy ones seldom is.

    Args:
        nodes: number of like nodes, at least `LEAST_NODES`.
        level: probability that any of the healthy nodes exceeds it.

    Raises:
        ValueError: too few nodes, or a level that is no probability.
    """
    if nodes < LEAST_NODES or not 0 < level < 1:
        raise ValueError(f"no critical value for {nodes} nodes at level {level}")
    if nodes < FEW:
        return _of_few(nodes, level)
    scales, weights = _scales(nodes)
    each = -math.expm1(math.log1p(-level) / nodes)
    low, high = 0.0, 64.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        beyond = _normal_tail(middle * scales) @ weights
        low, high = (middle, high) if beyond > each else (low, middle)
    return high


def _of_few(nodes: int, level: float) -> float:
    """Take the quantile of the worst node's distance in simulated fleets.

    Beyond what they resolve the tail is extrapolated like that of Student's t, which falls with the
    degrees of freedom of the spread in the end, and more slowly before: hence three quarters.
    """
    worst = _worst_of_few(nodes)
    quantile = float(np.quantile(worst, 1 - max(level, _RESOLVED)))
    freedom = 0.75 * (nodes - _left_out(nodes) - 1)
    return float(quantile * max(1.0, _RESOLVED / level) ** (1 / freedom))


@lru_cache(maxsize=FEW)
def _worst_of_few(nodes: int) -> Floats:
    samples = np.random.default_rng(_SEED).standard_normal((_NUMBERS // nodes, nodes))
    centre, spread = centre_and_spread(samples)
    return np.asarray((samples.max(axis=1) - centre) / spread)


@lru_cache(maxsize=256)
def _scales(nodes: int) -> tuple[Floats, Floats]:
    """Return what one spread may be in true standard deviations, and how probable each is.

    That a node takes part in its own fleet's spread is neglected: with 20 nodes half as many are
    accused as the level allows, with 100 nodes nine of ten.

    The error of the centre is folded in: a node's distance from a centre that is itself random.
    """
    wider = math.sqrt(1 + MEDIAN_VARIANCE / nodes)
    if nodes > MANY:
        steps = np.linspace(-5, 5, 81)
        weights = np.exp(-(steps**2) / 2)
        return (1 + steps * math.sqrt(MAD_VARIANCE / nodes)) / wider, weights / weights.sum()
    samples = np.random.default_rng(_SEED).standard_normal((_NUMBERS // nodes, nodes))
    spread = np.sort(centre_and_spread(samples)[1])
    # The small ones decide about the tail: they are all kept, of the others every twentieth.
    few = len(spread) // 20
    kept = np.concatenate([spread[:few], spread[few::20]])
    weights = np.concatenate([np.ones(few), np.full(len(kept) - few, 20.0)])
    return kept / wider, weights / weights.sum()


def _normal_tail(distances: Floats) -> Floats:
    """Return the probability of a normal number beyond each of `distances`."""
    return np.array([math.erfc(each / math.sqrt(2)) / 2 for each in distances])


def power(drop: float, spread: float, critical: float) -> float:
    """Return the probability that a node worse by `drop` is found.

    Args:
        drop: as a part of the centre, 0.05 for five percent.
        spread: of the healthy nodes, likewise.
        critical: of `critical_value`.
    """
    if spread == 0:
        return float(drop > 0)
    return NormalDist().cdf(drop / spread - critical)
