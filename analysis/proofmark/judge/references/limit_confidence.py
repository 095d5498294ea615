"""How far beyond its limit the true level of a figure can be, by its noise.

The logarithms of the ratios measured ÷ reference have a mean with the standard error s ÷ √n. The
judged value is their median, whose variance is larger (`proofmark.judge.power.median_variance`).
Student's t with n - 1 degrees of freedom gives the one-sided bound (Johnson, Kotz and Balakrishnan,
Continuous Univariate Distributions, volume 2, chapter 28).

A figure that was measured once shows no noise. `OneRepeat` has the noise that other figures show,
or that its case states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from proofmark.judge.intervals import quantile_of_t
from proofmark.judge.power import MOST_REPEATS, median_variance

DOUBT = 0.05
"""The probability that the true level is further beyond the limit than stated."""
MOST_LOGARITHM = math.log(1000)
"""By more than 1,000 times no miss is stated."""
FACTOR_AT_ANY_NOISE = 2.0
"""A figure whose every repeat is by this factor on the accepted side of its limit meets it at any
noise."""


class OneRepeat(NamedTuple):
    """The noise of a figure that was measured once.

    Attributes:
        spread: the standard deviation of the logarithm of one repeat.
        freedom: the degrees of freedom of `spread`; infinite for a stated noise.
    """

    spread: float
    freedom: float = math.inf

    @property
    def stated(self) -> bool:
        """Whether the noise is stated, and no figures show it."""
        return math.isinf(self.freedom)

    @property
    def interval(self) -> float:
        """The half width of the one-sided interval of the level, as a logarithm."""
        quantile = -NormalDist().inv_cdf(DOUBT) if self.stated else _quantile(self.freedom)
        return quantile * self.spread


def within_by_factor(ratios: Sequence[float], limit: float, *, least: bool) -> bool:
    """Return whether each of `ratios` meets `limit` by the factor `FACTOR_AT_ANY_NOISE`."""
    return (
        min(ratios) >= FACTOR_AT_ANY_NOISE * limit
        if least
        else max(ratios) <= limit / FACTOR_AT_ANY_NOISE
    )


def possible_miss(
    ratios: Sequence[float],
    middle: float,
    limit: float,
    *,
    least: bool,
    once: OneRepeat | None = None,
) -> float | None:
    """Return the part of `limit` by which the true ratio can miss it; None if it is not known.

    If the ratio must be at least `limit`, a repeat of 0 misses it wholly. If it must be at most
    `limit`, the noise of a repeat of 0 is not known: it has no logarithm.

    Args:
        ratios: measured ÷ reference of each repeat.
        middle: the ratio that is judged.
        limit: the limit of the ratio.
        least: whether the ratio must be at least `limit`, not at most.
        once: the noise of a single repeat; None if it is not known. Without noise, as of a number
            of jobs, nothing can be missed.
    """
    if len(ratios) < 2 and not (once and once.spread):
        return None
    if min(ratios) <= 0:
        return 1.0 if least else None
    if once and len(ratios) < 2:
        return _missed(_margin(middle, limit, least=least) - once.interval, least)
    quantile, error = _of_repeats(len(ratios))
    margin, spread = _margin(middle, limit, least=least), _spread(ratios)
    return _missed(margin - quantile * (spread * error), least)


def enough_repeats(
    ratios: Sequence[float],
    middle: float,
    limit: float,
    material: float,
    *,
    least: bool,
    once: OneRepeat | None = None,
) -> float:
    """Return the repeats with which `possible_miss` is at most `material`.

    Infinite if `MOST_REPEATS` are too few. The noise and the middle are taken as they are.

    Raises:
        ValueError: a single repeat without `once`.
    """
    if min(ratios) <= 0:
        return math.inf
    accepted = -math.log1p(-material) if least else math.log1p(material)
    margin = _margin(middle, limit, least=least)
    if len(ratios) > 1:
        spread = _spread(ratios)
    elif once is not None:
        spread = once.spread
    else:
        raise ValueError("a single repeat shows no noise")
    for count in range(len(ratios) + 1, MOST_REPEATS + 1):
        quantile, error = _of_repeats(count)
        if margin - quantile * (spread * error) >= -accepted:
            return count
    return math.inf


@lru_cache(maxsize=256)
def _quantile(freedom: float) -> float:
    return float(quantile_of_t(DOUBT, freedom))


@lru_cache(maxsize=2 * MOST_REPEATS)
def _of_repeats(count: int) -> tuple[float, float]:
    """Return the quantile of t, and the standard error of the median, of `count` repeats.

    The error is a part of the standard deviation of a repeat. The product of the three is the half
    width of the one-sided interval.
    """
    return _quantile(count - 1.0), math.sqrt(median_variance(count) / count)


def _spread(ratios: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms of at least two `ratios`.

    `statistics.stdev` computes with fractions, which takes ten times as long.
    """
    logarithms = list(map(math.log, ratios))
    mean = math.fsum(logarithms) / len(logarithms)
    squares = math.fsum((each - mean) ** 2 for each in logarithms)
    return math.sqrt(squares / (len(logarithms) - 1))


def _margin(middle: float, limit: float, *, least: bool) -> float:
    return math.log(middle / limit) if least else math.log(limit / middle)


def _missed(margin: float, least: bool) -> float:
    """Return a margin (logarithm) as the part of the limit that is missed, at least 0."""
    return max(0.0, -math.expm1(margin) if least else math.expm1(min(-margin, MOST_LOGARITHM)))
