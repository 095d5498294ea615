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
