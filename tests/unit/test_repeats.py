"""The interval of a median: what drawing resamples would give, without drawing."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.judge.intervals import ASSUMED_NOISE, interval, noise

values = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=25)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 10, 20, 21])
def test_it_is_that_of_two_hundred_thousand_resamples(count: int) -> None:
    numbers = np.random.default_rng(count)
    sample = np.sort(numbers.random(count))
    drawn = np.median(sample[numbers.integers(0, count, (200_000, count))], axis=1)
    found = interval(sample.tolist())
    assert found is not None
    for bound, part in zip(found, (0.025, 0.975), strict=True):
        below, above = np.quantile(drawn, [part - 0.002, part + 0.002])
        assert below - 1e-12 <= bound <= above + 1e-12


@given(values)
def test_it_holds_the_median_and_stays_within_the_range(sample: list[float]) -> None:
    found = interval(sample)
    assert found is not None
    assert min(sample) <= found[0] <= median(sample) <= found[1] <= max(sample)


@given(values)
def test_the_order_says_nothing(sample: list[float]) -> None:
    assert interval(sample) == interval(sorted(sample))


def test_one_measurement_has_no_interval_but_an_assumed_noise() -> None:
    assert interval([5.0]) is None
    assert noise([100.0], 100.0) == (100 * (1 - ASSUMED_NOISE), 100 * (1 + ASSUMED_NOISE))
