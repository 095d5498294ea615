"""The ratio of two samples with its interval, and the change between them that would be seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

import numpy as np

from proofmark.judge.confidence import CONFIDENCE, POWER, Interval, noncentrality
from proofmark.records.columns import Floats

EXACT_PAIRS = 10_000
"""Pairs of a first and a later value up to which each ratio is computed and the distribution of U
is exact."""
_SAMPLES, _SIMULATED_PAIRS, _SEED = 1_000_000, 100, 35


def ratio(first: Sequence[float], later: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate of the ratio of two samples of positive values.

    It is the median of later / first over all pairs. Of an even number of pairs, it is the
    geometric mean of the middle two, as the median of the logarithms would be.
    """
    below, above = ordered(first), ordered(later)
    pairs = len(below) * len(above)
    low = nth_ratio(below, above, (pairs + 1) // 2)
    high = low if pairs % 2 else nth_ratio(below, above, pairs // 2 + 1)
    return low * sqrt(high / low)


def ordered(values: Sequence[float]) -> Floats:
    """Return values in their order."""
    return np.sort(np.asarray(values, dtype=np.float64))


def nth_ratio(first: Floats, later: Floats, rank: int) -> float:
    """Return the ratio later / first of a pair, by its rank among all pairs.

    Two runs of a large machine have more pairs than fit into the memory. It is then found by
    bisection: within rounding of a pair's ratio, and exact if that ratio is 1.

    Args:
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
    below, above = ordered(first), ordered(later)
    rank, confidence = rank_of_bounds(len(below), len(above))
    low = nth_ratio(below, above, rank)
    high = nth_ratio(below, above, len(below) * len(above) + 1 - rank)
    return Interval(low, high, confidence)


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


def _normal(fewer: int, more: int) -> Callable[[int], float]:
    """Return the normal approximation of P(U < k), with the correction for continuity."""
    pairs = fewer * more
    normal = NormalDist(pairs / 2, sqrt(pairs * (fewer + more + 1) / 12))
    return lambda k: normal.cdf(k - 0.5)


def change_seen(
    first: Sequence[float], later: Sequence[float], material: float
) -> tuple[float, float]:
    """Return the change between two samples of positive values that would be seen.

    The second number is that of the values of each sample with which `material` would be seen.
    """
    counts = len(first), len(later)
    logs = [np.log(first), np.log(later)]
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    spread = math.sqrt(squares / (sum(counts) - 2))
    shift = shift_seen(*counts)
    visible = shift if math.isinf(shift) else shift * spread
    wanted = -math.log1p(-material)
    most = math.isqrt(_SIMULATED_PAIRS)
    few = (each for each in range(min(counts), most + 1) if math.isfinite(shift_seen(each, each)))
    enough = (each for each in few if shift_seen(each, each) * spread <= wanted)
    of_many = math.ceil(2 * (_efficient_shift(1.0) * spread / wanted) ** 2)
    repeats = next(enough, max(of_many, *counts))
    return -math.expm1(-visible), float(repeats)


@lru_cache(maxsize=256)
def shift_seen(first: int, later: int) -> float:
    """Return the least shift that the interval of two samples excludes with the power `POWER`.

    It is in standard deviations of a value. The interval is that of `interval`; infinite if
    the samples are too small for its confidence. Few pairs are simulated with normal values. For
    many the efficiency 3 ÷ π of the test is used (Hollander, Wolfe and Chicken, section 4.5).
    """
    if first * later > _SIMULATED_PAIRS:
        return _efficient_shift(1 / first + 1 / later)
    rank, confidence = rank_of_bounds(first, later)
    if confidence < CONFIDENCE:
        return math.inf
    random = np.random.default_rng(_SEED)
    trials = _SAMPLES // (first * later)
    values = random.standard_normal((trials, first + later))
    pairs = (values[:, first:, None] - values[:, None, :first]).reshape(trials, -1)
    bounds = np.partition(pairs, rank - 1, axis=1)[:, rank - 1]
    return float(-np.quantile(bounds, 1 - POWER))


def _efficient_shift(variance: float) -> float:
    """Return the shift of `shift_seen` for large samples whose means differ with `variance`."""
    normal = NormalDist()
    distance = normal.inv_cdf((1 + CONFIDENCE) / 2) + normal.inv_cdf(POWER)
    return distance * math.sqrt(math.pi / 3 * variance)


def step_seen(critical: float, freedom: float, length: int, share: float) -> float:
    """Return the step in the middle of `length` values of a series that is seen (`POWER`).

    It is in standard deviations of a value. The means must differ by more than `critical` standard
    errors, and a `share` of the values on either side must be on their own side of the middle. Each
    condition fails in half of the missed cases.
    """
    from scipy.special import betaincinv, ndtri

    half, each = length // 2, 1 - (1 - POWER) / 2
    of_means = noncentrality(np.array([critical]), np.array([freedom]), each)[0]
    least = math.ceil(share * half)
    of_shares = 2 * ndtri(betaincinv(least, half - least + 1, math.sqrt(each)))
    return float(max(of_means * math.sqrt(1 / half + 1 / (length - half)), of_shares))


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
