"""Whether the pairs of a round measured at the same time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures.finished import judged, write_execution
from tests.fixtures.kit import Kit, make_kit
from tests.unit.plan.test_pair_rounds import LEAF, names, plan_of, site_of_fabric

from proofmark.judge.verdict import Verdict
from proofmark.packages.fabric.rounds import RoundOverlap, pair_findings, round_overlaps
from proofmark.records.columns import Execution
from proofmark.runs.run import Run

ENDED = 1_800_000_000.0


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run of eight nodes on two leaf switches, whose pairs measure together."""
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    kit: Kit = make_kit(tmp_path)
    site = site_of_fabric(kit, names(8), LEAF)
    plan_of(kit, site)
    return kit.run(site=site)


def overlap(run: Run, late: float = 0.0, seconds: float = 4.0) -> RoundOverlap:
    """Return the overlap of a round. The last pair starts `late` seconds after the other pairs."""
    step = next(run.plan.steps())
    pairs = list(step.instances())
    executions = [Execution(f"{pair}", 1, 1, ended=ENDED + 4, seconds=4.0) for pair in pairs[:-1]]
    last = Execution(f"{pairs[-1]}", 1, 1, ended=ENDED + late + seconds, seconds=seconds)
    (found,) = round_overlaps(run.plan, [*executions, last])
    return found


@pytest.mark.parametrize(
    ("late", "seconds"),
    [(0, 4), (0.9, 4), (0, 16), (2, 2)],
    ids=["equal", "slightly late", "slow", "short"],
)
def test_pairs_that_measured_together_are_not_named(run: Run, late: float, seconds: float) -> None:
    found = overlap(run, late, seconds)
    assert (found.apart, found.pairs, found.unknown) == ((), 4, 0)
    assert list(found.messages()) == []


@pytest.mark.fault("pair-measured-apart")
@pytest.mark.parametrize("late", [1.2, 30])
def test_a_pair_that_measured_without_the_others_is_named(run: Run, late: float) -> None:
    found = overlap(run, late)
    step = next(run.plan.steps())
    pair = list(step.instances())[-1].name
    assert found.apart == (pair,)
    (sentence,) = found.messages()
    assert sentence == (
        f"{step.id}, execution 1: 1 of 4 pairs measured less than 75% of the time together with "
        f"the others, or a clock is wrong: {pair}"
    )


def test_times_that_are_not_known_are_reported(run: Run) -> None:
    step = next(run.plan.steps())
    executions = [Execution(f"{pair}", 1, 1) for pair in step.instances()]
    (found,) = round_overlaps(run.plan, executions)
    assert (found.unknown, found.overlap) == (4, None)
    assert list(found.messages()) == [f"{step.id}, execution 1: 4 of 4 pairs have no times"]


def test_the_verdict_counts_the_pairs_of_all_rounds_and_names_a_missing_one(run: Run) -> None:
    steps = list(run.plan.steps())
    for step in steps:
        for pair, (sender, _) in step.instances().items():
            if pair == next(iter(steps[0].instances())):
                continue
            output = {"stdout": "size 1\nrate 100\nEND\n"}
            folder = run.files.step(str(pair)).folder
            write_execution(folder, sender, output, ended=ENDED, seconds=4.0)
    answer = judged(run)
    assert (answer.coverage.expected, answer.coverage.measured) == (28, 27)
    missing = next(iter(steps[0].instances()))
    (found,) = answer.coverage.missing
    assert found.message == f"{steps[0].id}: {missing.name}"
    assert [each.overlap for each in pair_findings(answer).rounds] == [1.0] * len(steps)
    assert not any(math.isnan(each.ended) for each in answer.results.aggregates.records.executions)
    # Pairs that share links are not compared with each other.
    assert {result.verdict for result in answer.results} == {"UNJUDGED"}
    assert answer.fleet.figures == ()


def compared(folder: Path, slow: str = "") -> Verdict:
    """Return the verdict on pairs that measured alone; those across the spine have half the rate.

    The first pair of the distance `slow` has 80 % of the rate of the others.
    """
    kit = make_kit(folder)
    site = site_of_fabric(kit, names(32), LEAF)
    plan_of(kit, site, pairs="alone")
    run = kit.run(site=site)
    noise = np.random.default_rng(1)
    for step in run.plan.steps():
        for pair, hosts in step.instances().items():
            distance = site.distance(hosts)
            rate = {"leaf": 100, "spine": 50}[distance] * (1 + 0.01 * noise.standard_normal())
            if distance == slow:
                slow, rate = "", 0.8 * rate
            output = {"stdout": f"size 1\nrate {rate:.3f}\nEND\n"}
            write_execution(run.files.step(str(pair)).folder, hosts[0], output)
    return judged(run)


@pytest.fixture
def any_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )


@pytest.mark.usefixtures("any_nodes")
def test_pairs_of_a_slow_level_are_no_outliers(tmp_path: Path) -> None:
    answer = compared(tmp_path)
    kinds = sorted(figure.kind.rpartition("; ")[2] for figure in answer.fleet.figures)
    assert kinds == ["distance leaf", "distance spine"]
    assert [figure.flagged for figure in answer.fleet.figures] == [(), ()]
    assert answer.counts["FAIL"] == 0


@pytest.mark.fault("pair-slow-for-its-distance")
@pytest.mark.usefixtures("any_nodes")
@pytest.mark.parametrize("distance", ["leaf", "spine"])
def test_a_pair_is_compared_with_pairs_of_its_distance(tmp_path: Path, distance: str) -> None:
    answer = compared(tmp_path, slow=distance)
    figures = answer.fleet.figures
    flagged = {each.kind.rpartition("; ")[2]: len(each.flagged) for each in figures}
    other = ({"leaf", "spine"} - {distance}).pop()
    assert flagged == {f"distance {distance}": 1, f"distance {other}": 0}
    assert answer.counts["FAIL"] == 1
