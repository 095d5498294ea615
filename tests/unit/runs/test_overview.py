"""The tables of ``status``: cases, nodes, and the predicted end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import write_execution
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import Kit, execution, make_kit, steps_of

from proofmark.cli.main import main
from proofmark.packages.twin.simulated_jobs import divided
from proofmark.plan.plan import Plan
from proofmark.runs.cost_history import earlier_seconds
from proofmark.runs.overview import case_progress, node_progress, span
from proofmark.runs.progress import predict, progress
from proofmark.runs.run import Run
from proofmark.runs.step_state import StepState

NODES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": [1, 2, 3, 4]}, cost={"seconds": 10})
    return kit


def fleet(folder: Path, *, rc: int, code_of: dict[str, int]) -> Run:
    """Return a per-node step that ended with `rc`; a node without a code has no result."""
    run = fleet_run(folder, dict.fromkeys(NODES, 100.0))
    (step,) = steps_of(run)
    for node in NODES:
        if node in code_of:
            (execution(step / node) / "rc").write_text(f"{code_of[node]}\n")
        else:
            execution(step / node).rename(step / node / "lost")
    (step / "rc").write_text(f"{rc}\n")
    (step / "when.json").write_text('{"seconds": 5}')
    return run


def test_the_counts_of_a_case_are_those_of_its_steps(kit: Kit) -> None:
    run = kit.run()
    first, second, *_ = steps_of(run)
    write_execution(first, "", seconds=20)
    write_execution(second, "", exit_code=3, seconds=20)
    current = progress(run, active=False)
    (row,) = case_progress(run, current)
    assert (row.steps, row.done, row.failed, row.running, row.waiting) == (4, 2, 1, 0, 2)
    assert (row.measured_s, row.left_s) == (40, current.left_s)


def test_nodes_have_the_states_of_their_own_measurements(tmp_path: Path) -> None:
    run = fleet(tmp_path, rc=1, code_of={"n1": 0, "n2": 7, "n3": 0})
    found = node_progress(run, progress(run, active=False).steps)
    assert found.groups() == {"failed": ["n2"], "excluded": ["n4"], "measured": ["n1", "n3"]}


def test_too_many_folders_are_not_read_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fleet(tmp_path, rc=1, code_of=dict.fromkeys(NODES, 0))
    monkeypatch.setattr("proofmark.runs.overview.MOST_INSTANCES", 3)
    states = progress(run, active=False).steps
    found = node_progress(run, states)
    assert (list(found.unread), found.groups()) == ([states[0].step.id], {"failed": [*NODES]})
    every = node_progress(run, states, every=True)
    assert (list(every.unread), every.groups()) == ([], {"measured": [*NODES]})


@pytest.mark.parametrize("name", ["rc", "when.json"])
def test_a_damaged_step_affects_its_own_row_only(
    kit: Kit, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run = kit.run()
    for step in steps_of(run):
        write_execution(step, "", seconds=20)
    damaged = steps_of(run)[1]
    (execution(damaged) / name).write_text("x")
    assert main(["status", str(run.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["damaged"]) == [damaged.name]
    assert (found["done"], found["failed"], found["nodes"][0]["done"]) == (4, 1, 3)


def test_a_folder_that_cannot_be_listed_is_no_result(kit: Kit) -> None:
    run = kit.run()
    first = steps_of(run)[0]
    first.rename(first.with_name("moved"))
    first.symlink_to(first)
    state = progress(run, active=False).steps[0]
    assert (state.state, state.failed) == ("unreadable", False)
    assert "damaged" in state.problem


def test_earlier_runs_of_the_same_plan_give_the_expected_time(kit: Kit) -> None:
    for name, took in (("a", 40.0), ("b", 60.0)):
        for step in steps_of(kit.run(run_id=name)):
            write_execution(step, "", seconds=took)
    run = kit.run(run_id="c")
    seconds = earlier_seconds(run)
    assert set(seconds.values()) == {50.0}
    assert progress(run, active=False, earlier=seconds).left_s == 200
    kit.case(sweep={"size": [1, 2]}, cost={"seconds": 10})
    assert earlier_seconds(kit.run(run_id="d")) == {}, "another plan"


def test_a_finished_run_has_its_end_and_no_prediction(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = kit.run()
    for step in steps_of(run):
        write_execution(step, "")
    assert span(progress(run, active=False)) is not None
    assert main(["status", str(run.folder)]) == 0
    assert "ended: 2026-11-21 10:19:00 UTC" in capsys.readouterr().out


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    kit = make_kit(tmp_path_factory.mktemp("plan"))
    kit.case(sweep={"size": list(range(1, 13))}, cost={"seconds": 10})
    return kit.plan()


@given(
    st.lists(st.floats(0.1, 1000), max_size=11),
    st.lists(st.floats(0.1, 1e5), max_size=11),
    st.integers(1, 5),
)
def test_the_expected_end_lies_in_its_interval(
    plan: Plan, took: list[float], gone: list[float], jobs: int
) -> None:
    plan = divided(plan, jobs)
    steps = list(plan.steps())
    states = [StepState(step, "done", 0, took[n]) for n, step in enumerate(steps[: len(took)])]
    for n, step in enumerate(steps[len(took) :]):
        began = StepState(step, "running", started=-gone[n]) if n < len(gone) else None
        states.append(began or StepState(step, "waiting"))
    found = predict(plan, states, (), 0.0)
    slack = 1e-6 * found.expected_s
    assert found.least_s - slack <= found.expected_s <= found.most_s + slack
    assert found.by_step.keys() == {step.id for step in steps[len(took) :]}
