"""Quantiles of Student's t are those of the tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from proofmark.judge.confidence import quantile_of_t


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [
        (0.025, 1, 12.706),
        (0.005, 2, 9.925),
        (0.025, 3, 3.182),
        (0.025, 4, 2.776),
        (0.05, 10, 1.812),
        (0.0005, 15, 4.073),
        (0.025, 30, 2.042),
        (0.025, 120, 1.980),
        (0.005, 200, 2.601),
        (0.005, 1000, 2.581),
    ],
)
def test_a_quantile_is_that_of_the_tables(level: float, freedom: float, expected: float) -> None:
    """Values of Abramowitz and Stegun, table 26.10."""
    assert quantile_of_t(level, freedom) == pytest.approx(expected, abs=6e-4)


def test_no_freedom_has_no_quantile() -> None:
    assert math.isnan(quantile_of_t(0.01, 0.0))
    found = quantile_of_t(0.025, np.array([0.0, 4.0]))
    assert found == pytest.approx([math.nan, 2.776], abs=1e-3, nan_ok=True)
