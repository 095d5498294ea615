"""By how much the true level of a figure can miss its limit, by the noise of its repeats."""

from __future__ import annotations

import math
from statistics import median, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.judge.test_references import figures
from tests.unit.judge.test_verdict import record, reference

from proofmark.common.message import Message
from proofmark.judge.confidence import (
    FACTOR_AT_ANY_NOISE,
    MOST_REPEATS,
    OneRepeat,
    enough_repeats,
    median_variance,
    noise_in,
    possible_miss,
)
from proofmark.judge.references.figure_comparison import Comparison, Figure
from proofmark.judge.references.judgement import Judgement

RATIOS = st.lists(st.floats(0.2, 5), min_size=2, max_size=9)
MATERIAL = 0.1


def judged(values: list[float], **changes: Any) -> Judgement:
    """Return the judgement of a figure by the limit of 90 MB/s, or another one."""
    figure = Figure(record(), median(values), values, material=MATERIAL)
    return Comparison(figures([]), {}).judge(figure, reference(**changes))


class TestBeyond:
    def test_it_is_that_of_the_equation(self) -> None:
        """Three repeats: t of 2 degrees of freedom is 2.92 at 95 %, one-sided."""
        ratios = [0.9, 1.0, 1.1]
        error = stdev(map(math.log, ratios)) * math.sqrt(median_variance(3) / 3)
        expected = 1 - math.exp(math.log(1.0 / 0.95) - 2.919986 * error)
        assert possible_miss(ratios, 1.0, 0.95, least=True) == pytest.approx(expected, rel=1e-5)

    def test_the_median_of_two_is_their_mean(self) -> None:
        """T of one degree of freedom is 6.31."""
        error = stdev([math.log(1.0), math.log(1.02)]) / math.sqrt(2)
        expected = math.expm1(6.313752 * error - math.log(1 / 1.01))
        assert possible_miss([1.0, 1.02], 1.01, 1.0, least=False) == pytest.approx(
            expected, rel=1e-5
        )

    def test_a_single_repeat_has_no_noise(self) -> None:
        assert possible_miss([1.0], 1.0, 0.9, least=True) is None
        assert possible_miss([1.0], 1.0, 0.9, least=True, once=OneRepeat(0.0)) is None
        with pytest.raises(ValueError, match="no noise"):
            enough_repeats([1.0], 1.0, 0.9, 0.1, least=True)

    def test_a_single_repeat_has_the_noise_that_others_show(self) -> None:
        """The 95th percentile of the normal distribution is 1.645, that of t with three 2.353."""
        for once, quantile in ((OneRepeat(0.05), 1.644854), (OneRepeat(0.05, 3.0), 2.353363)):
            expected = -math.expm1(math.log(1.0 / 0.97) - quantile * 0.05)
            found = possible_miss([1.0], 1.0, 0.97, least=True, once=once)
            assert found == pytest.approx(expected, rel=1e-5)

    def test_equal_repeats_miss_nothing(self) -> None:
        assert possible_miss([1.0] * 3, 1.0, 1.0, least=True) == 0
        assert possible_miss([1.0] * 3, 1.0, 1.0, least=False) == 0

    def test_a_repeat_of_0_misses_the_least_limit_wholly(self) -> None:
        assert possible_miss([1.0, 1.0, 0.0], 1.0, 0.9, least=True) == 1
        assert possible_miss([0.0, 0.0, 0.0], 0.0, 0.9, least=False) is None
        assert math.isinf(enough_repeats([1.0, 1.0, 0.0], 1.0, 0.9, 0.1, least=True))

    @given(RATIOS, st.floats(0.1, 10), st.booleans())
    def test_it_is_a_part_of_the_limit(
        self, ratios: list[float], limit: float, least: bool
    ) -> None:
        found = possible_miss(ratios, median(ratios), limit, least=least)
        assert found is not None and found >= 0
        assert not least or found <= 1
        assert math.isfinite(found)

    @given(st.lists(st.sampled_from([1e-300, 1.0, 1e300]), min_size=2, max_size=5))
    def test_no_noise_is_too_large(self, ratios: list[float]) -> None:
        assert possible_miss(ratios, 1.0, 1.0, least=True) <= 1  # type: ignore[operator]
        assert math.isfinite(possible_miss(ratios, 1.0, 1.0, least=False) or 0)
        enough_repeats(ratios, 1.0, 1.0, 0.1, least=True)

    @given(RATIOS, st.floats(0.1, 10))
    def test_a_further_limit_is_missed_by_less(self, ratios: list[float], limit: float) -> None:
        middle = median(ratios)
        near, far = (
            possible_miss(ratios, middle, each, least=True) for each in (limit, limit / 1.1)
        )
        assert near is not None and far is not None
        assert far <= near

    @given(RATIOS, st.floats(1.01, 3))
    def test_more_noise_misses_by_more(self, ratios: list[float], times: float) -> None:
        """The logarithms are moved away from their median."""
        middle = median(ratios)
        noisier = [middle * (each / middle) ** times for each in ratios]
        quiet, loud = (
            possible_miss(each, middle, middle * 0.9, least=True) for each in (ratios, noisier)
        )
        assert quiet is not None and loud is not None
        assert loud >= quiet - 1e-9

    @given(RATIOS, st.floats(0.1, 10), st.floats(1e-3, 1e3))
    def test_the_unit_of_the_limit_does_not_matter(
        self, ratios: list[float], limit: float, unit: float
    ) -> None:
        one = possible_miss(ratios, median(ratios), limit, least=True)
        scaled = [each * unit for each in ratios]
        other = possible_miss(scaled, median(scaled), limit * unit, least=True)
        assert one == pytest.approx(other, abs=1e-9)


class TestEnough:
    @given(RATIOS, st.floats(0.5, 1), st.floats(0.02, 0.5), st.booleans())
    def test_it_is_the_least_number_that_suffices(
        self, ratios: list[float], share: float, material: float, least: bool
    ) -> None:
        middle = median(ratios)
        limit = middle * share if least else middle / share
        assume((possible_miss(ratios, middle, limit, least=least) or 0) > material)
        found = enough_repeats(ratios, middle, limit, material, least=least)

        def misses(count: int) -> float:
            """Return the same with as many repeats of the same noise, by the equation."""
            from scipy.stats import t

            error = stdev(map(math.log, ratios)) * math.sqrt(median_variance(count) / count)
            half = t.isf(0.05, count - 1) * error
            margin = -math.log(share) - half
            return -math.expm1(margin) if least else math.expm1(-margin)

        if math.isinf(found):
            assert misses(MOST_REPEATS) > material - 1e-9
        else:
            assert len(ratios) < found <= MOST_REPEATS
            assert misses(int(found)) <= material + 1e-9
            assert found == len(ratios) + 1 or misses(int(found) - 1) > material - 1e-9

    def test_noise_that_no_number_of_repeats_averages(self) -> None:
        assert math.isinf(enough_repeats([1e-3, 1.0, 1e3], 1.0, 1.0, 0.01, least=True))


@pytest.mark.parametrize("least", [True, False])
@pytest.mark.parametrize("repeats", [2, 3, 5, 9])
def test_the_true_level_is_within_the_stated_part_95_times_of_100(
    repeats: int, least: bool
) -> None:
    """2,000 simulated figures whose true ratio is 1; 6.5 % is three errors above 5 %."""
    random = np.random.default_rng([repeats, least])
    samples = np.exp(0.05 * random.standard_normal((2000, repeats)))
    # A limit so far on the wrong side that each figure can miss it.
    limit = 10 if least else 0.1
    worse = 0
    for sample in samples.tolist():
        part = possible_miss(sample, median(sample), limit, least=least)
        assert part is not None
        if least:
            worse += limit * (1 - part) * (1 - 1e-12) > 1
        else:
            worse += limit * (1 + part) * (1 + 1e-12) < 1
    assert worse / len(samples) <= 0.065
    assert worse / len(samples) >= 0.005, "the bound is not so wide that it says nothing"


class TestJudgement:
    def test_quiet_repeats_pass_and_state_what_they_leave_open(self) -> None:
        found = judged([99.0, 100.0, 101.0, 100.0, 99.5])
        assert (found.outcome, found.reason.code) == ("PASS", "limit-confidence")
        assert found.visible == 0
        close = judged([89.5, 90.0, 90.5])
        assert close.outcome == "PASS"
        assert close.visible is not None and 0 < close.visible <= MATERIAL
        assert (
            "with 95 % confidence the true level is at most 1.1 % beyond the limit" in close.reason
        )

    def test_noisy_repeats_are_unjudged_with_the_number_that_suffices(self) -> None:
        values = [50.0, 100.0, 150.0]
        found = judged(values)
        assert (found.outcome, found.reason.code) == ("UNJUDGED", "limit-noisy")
        assert found.visible is not None and found.visible > MATERIAL
        needed = enough_repeats([0.5, 1, 1.5], 1, 0.9, MATERIAL, least=True)
        assert f"10 % is material; about {needed} repeats are needed" in found.reason
        never = noise_in(judged([1.0, 100.0, 1e4]).reason)
        assert never.fields["needed"] == Message("needs-none", most=MOST_REPEATS)

    def test_a_level_far_above_the_limit_may_be_noisy(self) -> None:
        assert judged([500.0, 1000.0, 1500.0]).outcome == "PASS"

    def test_noise_does_not_excuse_a_miss(self) -> None:
        found = judged([10.0, 80.0, 150.0])
        assert (found.outcome, found.visible) == ("FAIL", None)

    def test_a_single_measurement_passes_and_states_nothing(self) -> None:
        found = judged([100.0])
        assert (found.outcome, found.visible, found.reason.code) == ("PASS", None, "least-met")

    @pytest.mark.parametrize(
        ("at_least", "at_most", "outcome"),
        [(0.1, None, "PASS"), (None, 10, "PASS"), (0.1, 1.01, "UNJUDGED"), (0.99, 10, "UNJUDGED")],
    )
    def test_each_of_two_limits_counts(
        self, at_least: float | None, at_most: float | None, outcome: str
    ) -> None:
        found = judged([80.0, 100.0, 120.0], at_least=at_least, at_most=at_most)
        assert found.outcome == outcome

    @given(st.lists(st.floats(10, 1000), min_size=1, max_size=7), st.floats(0.02, 0.5))
    def test_a_pass_never_hides_more_than_the_material_change(
        self, values: list[float], material: float
    ) -> None:
        figure = Figure(record(), median(values), values, material=material)
        found = Comparison(figures([]), {}).judge(figure, reference())
        if median(values) < 90:
            assert found.outcome == "FAIL"
        elif len(values) == 1:
            assert (found.outcome, found.visible) == ("PASS", None)
        elif found.visible is None:
            assert (found.outcome, found.reason.code) == ("PASS", "limit-far")
            assert min(values) >= FACTOR_AT_ANY_NOISE * 90
        else:
            assert (found.outcome == "PASS") is (found.visible <= material)

    def test_the_material_change_is_that_of_the_metric(self) -> None:
        values = [80.0, 100.0, 105.0, 95.0, 110.0]
        outcomes = {
            material: Comparison(figures([]), {})
            .judge(Figure(record(), 100.0, values, material=material), reference(at_least=1))
            .outcome
            for material in (0.02, 0.5)
        }
        assert outcomes == {0.02: "UNJUDGED", 0.5: "PASS"}
