"""The median of repeated measurements: its confidence interval, and its noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import NamedTuple

CONFIDENCE = 0.95
"""The confidence of an interval, if the number of repeats allows it."""
SURE = 0.95
"""The power of a test for the change that it is said to see."""
ASSUMED_NOISE = 0.05
"""Relative noise of a figure that was measured once: its true noise is unknown."""

Range = tuple[float, float]
"""Lowest and highest value, in the unit of the figure."""


class Interval(NamedTuple):
    """The bounds between which the true value lies with this `confidence`."""

    low: float
    high: float
    confidence: float


def interval(values: Sequence[float]) -> Interval | None:
    """Return the rank-based confidence interval of the median of `values`.

    It lies between the k-th smallest and the k-th greatest value. The median of a continuous
    distribution lies there with a probability that depends only on k and the number of values
    (Conover, Practical Nonparametric Statistics, section 3.2). k is the greatest for which that is
    at least `CONFIDENCE`.

    Returns:
        None for fewer than two values. For two to five values the whole range, with its true
        confidence, which is less than `CONFIDENCE`.
    """
    if len(values) < 2:
        return None
    ordered = sorted(values)
    rank, confidence = _rank(len(ordered))
    return Interval(ordered[rank - 1], ordered[-rank], confidence)


@lru_cache(maxsize=256)
def _rank(count: int) -> tuple[int, float]:
    """Return the rank of the bounds among `count` values, from 1, and the confidence."""
    below = 0  # of 2 ** count: fewer than `rank` values lie below the median
    rank = 1
    while True:
        below += comb(count, rank - 1)
        following = below + comb(count, rank)
        if 1 - 2 * following / 2**count < CONFIDENCE:
            return rank, 1 - 2 * below / 2**count
        rank += 1


def noise(values: Sequence[float], middle: float) -> Range:
    """Return the range of the true median: the interval of `values`.

    Of a single measurement it is `middle` ± `ASSUMED_NOISE`.
    """
    bounds = interval(values)
    if bounds is None:
        return middle * (1 - ASSUMED_NOISE), middle * (1 + ASSUMED_NOISE)
    return bounds.low, bounds.high
