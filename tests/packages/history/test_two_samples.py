"""The ratio of two samples: its estimate, and how often its interval contains the true ratio."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from math import comb, exp, sqrt
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.judge.confidence import CONFIDENCE, POWER, Interval
from proofmark.packages.history.two_samples import (
    EXACT_PAIRS,
    change_seen,
    ratio,
    ratio_interval,
    shift_seen,
)

samples = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=30)

# Critical values of U, two-sided 5 %, from tables of the Mann-Whitney test.
CRITICAL = {
    (4, 4): 0,
    (3, 5): 0,
    (5, 5): 2,
    (6, 6): 5,
    (5, 10): 8,
    (8, 8): 13,
    (10, 10): 23,
    (20, 20): 127,
}


def distinct(first: int, later: int) -> tuple[list[float], list[float]]:
    """Return samples of these sizes of which each pair has another ratio."""
    return [1 + 1e-6 * n for n in range(first)], [1 + 1e-3 * n for n in range(later)]


def interval_of(first: list[float], later: list[float]) -> Interval:
    interval = ratio_interval(first, later)
    assert interval is not None
    return interval


@pytest.mark.parametrize(("sizes", "critical"), CRITICAL.items())
def test_the_bounds_have_the_rank_after_the_critical_value(
    sizes: tuple[int, int], critical: int
) -> None:
    first, later = distinct(*sizes)
    ratios = sorted(y / x for x, y in itertools.product(first, later))
    interval = interval_of(first, later)
    assert interval.low == pytest.approx(ratios[critical], rel=1e-12)
    assert interval.high == pytest.approx(ratios[-1 - critical], rel=1e-12)
    assert interval.confidence >= CONFIDENCE


@pytest.mark.parametrize("sizes", [(2, 2), (2, 7), (3, 3), (3, 6), (5, 4), (6, 6)])
def test_the_confidence_is_that_of_all_arrangements_of_ranks(sizes: tuple[int, int]) -> None:
    first, later = distinct(*sizes)
    interval = interval_of(first, later)
    ratios = sorted(y / x for x, y in itertools.product(first, later))
    rank = bisect_left(ratios, interval.low * (1 - 1e-12)) + 1
    places = range(sum(sizes))
    outside = 0
    for chosen in itertools.combinations(places, sizes[0]):
        others = set(places).difference(chosen)
        outside += sum(other < one for one in chosen for other in others) < rank
    assert interval.confidence == pytest.approx(1 - 2 * outside / comb(sum(sizes), sizes[0]))


@pytest.mark.parametrize(("sizes", "confidence"), [((2, 2), 2 / 3), ((3, 4), 33 / 35)])
def test_small_samples_have_the_range_and_less_confidence(
    sizes: tuple[int, int], confidence: float
) -> None:
    first, later = distinct(*sizes)
    interval = interval_of(first, later)
    assert interval[:2] == pytest.approx((min(later) / max(first), max(later) / min(first)))
    assert interval.confidence == pytest.approx(confidence)


@pytest.mark.parametrize("sizes", [([100.0], [50.0, 51.0]), ([50.0, 51.0], [100.0])])
def test_a_single_value_has_a_ratio_without_interval(
    sizes: tuple[list[float], list[float]],
) -> None:
    first, later = sizes
    assert ratio_interval(first, later) is None
    assert ratio(first, later) == pytest.approx(sqrt(later[0] * later[-1] / first[0] / first[-1]))


@pytest.mark.parametrize("sizes", [(3, 3), (4, 7), (12, 10)])
def test_the_true_ratio_is_inside_as_often_as_stated(sizes: tuple[int, int]) -> None:
    """By a skewed distribution: 2,000 pairs of samples, whose true ratio is 1.1."""
    generator = np.random.default_rng(sum(sizes))
    inside = 0
    for _ in range(2000):
        first = generator.exponential(size=sizes[0]).tolist()
        later = (1.1 * generator.exponential(size=sizes[1])).tolist()
        interval = interval_of(first, later)
        inside += interval.low <= 1.1 <= interval.high
    assert abs(inside / 2000 - interval.confidence) < 0.015


def test_many_values_have_the_normal_approximation() -> None:
    """The rank of the bounds is within one of the exact one, and no pairs are listed."""
    exact = round(sqrt(EXACT_PAIRS))
    generator = np.random.default_rng(7)
    first, later = generator.lognormal(0, 0.1, (2, exact)).tolist()
    below, above = interval_of(first, later), interval_of(first, [*later, exp(0)])
    assert above.low == pytest.approx(below.low, rel=0.002)
    assert above.high == pytest.approx(below.high, rel=0.002)
    assert above.confidence == pytest.approx(CONFIDENCE, abs=0.001)
    fleet = generator.lognormal(0, 0.1, (2, 20_000))
    interval = interval_of(fleet[0].tolist(), (1.01 * fleet[1]).tolist())
    assert interval.low <= 1.01 <= interval.high
    assert interval.high / interval.low == pytest.approx(
        exp(2 * 1.96 * 0.1 * sqrt(2 / 20_000)), 1e-3
    )


@given(samples, samples)
def test_the_interval_contains_the_ratio_and_is_within_the_range(
    first: list[float], later: list[float]
) -> None:
    interval = interval_of(first, later)
    least, most = min(later) / max(first), max(later) / min(first)
    assert interval.low <= ratio(first, later) <= interval.high
    assert least * (1 - 1e-12) <= interval.low <= interval.high <= most * (1 + 1e-12)


@given(samples, samples)
def test_the_ratio_is_the_median_of_all_pairs(first: list[float], later: list[float]) -> None:
    logs = [np.log(y / x) for x, y in itertools.product(first, later)]
    assert ratio(first, later) == pytest.approx(exp(median(logs)))


@given(samples, samples)
def test_swapped_samples_have_the_inverse_ratio(first: list[float], later: list[float]) -> None:
    forth, back = interval_of(first, later), interval_of(later, first)
    assert ratio(later, first) == pytest.approx(1 / ratio(first, later), rel=1e-12)
    assert back.low == pytest.approx(1 / forth.high, rel=1e-12)
    assert back.high == pytest.approx(1 / forth.low, rel=1e-12)
    assert back.confidence == forth.confidence


@given(samples, samples, st.floats(0.01, 100))
def test_a_scaled_sample_scales_the_interval(
    first: list[float], later: list[float], scale: float
) -> None:
    scaled = [value * scale for value in later]
    before, after = interval_of(first, later), interval_of(first, scaled)
    assert ratio(first, scaled) == pytest.approx(scale * ratio(first, later), rel=1e-12)
    assert after.low == pytest.approx(scale * before.low, rel=1e-12)
    assert after.high == pytest.approx(scale * before.high, rel=1e-12)
    assert after.confidence == before.confidence


@given(st.lists(st.sampled_from([9.9, 10.0, 10.1, 30.0]), min_size=4, max_size=12))
def test_equal_samples_with_ties_contain_a_ratio_of_exactly_1(values: list[float]) -> None:
    interval = interval_of(values, values[::-1])
    assert interval.low <= 1 <= interval.high
    assert ratio(values, values[::-1]) == 1


WITHIN = (0.9, 1.0, 1.1)
"""Parts of a stated change: the change that is seen in 95 of 100 cases lies between the outer."""


class TestRuns:
    @pytest.mark.parametrize("counts", [(4, 4), (3, 8), (10, 10), (20, 20)])
    def test_the_stated_change_of_two_runs_is_right_within_ten_percent(
        self, counts: tuple[int, int]
    ) -> None:
        random = np.random.default_rng(2)
        trials, spread = 300, 0.02
        found = dict.fromkeys(WITHIN, 0)
        for _ in range(trials):
            first, later = (np.exp(spread * random.standard_normal(each)) for each in counts)
            for part in WITHIN:
                slower = later * math.exp(-part * spread * shift_seen(*counts))
                bounds = ratio_interval(first.tolist(), slower.tolist())
                found[part] += bool(bounds and bounds.high < 1)
        assert found[0.9] < POWER * trials < found[1.1]

    def test_the_noise_of_the_values_gives_the_change(self) -> None:
        random = np.random.default_rng(3)
        samples = np.exp(0.02 * random.standard_normal((200, 2, 8)))
        stated = [change_seen(first, later, 0.1)[0] for first, later in samples.tolist()]
        assert np.median(stated) == pytest.approx(-math.expm1(-0.02 * shift_seen(8, 8)), rel=0.1)
