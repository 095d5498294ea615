"""Claims on noise: an effect needs a proof by the repeats, and so does an equality."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.claims import KNL, SUBJECTS, count
from tests.fixtures import sweeps as data
from tests.fixtures.sweeps import Machine, Placing
from tests.packages.papers.test_claims import answer_to

from proofmark.packages.papers.claim import (
    Estimate,
    Noise,
    effect_size,
    either,
    every,
    fall_to,
    mostly,
    steepest_fall,
)

TRIALS = 2
"""Trials of each kind. ``python -m tests.bench.claims`` has 200."""
FOUND = st.sampled_from([True, False, None])


@pytest.mark.fault("claim-without-effect")
@pytest.mark.parametrize("claim", [name for name, subject in SUBJECTS.items() if subject.none])
def test_a_claim_about_an_effect_does_not_hold_without_it(claim: str) -> None:
    """The noise is four times that of the control."""
    assert count(claim, "without", 4 * SUBJECTS[claim].noise, TRIALS).held == 0


@pytest.mark.parametrize("claim", SUBJECTS)
def test_a_claim_holds_with_the_effect_of_the_paper(claim: str) -> None:
    assert count(claim, "with", SUBJECTS[claim].noise, TRIALS).held == TRIALS


@pytest.mark.fault("claim-of-equality-in-noise")
@pytest.mark.parametrize("claim", [n for n, subject in SUBJECTS.items() if subject.tolerance])
def test_equality_does_not_hold_if_the_noise_is_larger_than_the_tolerance(claim: str) -> None:
    noise = 1.5 * (SUBJECTS[claim].tolerance or 0.0)
    assert count(claim, "noisy", noise, TRIALS).held == 0


@pytest.mark.fault("claim-spread-worse")
@pytest.mark.parametrize("seed", range(3))
def test_c21_does_not_hold_if_spread_is_two_percent_worse(seed: int) -> None:
    machine = Machine(68, 0.01, seed)
    worse = data.placements(machine, Placing(0.98, copy_after=0.98, after=0.98, end=0.98))
    answer = answer_to("C2.1", worse.table(), machine)
    assert answer.word == "does not hold", answer.sentence


@pytest.mark.parametrize("seed", range(3))
def test_c21_holds_if_spread_is_better(seed: int) -> None:
    machine = Machine(68, 0.01, seed)
    answer = answer_to("C2.1", data.placements(machine).table(), machine)
    assert answer.word == "holds", answer.sentence


@pytest.mark.fault("claims-measured-once")
@pytest.mark.parametrize("claim", ["C1.1", "C2.1", "C4.2"])
def test_a_claim_cannot_be_told_from_figures_that_were_measured_once(claim: str) -> None:
    answer = answer_to(claim, _table(claim).filter(pl.col("repeat") == 1), KNL)
    assert answer.word == "cannot be told"
    assert "measured once" in answer.sentence


@pytest.mark.parametrize("claim", ["C1.1", "C2.1", "C4.2"])
def test_a_claim_holds_from_repeated_figures(claim: str) -> None:
    answer = answer_to(claim, _table(claim), KNL)
    assert answer.word == "holds", answer.sentence
    assert answer.numbers["noise"] == pytest.approx(SUBJECTS[claim].noise, rel=0.2)


def _table(claim: str) -> pl.DataFrame:
    makers: dict[str, Any] = {"C1.1": data.hpl_knl, "C2.1": data.placements, "C4.2": data.bt_io}
    cores = SUBJECTS[claim].cores
    table: pl.DataFrame = makers[claim](Machine(cores, SUBJECTS[claim].noise)).table()
    return table


@pytest.mark.fault("claims-of-p2-choose-their-memory")
@pytest.mark.parametrize("memory", ["ddr", "mcdram"])
@pytest.mark.parametrize("claim", ["C2.1", "C2.2", "C2.3", "C2.4"])
def test_one_memory_decides_all_claims_of_p2(claim: str, memory: str) -> None:
    """The effect is only in one memory; MCDRAM decides."""
    machine = Machine(68, 0.005)
    if claim == "C2.4":
        true = data.two_threads_a_core(machine)
        contrary = data.two_threads_a_core(machine, to=1.0, end=1.0)
    else:
        true = data.placements(machine)
        contrary = data.placements(machine, Placing(0.8, copy_after=0.8, after=0.8, end=0.8))
    here = pl.col("parameters").str.contains(f'"memory": "{memory}"')
    table = pl.concat([true.table().filter(here), contrary.table().filter(~here)])
    answer = answer_to(claim, table, machine)
    assert answer.word == ("holds" if memory == "mcdram" else "does not hold"), answer.sentence
    assert f"{memory}, " in answer.sentence


@pytest.mark.parametrize("claim", ["C2.1", "C2.2", "C2.3", "C2.4"])
def test_the_claims_of_p2_hold_if_both_memories_agree(claim: str) -> None:
    machine = Machine(68, 0.005)
    sheet = data.two_threads_a_core if claim == "C2.4" else data.placements
    answer = answer_to(claim, sheet(machine).table(), machine)
    assert answer.word == "holds", answer.sentence


@given(st.floats(-3, 3), st.floats(0, 2), st.floats(0.1, 10))
def test_a_finding_is_made_only_outside_of_the_interval(
    value: float, margin: float, ratio: float
) -> None:
    estimate = Estimate(value, margin)
    hidden = value - margin < math.log(ratio) <= value + margin
    assert (estimate.at_least(ratio) is None) == hidden
    if not hidden:
        assert estimate.at_least(ratio) == (value >= math.log(ratio))


@given(st.lists(FOUND, min_size=1))
def test_findings_are_combined_as_three_valued_logic(findings: list[bool | None]) -> None:
    numbers = [{True: 1.0, False: 0.0, None: 0.5}[each] for each in findings]
    words = {1.0: True, 0.0: False, 0.5: None}
    assert every(*findings) is words[min(numbers)]
    assert either(*findings) is words[max(numbers)]
    assert mostly(findings, 1.0) is words[min(numbers)]


def test_most_findings_decide() -> None:
    assert mostly([True] * 9 + [False], 0.9) is True
    assert mostly([True] * 8 + [False] * 2, 0.9) is False
    assert mostly([True] * 8 + [None, False], 0.9) is None


@given(st.integers(1, 50), st.integers(1, 5), st.floats(0.001, 1))
def test_more_repeats_and_more_freedom_narrow_the_interval(
    freedom: int, repeats: int, deviation: float
) -> None:
    here = Noise(deviation, repeats, freedom).margin(1.0)
    assert Noise(deviation, repeats + 1, freedom).margin(1.0) < here
    assert Noise(deviation, repeats, freedom + 1).margin(1.0) < here
    assert Noise(deviation, repeats, freedom).margin(1.0, tests=2) > here


def test_the_size_of_an_effect_leaves_out_the_noise() -> None:
    noise = Noise(0.1, 3, 400)
    only_noise = math.sqrt(2) * noise.of_point
    logs = [only_noise, -only_noise] * 50
    size = effect_size(logs, noise)
    assert size.least == 0.0
    assert size.likely == pytest.approx(0.0, abs=1e-6)
    assert 0 < size.greatest < only_noise
    assert effect_size([0.3] * 100, Noise()).least == pytest.approx(math.expm1(0.3))


def test_a_fall_whose_place_the_noise_hides_has_several_places() -> None:
    line = [(float(x), 1.0 if x < 10 else 0.9) for x in range(20)]
    assert steepest_fall(line, 3, Noise(0.005, 3, 100)).places == ((9.0, 10.0),)
    hidden = steepest_fall(line, 3, Noise(0.2, 3, 100))
    assert len(hidden.places) > 1
    assert hidden.size.at_most(0.95) is None
    assert fall_to(line, 10.0, 3, Noise()).ratio == pytest.approx(0.9)
    with pytest.raises(ValueError, match="no point before"):
        fall_to(line, 0.0, 3, Noise())
