"""Quantiles of Student's t distribution."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np

from proofmark.records.columns import Floats

Freedom = TypeVar("Freedom", float, Floats)


def quantile_of_t(level: float, freedom: Freedom) -> Freedom:
    """Return the value that Student's t exceeds with the probability `level`; NaN for no freedom.

    Args:
        level: of a one-sided test.
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
