"""The median of repeated measurements, its confidence interval, and the change between two samples.

The model of a change is a shift of the logarithm: each value of the later sample is distributed as
`ratio` times a value of the first. No other property of the distribution is assumed.

Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition (2014),
sections 4.1 to 4.3; the estimate of the ratio is by Hodges and Lehmann (1963), its rank-based
interval by Moses. Where noise is normal, the quantiles are those of Student's t distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist
from typing import NamedTuple, TypeVar, cast

import numpy as np

from proofmark.records.columns import Floats

CONFIDENCE = 0.95
"""The confidence of an interval, if the number of repeats allows it."""
POWER = 0.95
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


Freedom = TypeVar("Freedom", float, Floats)


def quantile_of_t(level: float, freedom: Freedom) -> Freedom:
    """Return the value that Student's t exceeds with the probability `level`; NaN for no freedom.

    Args:
        freedom: degrees of freedom. Any shape.
    """
    from scipy.special import stdtrit  # 0.3 s, which a run without repeats does not need

    known = np.where(np.asarray(freedom) > 0, freedom, np.nan)
    return cast(Freedom, -stdtrit(known, level))


def noncentrality(critical: Floats, freedom: Floats, power: float) -> Floats:
    """Return the distance, in standard errors, that a test finds with the probability `power`.

    The statistic of a test of a level that is really so far away has the noncentral t distribution
    (Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, volume 2, chapter 31).

    Args:
        critical: the value of t from which the test finds a difference; shape (tests,).
        freedom: degrees of freedom of each test; shape (tests,). NaN or 0 gives NaN.
        power: probability that the test finds the distance.
    """
    from scipy.special import nctdtrinc

    pairs, places = np.unique(np.stack([freedom, critical]), axis=1, return_inverse=True)
    known = np.where(pairs[0] > 0, pairs[0], np.nan)
    found = nctdtrinc(known, 1 - power, pairs[1])
    return cast(Floats, found[places.reshape(-1)])


EXACT_PAIRS = 10_000
"""Pairs of a first and a later value up to which each ratio is computed and the distribution of U
is exact."""


def ratio(first: Sequence[float], later: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate of the ratio of two samples of positive values.

    It is the median of later / first over all pairs. Of an even number of pairs, it is the
    geometric mean of the middle two, as the median of the logarithms would be.
    """
    below, above = _sorted(first), _sorted(later)
    pairs = len(below) * len(above)
    low = _nth_ratio(below, above, (pairs + 1) // 2)
    high = low if pairs % 2 else _nth_ratio(below, above, pairs // 2 + 1)
    return low * sqrt(high / low)


def ratio_interval(first: Sequence[float], later: Sequence[float]) -> Interval | None:
    """Return the confidence interval of the ratio of two samples of positive values.

    It lies between the k-th smallest and the k-th greatest of later / first over all pairs. Its
    confidence is 1 - 2 P(U < k), with U of Mann and Whitney, and depends only on k and the sizes of
    the samples. k is the greatest for which it is at least `CONFIDENCE`. For values with ties the
    true confidence is not less.

    Returns:
        None if a sample has fewer than two values. For small samples (3 and 4, 2 and 7) the whole
        range, with its true confidence, which is less than `CONFIDENCE`.
    """
    if min(len(first), len(later)) < 2:
        return None
    below, above = _sorted(first), _sorted(later)
    rank, confidence = rank_of_bounds(len(below), len(above))
    low = _nth_ratio(below, above, rank)
    high = _nth_ratio(below, above, len(below) * len(above) + 1 - rank)
    return Interval(low, high, confidence)


def _sorted(values: Sequence[float]) -> Floats:
    return np.sort(np.asarray(values, dtype=np.float64))


def _nth_ratio(first: Floats, later: Floats, rank: int) -> float:
    """Return the ratio later / first of a pair, by its rank among all pairs.

    Two runs of a large machine have more pairs than fit into the memory. It is then found by
    bisection: within rounding of a pair's ratio, and exact if that ratio is 1.

    Args:
        first: sorted positive values.
        later: sorted positive values.
        rank: 1 for the smallest.
    """
    if len(first) * len(later) <= EXACT_PAIRS:
        ratios = np.divide.outer(later, first).ravel()
        return float(np.partition(ratios, rank - 1)[rank - 1])

    def reached(value: float) -> bool:
        return bool(np.searchsorted(later, first * value, side="right").sum() >= rank)

    low, high = float(later[0] / first[-1]), float(later[-1] / first[0])
    if reached(low):
        return low
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def rank_of_bounds(first: int, later: int) -> tuple[int, float]:
    """Return the rank of the bounds among all pairs of two samples, from 1, and the confidence."""
    return _rank_of_interval(*sorted((first, later)))


@lru_cache(maxsize=256)
def _rank_of_interval(fewer: int, more: int) -> tuple[int, float]:
    pairs = fewer * more
    below = _exact(fewer, more) if pairs <= EXACT_PAIRS else _normal(fewer, more)
    low, high = 1, pairs // 2 + 1  # the first rank is taken in any case
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 1 - 2 * below(middle) >= CONFIDENCE else (low, middle)
    return low, 1 - 2 * below(low)


def _exact(fewer: int, more: int) -> Callable[[int], float]:
    """Return the function P(U < k) of two samples, by the recurrence of Mann and Whitney (1947).

    The greatest of all values is in the sample of m values with probability m / (m + n). It exceeds
    all n values of the other sample:
    P(u; m, n) = (m P(u - n; m - 1, n) + n P(u; m, n - 1)) / (m + n).
    """
    row = [np.ones(1)] * (more + 1)
    for m in range(1, fewer + 1):
        previous, row = row, [np.ones(1)]
        for n in range(1, more + 1):
            chances = np.zeros(m * n + 1)
            chances[n:] += previous[n] * m / (m + n)
            chances[: m * (n - 1) + 1] += row[n - 1] * n / (m + n)
            row.append(chances)
    cumulated = np.cumsum(row[more])
    return lambda k: float(cumulated[k - 1])


def _normal(fewer: int, more: int) -> Callable[[int], float]:
    """Return the normal approximation of P(U < k), with the correction for continuity."""
    pairs = fewer * more
    normal = NormalDist(pairs / 2, sqrt(pairs * (fewer + more + 1) / 12))
    return lambda k: normal.cdf(k - 0.5)
