"""The interval of a median: its rank, its confidence, and how often it contains the true median."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.judge.confidence import CONFIDENCE, interval

values = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=60)

# Ranks and confidences for 95 %, calculated by hand from sums of binomial coefficients.
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
    bounds = interval(sample)
    assert bounds is not None
    assert bounds[:2] == (rank, count + 1 - rank)
    assert bounds.confidence == pytest.approx(confidence)


@pytest.mark.parametrize("count", [2, 5, 6, 9, 30])
def test_the_interval_contains_the_true_median_with_its_confidence(count: int) -> None:
    """20,000 samples of a skewed distribution with a known median."""
    samples = np.random.default_rng(count).exponential(size=(20_000, count))
    true = np.log(2)
    intervals = [interval(sample) for sample in samples.tolist()]
    inside = np.mean([each is not None and each.low <= true <= each.high for each in intervals])
    assert intervals[0] is not None
    assert abs(inside - intervals[0].confidence) < 0.015


@given(values)
def test_the_interval_contains_the_median_and_is_within_the_range(sample: list[float]) -> None:
    bounds = interval(sample)
    assert bounds is not None
    assert min(sample) <= bounds.low <= median(sample) <= bounds.high <= max(sample)
    assert (bounds.confidence >= CONFIDENCE) == (len(sample) >= 6)


@given(values)
def test_the_interval_does_not_depend_on_the_order(sample: list[float]) -> None:
    assert interval(sample) == interval(sorted(sample))


def test_a_single_measurement_has_no_interval() -> None:
    assert interval([5.0]) is None
