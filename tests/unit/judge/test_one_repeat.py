"""A figure that was measured once is not better than one that was measured five times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.fixtures.kit import FAKE, item, known_case
from tests.unit.judge.test_verdict import record

from proofmark.cases.reference import NOISE
from proofmark.cases.suite import Benchmarks
from proofmark.judge.confidence import noise_in
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.verdict import Verdict
from proofmark.plan.plan import Plan
from proofmark.records.columns import Records

Known = tuple[Plan, Benchmarks]
LIMIT = item(case="fake", metric="rate", value=95, unit="MB/s", at_least=1)
BAD = 90.0
"""The true level of a machine that misses the limit."""


RATE_OF_UNKNOWN_NOISE = {
    **{key: value for key, value in FAKE["metrics"]["rate"].items() if key != "noise"},
    "bound": "universal",
}
known = known_case(sweep={"size": [1, 2]}, metrics={"rate": RATE_OF_UNKNOWN_NOISE})


def verdict(known: Known, values: Mapping[str, Sequence[float]], **changes: Any) -> Verdict:
    """Return the verdict on the repeats of each node."""
    plan, benchmarks = known
    limit = LIMIT.model_copy(update=changes)
    records = []
    for node, repeats in values.items():
        for place, value in enumerate(repeats, 1):
            step = f"000{place}-fake-1"
            records.append(record(1, step=step, repeat=place, value=value, node=node))
    return judge(Evidence("r", plan, Records.of(records), benchmarks, [limit]))


def judged(known: Known, *values: float, **changes: Any) -> Judgement:
    """Return the judgement of the repeats of one node."""
    (answers,) = verdict(known, {"n1": values}, **changes).results.answers.values()
    return next(each for each in answers if each.kind == "contract")


@pytest.mark.fault("lucky-single-repeat")
def test_a_lucky_value_does_not_pass(known: Known) -> None:
    """1,000 machines of 90 with a noise of 3 % against a limit of 95."""
    values = BAD * np.exp(0.03 * np.random.default_rng(6).standard_normal(1000))
    words = [judged(known, value).outcome for value in values[values > 95].tolist()]
    assert len(words) > 15, "there are lucky values"
    assert words.count("PASS") == 0
    assert judged(known, *values[:5].tolist()).outcome == "FAIL", "the same machine, five times"


def test_the_noise_of_the_case_is_assumed_and_the_repeats_are_named(known: Known) -> None:
    found = judged(known, 96.0)
    assert (found.outcome, noise_in(found.reason).code) == ("UNJUDGED", "noisy-once")
    assert noise_in(found.reason).fields["noise"] == "5"
    needed = found.repeats_needed
    assert f"about {needed} repeats are needed" in found.reason
    assert 2 <= needed <= 10
    spread = np.linspace(-1, 1, needed)
    again = 96 * np.exp(NOISE * spread / np.std(spread, ddof=1))
    assert judged(known, *again.tolist()).outcome == "PASS"


def test_control_a_value_beyond_the_noise_passes_and_one_below_fails(known: Known) -> None:
    assert judged(known, 104.0).outcome == "PASS"
    assert judged(known, 94.9).outcome == "UNJUDGED"
    assert judged(known, 73.0).outcome == "FAIL"


def test_a_counted_number_has_no_noise(known: Known) -> None:
    plan, benchmarks = known
    counted = benchmarks.cases["fake"].model_copy(update={"launch": "counted"})
    changed = benchmarks.model_copy(update={"cases": {"fake": counted}})
    assert judged((plan, changed), 95.5).outcome == "PASS"


def test_like_nodes_show_the_noise(known: Known) -> None:
    """Eight nodes within 1 % are quiet, and eight within 30 % are not."""
    steps = np.linspace(-1, 1, 8)
    for width, outcome in ((0.01, "PASS"), (0.3, "UNJUDGED")):
        nodes = {f"n{place}": [97.5 + 97 * width * step] for place, step in enumerate(steps)}
        answers = verdict(known, nodes).results.answers.values()
        found = [each for of_node in answers for each in of_node if each.kind == "contract"]
        lowest = next(each for each in found if each.ratio and each.ratio >= 1)
        assert lowest.outcome == outcome
        assert lowest.visible is not None


def test_a_slow_node_does_not_hide_that_the_others_are_quiet(known: Known) -> None:
    nodes = {f"n{place}": [97.0 + 0.1 * place] for place in range(8)} | {"n8": [50.0]}
    counts = verdict(known, nodes).counts
    assert (counts["FAIL"], counts["PASS"]) == (1, 8)


@pytest.mark.parametrize("values", [(22.0, 120.0), (22.0,), (2.0, 120.0), (2.0, 50.0, 120.0)])
def test_a_bound_that_every_repeat_exceeds_by_far_is_met(
    known: Known, values: tuple[float, ...]
) -> None:
    """A limit of 1 that is met 22 to 120 times is met."""
    found = judged(known, *values, value=1.0)
    assert found.outcome == "PASS"
    assert judged(known, 1.1, 120.0, value=1.0).outcome == "UNJUDGED"
