"""What steps took before tells what a plan will take, and changes no plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.finished import END, START
from tests.fixtures.kit import Kit, make_kit
from tests.unit.records.test_records import write

from proofmark.runs.cost_history import measured_cost
from proofmark.runs.run import Run


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path)


def earlier(kit: Kit, name: str, *seconds: float, rc: int = 0) -> Run:
    """Make a run whose steps took so long."""
    run = kit.run(run_id=name)
    for step, took in zip(run.plan.steps(), seconds, strict=False):
        times = f'"start": "{START}", "end": "{END}", "seconds": {took}'
        when = f'{{{times}, "host": "h", "timed_out": false}}'
        write(run.folder / "workdir/steps" / step.id, when=when, rc=f"{rc}\n")
    return run


def test_without_earlier_runs_the_plan_stands(kit: Kit) -> None:
    plan = kit.plan()
    cost = measured_cost(plan, kit.folder / "runs")
    assert (cost.steps, cost.runs, cost.wall_s) == (0, 0, plan.totals.wall_s)
    assert cost.node_hours == plan.totals.node_hours


def test_steps_that_ran_before_count_with_their_median(kit: Kit) -> None:
    for name, took in (("a", 100), ("b", 300), ("c", 200)):
        earlier(kit, name, took)
    cost = measured_cost(kit.plan(), kit.folder / "runs")
    assert (cost.steps, cost.runs) == (1, 3)
    assert cost.wall_s == 200 + 1  # the second step never ran: as expected, a second
    assert cost.node_hours == round(201 / 3600, 4)


def test_what_failed_and_what_is_another_step_tells_nothing(kit: Kit) -> None:
    earlier(kit, "failed", 100, 100, rc=1)
    kit.case(arguments=["{size}", "more"])
    earlier(kit, "other", 100, 100)
    kit.case()
    (kit.folder / "runs" / "broken").mkdir()
    (kit.folder / "runs" / "broken" / "plan.json").write_text("{")
    assert measured_cost(kit.plan(), kit.folder / "runs").steps == 0


def test_a_plan_stays_the_same_plan_when_it_was_carried_out(kit: Kit) -> None:
    before = kit.plan().digest
    earlier(kit, "a", 100, 100)
    assert kit.plan().digest == before
