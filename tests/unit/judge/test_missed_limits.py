"""Which limit a judgement misses, and whether repeats agree about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofmark.common.message import NOTHING
from proofmark.judge.confidence import repeats_agree
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


def test_a_failure_without_a_ratio_misses_no_limit() -> None:
    assert replace(MISSED, ratio=None).missed_limit() is None


@pytest.mark.parametrize(
    ("values", "agree"),
    [
        ([80.0, 81.0, 79.0], True),
        ([80.0, 80.1], True),
        ([80.0, 81.0], False),
        ([60.0, 69.0], True),
        ([80.0, 81.0, 95.0], False),
        ([80.0, 81.0, 82.0, 91.0, 79.0], True),
        ([80.0, 81.0, 82.0, 120.0, 79.0], False),
        ([80.0, 95.0], False),
        ([88.0, 70.0, 52.0], False),
        ([75.0], False),
        ([69.0], True),
        ([0.0, 0.0, 0.0], True),
        ([91.0, 92.0, 93.0], False),
        ([], False),
    ],
)
def test_repeats_agree_that_a_level_misses_a_limit(values: list[float], agree: bool) -> None:
    assert repeats_agree(values, 90.0, 90.0, below=True) is agree
    slower = [8100 / each for each in values if each]
    assert repeats_agree(slower, 90.0, 90.0, below=False) is (agree and bool(slower))


def test_one_more_repeat_of_more_than_two_is_needed() -> None:
    """Two of two agree. Of three it takes three: two single slow repeats are frequent."""
    words = [repeats_agree([50.0] * 2 + [100.0] * more, 90.0, 90.0, below=True) for more in (0, 1)]
    assert words == [True, False]


def test_evaluated() -> None:
    assert MISSED.evaluated is True
    assert replace(MISSED, ratio=None).evaluated is False
