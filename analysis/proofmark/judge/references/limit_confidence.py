"""How far beyond its limit the true level of a figure can be, by the noise of its repeats.

The logarithms of the ratios measured ÷ reference have a mean with the standard error s ÷ √n. The
judged value is their median, whose standard error is √(π ÷ 2) times as large from three repeats on.
Student's t with n - 1 degrees of freedom gives the one-sided bound (Johnson, Kotz and Balakrishnan,
Continuous Univariate Distributions, volume 2, chapter 28; for the median volume 1, chapter 13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

from proofmark.judge.student import quantile_of_t

DOUBT = 0.05
"""The probability that the true level is further beyond the limit than stated."""
OF_MEDIAN = math.sqrt(math.pi / 2)
MOST = 1000
"""The largest number of repeats that is recommended."""


def beyond(ratios: Sequence[float], middle: float, limit: float, *, least: bool) -> float | None:
    """Return the part of `limit` by which the true ratio can miss it; None for a single repeat.

    Args:
        ratios: measured ÷ reference of each repeat.
        middle: the ratio that is judged.
        limit: the limit of the ratio.
        least: whether the ratio must be at least `limit`, not at most.
    """
    if len(ratios) < 2 or min(ratios) <= 0:
        return None
    return _missed(_margin(middle, limit, least=least) - _uncertainty(ratios, len(ratios)), least)


def enough_repeats(
    ratios: Sequence[float], middle: float, limit: float, material: float, *, least: bool
) -> int | None:
    """Return the repeats with which `beyond` is at most `material`; None if `MOST` are too few.

    The noise and the middle are taken as they are.
    """
    margin = _margin(middle, limit, least=least)
    counts = range(len(ratios) + 1, MOST + 1)
    enough = (n for n in counts if _missed(margin - _uncertainty(ratios, n), least) <= material)
    return next(enough, None)


def _uncertainty(ratios: Sequence[float], count: int) -> float:
    """Return the half width of the one-sided interval of `count` repeats with this noise."""
    error = stdev(map(math.log, ratios)) / math.sqrt(count) * (OF_MEDIAN if count > 2 else 1)
    return quantile_of_t(DOUBT, float(count - 1)) * error


def _margin(middle: float, limit: float, *, least: bool) -> float:
    return math.log(middle / limit) if least else math.log(limit / middle)


def _missed(margin: float, least: bool) -> float:
    """Return a margin (logarithm) as the part of the limit that is missed, at least 0."""
    return max(0.0, -math.expm1(margin) if least else math.expm1(-margin))
