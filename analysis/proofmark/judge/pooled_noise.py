"""The noise of like figures, pooled: the moderated variance of a figure with few repeats.

A variance of three repeats is itself uncertain. The variances of like figures scatter around a
common one, and a figure has a mean of both: its own variance, weighted by its degrees of freedom,
and the common variance, weighted by the degrees of freedom that the scatter shows.

Source: Smyth, Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments, Statistical Applications in Genetics and Molecular Biology 3 (2004) 1,
sections 3 and 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from proofmark.records.columns import Floats

Value = TypeVar("Value", float, Floats)
LEAST_LIKE = 8
"""The least number of like figures from which the scatter of variances is estimated."""
LEAST_PART = 1e-5
"""The least variance of a figure, as a part of the median variance of like figures (Smyth)."""


@dataclass(frozen=True)
class PooledNoise:
    """The common variance of like figures.

    Attributes:
        variance: the common variance, in the square of the unit of the values.
        freedom: the degrees of freedom of the common variance in a figure. They are those of all
            figures together if the variances scatter no more than by chance, and 0 if there are
            too few figures.
    """

    variance: float = 0.0
    freedom: float = 0.0

    def moderated(self, variance: Value, freedom: Value) -> tuple[Value, Value]:
        """Return the variance of each figure and its degrees of freedom.

        Args:
            variance: the variance of each figure, from its own values. Shape (figures,), or one.
            freedom: the degrees of freedom of `variance`, in the same shape.
        """
        total = freedom + self.freedom
        with np.errstate(invalid="ignore"):
            mean = (self.freedom * self.variance + freedom * variance) / total
        return mean, total


def pooled_noise(
    variance: Floats, freedom: Floats, *, least: int = LEAST_LIKE, caution: float = 0.0
) -> PooledNoise:
    """Return the common variance of like figures.

    Args:
        variance: the variance of each figure. Shape (figures,).
        freedom: the degrees of freedom of each variance. Shape (figures,).
        least: the least number of figures from which the scatter is estimated.
        caution: standard errors that are added to the scatter. With them, few figures that differ
            by chance less than they should do not share their noise.
    """
    from scipy.special import digamma, polygamma  # 0.3 s, which runs without a baseline do not need

    known = freedom > 0
    variance, freedom = variance[known], freedom[known]
    positive = variance[variance > 0]
    if len(variance) < least or not len(positive):
        return PooledNoise()
    variance = np.maximum(variance, LEAST_PART * np.median(positive))
    half = freedom / 2
    logs = np.log(variance) - digamma(half) + np.log(half)
    centre = float(np.mean(logs))
    expected = float(np.mean(polygamma(1, half)))
    wider = 1 + caution * np.sqrt(2 / (len(logs) - 1))
    scatter = float(np.var(logs, ddof=1)) * wider - expected
    if scatter <= 0:
        return PooledNoise(float(np.average(variance, weights=freedom)), float(freedom.sum()))
    half_prior = _inverse_trigamma(scatter)
    common = np.exp(centre + digamma(half_prior) - np.log(half_prior))
    return PooledNoise(float(common), min(2 * half_prior, float(freedom.sum())))


def _inverse_trigamma(value: float) -> float:
    """Return x with ψ'(x) = `value` > 0, by Newton's method for 1 / ψ' (Smyth, appendix)."""
    from scipy.special import polygamma

    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
