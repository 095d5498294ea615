"""Records of a run besides its outputs: steps that were not run, and impossible sensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fixtures.finished import seal
from tests.fixtures.fleet import fleet_run

from proofmark.common.message import Message
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.runs.decisions import add_decisions
from proofmark.runs.run import Run

WHY = Message("writer-failed", step="0000-other", problem="it failed")
RATES = {f"n{number}": 100.0 + number for number in range(4)}


def test_a_step_that_was_not_run_is_invalid_for_its_reason(tmp_path: Path) -> None:
    """The outputs in its folder are of no execution of the run."""
    run = fleet_run(tmp_path, RATES)
    add_decisions(run.files, not_run={"0001-fake": WHY})
    verdict = judge_run(run)
    assert verdict.counts["INVALID"] == len(verdict.results) > 0
    assert {each.reason.main_code for each in verdict.results} == {WHY.code}
    assert verdict.exit_code() == 2


def sensed(folder: Path, megahertz: float) -> Verdict:
    """Return the verdict on a run in which a sensor of n1 showed this clock."""
    run: Run = fleet_run(folder, RATES)
    (execution,) = run.folder.glob("steps/0001-fake/n1/execution-1")
    line = {"host": "n1", "time": 1.8e9, "span": 60, "mhz": megahertz}
    (execution / "telemetry.jsonl").write_text(f"{json.dumps(line)}\n")
    seal(execution)
    return judge_run(run)


@pytest.mark.parametrize(("megahertz", "valid"), [(2400.0, True), (9000.0, False)])
def test_a_clock_above_that_of_any_processor_is_invalid(
    tmp_path: Path, megahertz: float, valid: bool
) -> None:
    results = [
        each for each in sensed(tmp_path, megahertz).results if "clock" in each.record.metric
    ]
    assert [each.record.valid for each in results] == [valid]
    if not valid:
        assert results[0].reason.main_code == "above-bound"
