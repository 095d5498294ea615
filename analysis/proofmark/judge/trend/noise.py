"""The noise of a series from its own values and from like series: the moderated variance.

A short series alone shows its noise badly. Like series have similar noise. The variance of each
series is drawn towards the common variance of its family, with a weight that is measured: the more
the variances of the family differ, the less the common variance counts.

Source: Smyth, Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments, Statistical Applications in Genetics and Molecular Biology 3 (2004),
sections 4 and 6.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proofmark.records.columns import Floats

LEAST_FAMILY = 3
"""The least number of series from which a common variance is estimated."""
_SHIFT = 6.0
"""The asymptotic series of digamma and trigamma are exact to 1e-7 from this argument on."""


@dataclass(frozen=True)
class Prior:
    """The common variance of a family of series, and its weight in degrees of freedom.

    With a weight of 0 each series has only its own variance.
    """

    variance: float = 0.0
    freedom: float = 0.0

    def moderated(self, variance: float, freedom: float) -> tuple[float, float]:
        """Return the variance of a series and its degrees of freedom, with those of the family.

        Args:
            variance: of the series alone.
            freedom: its degrees of freedom.
        """
        total = self.freedom + freedom
        return (self.freedom * self.variance + freedom * variance) / total, total


def fit_prior(variances: Floats, freedoms: Floats) -> Prior:
    """Return the common variance of a family, by the moments of the logarithms (Smyth, 6.2).

    Args:
        variances: of the series. Those that are 0 are left out.
        freedoms: their degrees of freedom. Both have the shape (series,).
    """
    known = variances > 0
    variances, freedoms = variances[known], freedoms[known]
    if len(variances) < LEAST_FAMILY:
        return Prior()
    half = freedoms / 2
    logs = np.log(variances) - digamma(half) + np.log(half)
    centre = float(logs.mean())
    # One standard error is added: a small family shows badly how much its variances differ.
    spread = float(logs.var(ddof=1)) * (1 + math.sqrt(2 / (len(logs) - 1)))
    excess = spread - float(trigamma(half).mean())
    most = float(freedoms.sum())
    if excess <= 0:
        return Prior(math.exp(centre), most)
    freedom = min(most, 2 * trigamma_inverse(excess))
    half_prior = np.array([freedom / 2])
    variance = math.exp(centre + float(digamma(half_prior)[0]) - math.log(freedom / 2))
    return Prior(variance, freedom)


def digamma(values: Floats) -> Floats:
    """Return the derivative of log gamma of positive values (Abramowitz and Stegun, 6.3.5, 18)."""
    total, argument = np.zeros_like(values), values.astype(np.float64)
    while (small := argument < _SHIFT).any():
        total = np.where(small, total - 1 / argument, total)
        argument = np.where(small, argument + 1, argument)
    square = 1 / argument**2
    tail = square * (1 / 12 - square * (1 / 120 - square / 252))
    result: Floats = total + np.log(argument) - 1 / (2 * argument) - tail
    return result


def trigamma(values: Floats) -> Floats:
    """Return the derivative of `digamma` of positive values (Abramowitz and Stegun, 6.4.6, 12)."""
    total, argument = np.zeros_like(values), values.astype(np.float64)
    while (small := argument < _SHIFT).any():
        total = np.where(small, total + 1 / argument**2, total)
        argument = np.where(small, argument + 1, argument)
    square = 1 / argument**2
    tail = square / argument * (1 / 6 - square * (1 / 30 - square / 42))
    result: Floats = total + 1 / argument + square / 2 + tail
    return result


def trigamma_inverse(value: float) -> float:
    """Return the argument at which `trigamma` is `value`, a positive number, by bisection."""
    low, high = -20.0, 20.0  # of the logarithm; trigamma decreases
    for _ in range(80):
        middle = (low + high) / 2
        if float(trigamma(np.array([math.exp(middle)]))[0]) > value:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)
