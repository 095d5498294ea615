"""Repeated measurements: their median, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

CONFIDENCE = 0.95
ASSUMED_NOISE = 0.05
"""Of a figure that was measured once, as a part of it: nobody knows its noise."""

WHOLE_RANGE = 5
"""Repeats up to which even the extremes are plausible medians: more than 2.5 % of the resamples."""

Interval = tuple[float, float]


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % percentile-bootstrap interval of the median of `values`.

    The bootstrap distribution of a median is computed, not drawn: a resample's middle values are
    two of the sample's, with probabilities that depend on nothing but how many there are (Efron,
    Annals of Statistics 7, 1979). So no seed is needed, and the same values give the same interval.

    Returns:
        Lowest and highest median that is plausible, in the unit of `values`; None where fewer than
        two were measured. Up to five repeats it is the whole range.
    """
    if len(values) < 2:
        return None
    if len(values) <= WHOLE_RANGE:
        return min(values), max(values)
    ordered = sorted(values)
    medians = sorted(
        ((ordered[low] + ordered[high]) / 2, weight)
        for (low, high), weight in _middles(len(ordered)).items()
    )
    tail = (1 - CONFIDENCE) / 2
    return _reached(medians, tail), _reached(medians[::-1], tail)


def _reached(medians: Sequence[tuple[float, float]], part: float) -> float:
    total = 0.0
    for value, weight in medians:
        total += weight
        if total > part:
            return value
    return medians[-1][0]


@lru_cache(maxsize=256)
def _middles(count: int) -> dict[tuple[int, int], float]:
    """Return how probable each pair of middle values is, by their places in the ordered sample.

    Exactly m of the resample lie at or below place a and the others above b with the probability
    C(n, m) (a/n)^m ((n-b)/n)^(n-m); differences of it are the probabilities of single pairs.
    """
    below = (count + 1) // 2

    def split(a: int, b: int, m: int) -> float:
        return comb(count, m) * (a / count) ** m * ((count - b) / count) ** (count - m)

    def at_most(a: int) -> float:
        """Return the probability that the lower middle value is at place `a` or below."""
        return sum(split(a, a, m) for m in range(below, count + 1))

    lower = [at_most(a) - at_most(a - 1) for a in range(1, count + 1)]
    if count % 2:
        return {(a, a): weight for a, weight in enumerate(lower)}
    found: dict[tuple[int, int], float] = {}
    for a in range(1, count + 1):
        for b in range(a + 1, count + 1):
            found[a - 1, b - 1] = (
                split(a, b - 1, below)
                - split(a - 1, b - 1, below)
                - split(a, b, below)
                + split(a - 1, b, below)
            )
        apart = sum(found[a - 1, b - 1] for b in range(a + 1, count + 1))
        found[a - 1, a - 1] = lower[a - 1] - apart
    return found


def noise(values: Sequence[float], middle: float) -> Interval:
    """Return where the true median may be: the interval, or what is assumed of one measurement."""
    found = interval(values)
    if found is None:
        return middle * (1 - ASSUMED_NOISE), middle * (1 + ASSUMED_NOISE)
    return found
