"""The planned time of a run is compared with the measured time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import make_kit, steps_of

from proofmark.runs.progress import pace_of, progress
from proofmark.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_kit(tmp_path).run(run_id="some")


def test_without_a_finished_step_there_is_no_ratio(run: Run) -> None:
    assert pace_of(progress(run, active=False).steps) is None


def test_the_pace_is_the_measured_over_the_planned_time(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, dict.fromkeys(("n1", "n2", "n3"), 100.0))
    (step,) = steps_of(run)
    (step / "when.json").write_text('{"seconds": 36}')
    (step / "rc").write_text("0\n")
    assert pace_of(progress(run, active=False).steps) == 36
