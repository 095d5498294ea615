"""Whether the pairs of a round measured at the same time."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.fixtures.finished import write_execution
from tests.fixtures.kit import Kit, make_kit
from tests.unit.plan.test_pair_rounds import LEAF, names, plan_of, site_of

from proofmark.judge.judging import judge_run
from proofmark.judge.rounds import RoundOverlap, round_overlaps
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
    site = site_of(kit, names(8), LEAF)
    plan_of(kit, site)
    return kit.run(site=site)


def overlap(run: Run, late: float = 0.0, seconds: float = 4.0) -> RoundOverlap:
    """Return the overlap of a round whose last pair started `late` seconds after the others."""
    step = next(run.plan.steps())
    pairs = list(step.instances())
    executions = [
        Execution(f"{step.id}/{pair}", 1, 1, ended=ENDED + 4, seconds=4.0) for pair in pairs[:-1]
    ]
    last = Execution(f"{step.id}/{pairs[-1]}", 1, 1, ended=ENDED + late + seconds, seconds=seconds)
    (found,) = round_overlaps(run.plan, [*executions, last])
    return found


@pytest.mark.parametrize(
    ("late", "seconds", "apart"),
    [(0, 4, False), (0.9, 4, False), (1.2, 4, True), (30, 4, True), (0, 16, False), (2, 2, False)],
    ids=["equal", "slightly late", "late", "afterwards", "slow", "short"],
)
def test_a_pair_that_measured_without_the_others_is_named(
    run: Run, late: float, seconds: float, apart: bool
) -> None:
    found = overlap(run, late, seconds)
    step = next(run.plan.steps())
    assert found.apart == ((list(step.instances())[-1],) if apart else ())
    assert (found.pairs, found.unknown) == (4, 0)
    assert bool(list(found.sentences())) == apart


def test_times_that_are_not_known_are_reported(run: Run) -> None:
    step = next(run.plan.steps())
    executions = [Execution(f"{step.id}/{pair}", 1, 1) for pair in step.instances()]
    (found,) = round_overlaps(run.plan, executions)
    assert (found.unknown, found.overlap) == (4, None)
    assert list(found.sentences()) == [f"{step.id}, execution 1: 4 of 4 pairs have no times"]


def test_the_verdict_counts_the_pairs_of_all_rounds_and_names_a_missing_one(run: Run) -> None:
    steps = list(run.plan.steps())
    for step in steps:
        for pair, (sender, _) in step.instances().items():
            if (step, pair) == (steps[0], next(iter(steps[0].instances()))):
                continue
            output = {"stdout": "size 1\nrate 100\nEND\n"}
            folder = run.folder / "steps" / step.id / pair
            write_execution(folder, sender, output, ended=ENDED, seconds=4.0)
    answer = judge_run(run)
    assert (answer.coverage.expected, answer.coverage.measured) == (28, 27)
    missing = next(iter(steps[0].instances()))
    assert answer.coverage.missing == (f"{steps[0].id}: {missing}",)
    assert [each.overlap for each in answer.rounds] == [1.0] * len(steps)
    assert not any(math.isnan(each.ended) for each in answer.results.aggregates.records.executions)
    # Pairs that share links are not compared with each other.
    assert {result.verdict for result in answer.results} == {"UNJUDGED"}
    assert answer.fleet.figures == ()
