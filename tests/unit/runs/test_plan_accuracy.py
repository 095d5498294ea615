"""The planned time of a run is compared with the measured time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import make_kit, steps_of

from proofmark.cli.main import main
from proofmark.runs.progress import progress, time_of_steps
from proofmark.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_kit(tmp_path).run(run_id="some")


def test_without_a_finished_step_there_is_no_ratio(run: Run) -> None:
    assert time_of_steps(progress(run, active=False).steps).ratio is None


def test_a_step_of_many_nodes_counts_for_each_node(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, dict.fromkeys(("n1", "n2", "n3"), 100.0))
    (step,) = steps_of(run)
    (step / "when.json").write_text('{"seconds": 36}')
    (step / "rc").write_text("0\n")
    times = time_of_steps(progress(run, active=False).steps)
    assert times.measured_s == 36
    assert times.measured_node_h == pytest.approx(0.03)
    assert main(["report", str(run.folder)]) in (0, 1, 2, 4)
    assert "36.00 times the plan" in run.files.report.read_text(encoding="utf-8")
