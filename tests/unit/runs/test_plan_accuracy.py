"""The planned time of a run is compared with the measured time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import write_execution
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import make_kit, steps_of

from proofmark.cli.main import main
from proofmark.runs.progress import FACTOR, TimeOfSteps, progress, time_of_steps
from proofmark.runs.run import Run

SECONDS = st.floats(0.01, 1e6)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run of two cases with two steps each, planned for one second each."""
    kit = make_kit(tmp_path)
    kit.case("other")
    return kit.run(run_id="some")


@given(SECONDS, SECONDS, st.integers(1, 10_000))
def test_a_factor_of_two_is_accepted_in_both_directions(
    planned: float, measured: float, nodes: int
) -> None:
    times = TimeOfSteps("", 1, planned, measured, planned * nodes, measured * nodes)
    assert times.ratio == pytest.approx(measured / planned)
    assert times.within_factor == (1 / FACTOR <= measured / planned <= FACTOR)


@pytest.mark.parametrize(("seconds", "code"), [(1.5, 0), (2.5, 1), (0.4, 1)])
def test_the_times_of_the_finished_steps_are_printed(
    run: Run, seconds: float, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in steps_of(run)[:3]:
        write_execution(step, "n1", seconds=seconds)
    assert main(["status", str(run.folder), "--times"]) == code
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row[0], row[1]) for row in rows] == [("fake", "2"), ("other", "1"), ("all", "3")]
    assert f"{seconds:.2f}" in rows[-1]


def test_without_a_finished_step_there_is_no_ratio(run: Run) -> None:
    assert time_of_steps(progress(run, active=False).steps).ratio is None
    assert main(["status", str(run.folder), "--times"]) == 0


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
