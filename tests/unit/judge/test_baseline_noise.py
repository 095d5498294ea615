"""The pooled noise of like figures, and the errors of the comparison in simulated runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples

from proofmark.common.message import Message
from proofmark.judge.baseline import BaselineComparison, compare_with_baseline
from proofmark.judge.change_limits import (
    FIGURE,
    LEAST_LIKE,
    LOWER,
    MATERIAL,
    PooledNoise,
    _inverse_trigamma,
    pooled_noise,
)
from proofmark.judge.confidence import noise_in
from proofmark.records.columns import Floats
from proofmark.site.accepted_baseline import COLUMNS, AcceptedRun, Baseline

FIGURES, SIZES = 400, 100
"""Figures of a simulated run, and those of one case."""


def run_of(levels: Floats, spread: Floats, repeats: int, seed: int, name: str) -> pl.DataFrame:
    """Return the table of a simulated run: `spread` is the coefficient of variation of a repeat."""
    noise = np.random.default_rng(seed).standard_normal((len(levels), repeats))
    number = np.repeat(np.arange(len(levels)), repeats)
    cases = [f"c{each}" for each in number // SIZES]
    texts = {"metric": "m", "unit": "u", "origin": "measured", "mode": "m", "placement": "p"}
    columns = {
        **{name: [text] * len(number) for name, text in texts.items()},
        "run": [name] * len(number),
        "case": cases,
        "benchmark": cases,
        "parameters": [f"{each}" for each in number],
        "program": ["x"] * len(number),
        "node": ["n1"] * len(number),
        "kind": ["1 × x"] * len(number),
        "value": np.exp(np.log(levels)[:, None] + spread[:, None] * noise).ravel(),
        FIGURE: number,
        LOWER: [False] * len(number),
        MATERIAL: [0.1] * len(number),
    }
    return pl.DataFrame(columns).select(*COLUMNS, FIGURE, LOWER, MATERIAL)


def compared(run: pl.DataFrame, accepted: pl.DataFrame, level: float = 0.01) -> BaselineComparison:
    about = AcceptedRun(
        run="a",
        accepted=datetime(2026, 1, 1, tzinfo=UTC),
        signer="s",
        checksums="c",
        verdict="PASS",
    )
    state = Baseline(
        name="a", site="s", partition="p", origin="measured", runs=(about,), nodes=(), figures="f"
    )
    return compare_with_baseline(run, state, accepted.select(*COLUMNS), FIGURES, level)


def test_the_inverse_of_the_trigamma_function() -> None:
    """Values of Abramowitz and Stegun, table 6.1: ψ'(1) = π² / 6, ψ'(2) = π² / 6 − 1."""
    assert _inverse_trigamma(np.pi**2 / 6) == pytest.approx(1, rel=1e-6)
    assert _inverse_trigamma(np.pi**2 / 6 - 1) == pytest.approx(2, rel=1e-6)
    assert _inverse_trigamma(1e8) == pytest.approx(1e-4)
    assert _inverse_trigamma(1e-8) == pytest.approx(1e8)


@pytest.mark.parametrize("freedom", [2.0, 6.0])
def test_the_scatter_of_variances_is_found(freedom: float) -> None:
    random = np.random.default_rng(1)
    true = 1e-4 * freedom / random.chisquare(freedom, 4000)
    measured = true * random.chisquare(2, 4000) / 2
    noise = pooled_noise(measured, np.full(4000, 2.0))
    assert noise.variance == pytest.approx(1e-4, rel=0.1)
    assert noise.freedom == pytest.approx(freedom, rel=0.2)


def test_equal_variances_are_one_variance() -> None:
    random = np.random.default_rng(1)
    measured = 1e-4 * random.chisquare(2, 400) / 2
    noise = pooled_noise(measured, np.full(400, 2.0))
    assert noise.variance == pytest.approx(1e-4, rel=0.15) and noise.freedom > 20


@given(st.lists(st.floats(1e-9, 1), min_size=LEAST_LIKE, max_size=40), st.integers(1, 9))
@examples(1)
def test_a_moderated_variance_lies_between_its_own_and_the_common_one(
    variances: list[float], freedom: int
) -> None:
    own, of_own = np.array(variances), np.full(len(variances), float(freedom))
    noise = pooled_noise(own, of_own)
    mean, total = noise.moderated(own, of_own)
    low, high = np.minimum(own, noise.variance), np.maximum(own, noise.variance)
    assert (low * (1 - 1e-9) <= mean).all() and (mean <= high * (1 + 1e-9)).all()
    assert (total >= of_own).all()


def test_caution_lets_few_figures_share_less() -> None:
    random = np.random.default_rng(3)
    own, freedom = random.chisquare(6, 6) / 6, np.full(6, 6.0)
    careful = pooled_noise(own, freedom, least=3, caution=1.0)
    assert careful.freedom <= pooled_noise(own, freedom, least=3).freedom
    assert pooled_noise(own, freedom) == PooledNoise()
    assert PooledNoise().moderated(3.0, 4.0) == (3.0, 4.0)


def test_few_figures_have_no_common_noise() -> None:
    few = LEAST_LIKE - 1
    assert pooled_noise(np.ones(few), np.full(few, 2.0)) == PooledNoise()
    assert pooled_noise(np.ones(20), np.zeros(20)) == PooledNoise()
    assert pooled_noise(np.zeros(20), np.full(20, 2.0)) == PooledNoise()


def test_printed_digits_limit_the_noise() -> None:
    """Equal values with one decimal: the noise is not less than that of rounding."""
    values = run_of(np.full(20, 5.0), np.zeros(20), 3, 1, "a").with_columns(value=pl.lit(1.2))
    part = compared(values, values).parts[0]
    assert part.limits.noise == pytest.approx(np.full(20, 0.1 / 12**0.5 / 1.2))


@pytest.mark.parametrize(("nodes", "judged"), [(3, 0), (4, 1), (5, 1)])
def test_a_new_node_needs_four_accepted_nodes_that_are_like_it(nodes: int, judged: int) -> None:
    alike = run_of(np.full(nodes, 100.0), np.full(nodes, 0.01), 3, 1, "a")
    accepted = alike.with_columns(node=pl.format("n{}", FIGURE), parameters=pl.lit("0"))
    new = run_of(np.full(1, 100.0), np.full(1, 0.01), 3, 2, "b")
    found = compared(new.with_columns(node=pl.lit("new")), accepted)
    assert len(found.compared) == judged
    own = compared(new.with_columns(node=pl.lit("n0")), accepted)
    assert [len(own.judge(0)), len(own.compared)] == [1 + judged, 1]


def words(comparison: BaselineComparison) -> dict[str, int]:
    """Return the number of figures by the outcome of their first judgement."""
    answers = (comparison.judge(figure)[0] for figure in comparison.compared.tolist())
    return dict(Counter(answer.outcome for answer in answers))


@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_a_noisy_figure_never_passes(spread: float) -> None:
    """A machine that is five times slower is FAIL, or too noisy to be judged."""
    levels, noise = np.full(FIGURES, 100.0), np.full(FIGURES, spread)
    accepted = run_of(levels, noise, 3, 1, "a")
    same = compared(run_of(levels, noise, 3, 2, "b"), accepted)
    slow = compared(run_of(0.2 * levels, noise, 3, 3, "c"), accepted)
    assert words(same).get("PASS", 0) == words(slow).get("PASS", 0) == 0
    (judgement,) = same.judge(0)
    assert judgement.reason.main_code == "baseline-noisy"


@pytest.mark.parametrize("repeats", [3, 8])
def test_the_visible_change_is_seen_in_95_of_100_runs(repeats: int) -> None:
    """The stated change is right within 10 %."""
    levels, spread = np.full(FIGURES, 100.0), np.full(FIGURES, 0.01)
    seen = {0.9: 0, 1.1: 0}
    for trial in range(10):
        accepted = run_of(levels, spread, repeats, 10 * trial, "a")
        stated = compared(run_of(levels, spread, repeats, 10 * trial + 1, "b"), accepted)
        for number, part in enumerate(seen):
            worse = levels * (1 - part * stated.visible_change)
            run = run_of(worse, spread, repeats, 10 * trial + 2 + number, "c")
            seen[part] += len(compared(run, accepted).outcome("worse"))
    assert seen[0.9] < 0.95 * 10 * FIGURES < seen[1.1]


def test_the_stated_number_of_repeats_is_enough() -> None:
    levels, spread = np.full(FIGURES, 100.0), np.full(FIGURES, 0.025)
    accepted = run_of(levels, spread, 12, 1, "a")
    few = compared(run_of(levels, spread, 2, 2, "b"), accepted)
    (judgement,) = few.judge(0)
    assert judgement.reason.main_code == "baseline-noisy"
    needed = noise_in(judgement.reason).fields["needed"]
    assert isinstance(needed, Message)
    repeats = int(str(needed.fields["repeats"]))
    assert words(compared(run_of(levels, spread, repeats + 1, 3, "c"), accepted))["PASS"] > 390
    assert words(few).get("PASS", 0) < 0.1 * FIGURES


@pytest.mark.soak
@pytest.mark.parametrize("repeats", [3, 5])
def test_simulated_runs(repeats: int) -> None:
    """Unchanged runs rarely fail; one figure of 400 that is 5 % worse is found at a CV of 1 %."""
    least_found = {3: 0.75, 5: 0.95}
    spread, trials = np.full(FIGURES, 0.01), 200
    false = found = others = 0
    for trial in range(trials):
        random = np.random.default_rng(trial)
        levels = np.exp(random.normal(3, 1, FIGURES))
        accepted = run_of(levels, spread, repeats, 3 * trial, "a")
        unchanged = run_of(levels, spread, repeats, 3 * trial + 1, "b")
        false += bool(len(compared(unchanged, accepted).outcome("worse")))
        place = int(random.integers(FIGURES))
        worse = np.where(np.arange(FIGURES) == place, 0.95 * levels, levels)
        failed = compared(run_of(worse, spread, repeats, 3 * trial + 2, "c"), accepted)
        found += place in failed.outcome("worse").tolist()
        others += bool(set(failed.outcome("worse").tolist()) - {place})
    print(f"{repeats} repeats: {false} false of {trials}, {found} found, {others} with others")
    assert false <= 0.05 * trials and others <= 0.05 * trials
    assert found >= least_found[repeats] * trials


def with_origin(comparison: BaselineComparison, *, proved: bool) -> BaselineComparison:
    parts = tuple(replace(part, proved=proved) for part in comparison.parts)
    return replace(comparison, parts=parts)


def test_figures_of_unknown_programs_never_pass_but_fail() -> None:
    levels, spread = np.full(FIGURES, 100.0), np.full(FIGURES, 0.01)
    accepted = run_of(levels, spread, 5, 1, "a")
    worse = np.where(np.arange(FIGURES) < 10, 0.5, 1.0) * levels
    known = compared(run_of(worse, spread, 5, 2, "b"), accepted)
    assert words(known) == Counter(PASS=FIGURES - 10, FAIL=10)
    unknown = with_origin(known, proved=False)
    assert words(unknown) == Counter(UNJUDGED=FIGURES - 10, FAIL=10)
    assert len(unknown.outcome("passed")) == 0
    (good,) = unknown.judge(FIGURES - 1)
    assert good.reason.code == "several"
    assert [each.code for each in good.reason.parts] == ["baseline-noise", "baseline-no-program"]
    (bad,) = unknown.judge(0)
    assert bad.reason.code == "baseline-noise"


@pytest.mark.parametrize(("noise", "word"), [(0.003, "PASS"), (0.1, "UNJUDGED"), (0.4, "UNJUDGED")])
def test_a_figure_passes_only_if_a_material_change_would_be_seen(noise: float, word: str) -> None:
    """At 40 % noise neither a fifth of the level nor an equal level is PASS."""
    spread = np.full(FIGURES, noise)
    levels = np.full(FIGURES, 100.0)
    accepted = run_of(levels, spread, 3, 1, "a")
    found = words(compared(run_of(levels, spread, 3, 2, "b"), accepted))
    assert found[word] >= FIGURES - 5
    slow = words(compared(run_of(0.2 * levels, spread, 3, 3, "c"), accepted))
    assert slow.get("PASS", 0) == 0


@pytest.mark.parametrize(("noise", "freedom"), [(np.nan, 4.0), (0.02, 0.0)])
def test_the_noise_of_a_figure_is_that_of_the_first_part_that_knows_it(
    noise: float, freedom: float
) -> None:
    levels, spread = np.full(FIGURES, 100.0), np.full(FIGURES, 0.01)
    found = compared(run_of(levels, spread, 3, 1, "b"), run_of(levels, spread, 3, 2, "a"))
    part, *_ = found.parts
    number = len(part.limits.figure)
    unknown, known = (
        replace(part, limits=replace(part.limits, noise=each, freedom=of))
        for each, of in (
            (np.full(number, noise), np.full(number, freedom)),
            (np.full(number, 0.03), np.full(number, 8.0)),
        )
    )
    assert replace(found, parts=(unknown,)).noise(0) is None
    assert replace(found, parts=(unknown, known)).noise(0) == (0.03, 8.0)
    assert found.noise(FIGURES) is None


def test_a_better_figure_is_named_and_passes() -> None:
    levels, spread = np.full(FIGURES, 100.0), np.full(FIGURES, 0.01)
    found = compared(run_of(1.3 * levels, spread, 5, 2, "b"), run_of(levels, spread, 5, 1, "a"))
    assert len(found.outcome("better")) == FIGURES
    (judgement,) = found.judge(0)
    assert judgement.outcome == "PASS"
    assert [each.code for each in judgement.reason.parts] == ["baseline-noise", "improved"]
    assert judgement.repeats_needed > 0
