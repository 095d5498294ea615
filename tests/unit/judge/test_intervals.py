"""The interval of a median: how often it contains the true one."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.judge.intervals import ASSUMED_NOISE, CONFIDENCE, interval, noise

values = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=60)

# Ranks and confidences for 95 %, worked by hand from sums of binomial coefficients.
KNOWN = {
    2: (1, 1 - 2 / 4),
    3: (1, 1 - 2 / 8),
    5: (1, 1 - 2 / 32),
    6: (1, 1 - 2 / 64),
    8: (1, 1 - 2 / 256),
    9: (2, 1 - 2 * (1 + 9) / 512),
    10: (2, 1 - 2 * (1 + 10) / 1024),
    20: (6, 1 - 2 * (1 + 20 + 190 + 1140 + 4845 + 15504) / 2**20),
}


@pytest.mark.parametrize("count", KNOWN)
def test_ranks_and_confidences_are_those_of_the_binomial_distribution(count: int) -> None:
    rank, confidence = KNOWN[count]
    sample = [float(number) for number in range(1, count + 1)]
    found = interval(sample)
    assert found is not None
    assert found[:2] == (rank, count + 1 - rank)
    assert found.confidence == pytest.approx(confidence)


@pytest.mark.parametrize("count", [2, 5, 6, 9, 30])
def test_the_true_median_is_inside_as_often_as_stated(count: int) -> None:
    """By a skewed distribution, whose median is known: 20,000 samples."""
    samples = np.random.default_rng(count).exponential(size=(20_000, count))
    true = np.log(2)
    found = [interval(sample) for sample in samples.tolist()]
    inside = np.mean([each is not None and each.low <= true <= each.high for each in found])
    assert found[0] is not None
    assert abs(inside - found[0].confidence) < 0.015


@given(values)
def test_it_contains_the_median_and_stays_within_the_range(sample: list[float]) -> None:
    found = interval(sample)
    assert found is not None
    assert min(sample) <= found.low <= median(sample) <= found.high <= max(sample)
    assert (found.confidence >= CONFIDENCE) == (len(sample) >= 6)


@given(values)
def test_the_order_says_nothing(sample: list[float]) -> None:
    assert interval(sample) == interval(sorted(sample))


def test_one_measurement_has_no_interval_but_an_assumed_noise() -> None:
    assert interval([5.0]) is None
    assert noise([100.0], 100.0) == (100 * (1 - ASSUMED_NOISE), 100 * (1 + ASSUMED_NOISE))
