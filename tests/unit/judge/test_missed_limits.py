"""Which limit a judgement misses, and whether the miss lies within the noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofmark.common.message import NOTHING
from proofmark.judge.references.judgement import Judgement

MISSED = Judgement("contract", "s", "FAIL", NOTHING, 100.0, 0.8, 0.9, 1.1)


@pytest.mark.parametrize(
    ("ratio", "at_least", "at_most", "missed"),
    [
        (0.8, 0.9, 1.1, 0.9),
        (1.2, 0.9, 1.1, 1.1),
        (0.9, 0.9, 0.5, 0.5),
        (1.2, None, 1.1, 1.1),
        (0.8, 0.9, None, 0.9),
    ],
)
def test_the_missed_limit_is_the_one_on_the_side_of_the_ratio(
    ratio: float, at_least: float | None, at_most: float | None, missed: float
) -> None:
    judgement = replace(MISSED, ratio=ratio, at_least=at_least, at_most=at_most)
    assert judgement.missed_limit() == missed


@pytest.mark.parametrize("outcome", ["PASS", "UNJUDGED"])
def test_only_a_failure_misses_a_limit(outcome: str) -> None:
    judgement = replace(MISSED, outcome=outcome)
    assert judgement.missed_limit() is None
    assert judgement.within_noise([80.0, 80.0, 80.0]) is True


def test_a_failure_without_a_ratio_misses_no_limit() -> None:
    assert replace(MISSED, ratio=None).missed_limit() is None
    assert replace(MISSED, value=None).within_noise([80.0, 81.0, 82.0]) is True


@pytest.mark.parametrize(
    ("values", "within"),
    [
        ([80.0, 90.0, 70.0], True),
        ([80.0, 89.0, 70.0], False),
        ([80.0, 81.0, 79.0], False),
        ([95.0, 80.0, 79.0], True),
    ],
)
def test_a_miss_is_within_the_noise_if_the_limit_is(values: list[float], within: bool) -> None:
    assert MISSED.within_noise(values) is within


def test_the_ratios_within_the_repeats_count_more_than_the_values() -> None:
    judgement = replace(MISSED, ratios=(0.8, 0.95, 0.7))
    assert judgement.within_noise([80.0, 80.0, 80.0]) is True
    assert replace(MISSED, ratios=(0.8, 0.8, 0.8)).within_noise([80.0, 95.0, 70.0]) is False


def test_a_limit_at_either_end_of_the_noise_is_within_it() -> None:
    high = replace(MISSED, ratio=1.2)
    assert high.within_noise([110.0, 120.0, 130.0]) is True
    assert high.within_noise([111.0, 120.0, 130.0]) is False


def test_evaluated() -> None:
    assert MISSED.evaluated is True
    assert replace(MISSED, ratio=None).evaluated is False
