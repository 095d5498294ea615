"""Nominal Rpeak: the equations of the papers, to the last digit."""

from __future__ import annotations

import pytest
from tests.fixtures.probes import node_facts

from proofmark.judge.references.derived import peak


@pytest.mark.parametrize(
    ("probe", "rate"),
    [("knl-7250-quadrant-flat", 3046.4), ("skl-2x6148", 3072.0)],
    ids=["equation 1: Xeon Phi 7250", "equation 2: two Xeon Gold 6148"],
)
def test_peak_from_the_facts_of_a_node(probe: str, rate: float) -> None:
    assert peak(node_facts(probe)) == pytest.approx(rate, rel=1e-12)


def test_with_an_unknown_frequency_the_peak_is_unknown() -> None:
    assert peak(node_facts("live-kvm-zen3")) is None
