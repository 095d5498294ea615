"""The table of ``status``, damaged steps, and the end."""

from __future__ import annotations

import json

import pytest
from tests.fixtures.finished import write_execution
from tests.fixtures.kit import Kit, execution, kit_with, steps_of

from proofmark.cli.main import main
from proofmark.runs.progress import case_progress, progress, span

NODES = ("n1", "n2", "n3", "n4")


kit = kit_with(sweep={"size": [1, 2, 3, 4]}, cost={"seconds": 10})


def test_the_counts_of_a_case_are_those_of_its_steps(kit: Kit) -> None:
    run = kit.run()
    first, second, *_ = steps_of(run)
    write_execution(first, "", seconds=20)
    write_execution(second, "", exit_code=3, seconds=20)
    current = progress(run, active=False)
    (row,) = case_progress(run, current)
    assert (row.steps, row.done, row.failed, row.running, row.waiting) == (4, 2, 1, 0, 2)
    assert (row.measured_s, row.left_s) == (40, current.left_s)


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
    assert (found["done"], found["failed"]) == (4, 1)


def test_a_folder_that_cannot_be_listed_is_no_result(kit: Kit) -> None:
    run = kit.run()
    first = steps_of(run)[0]
    first.rename(first.with_name("moved"))
    first.symlink_to(first)
    state = progress(run, active=False).steps[0]
    assert (state.state, state.failed) == ("unreadable", False)
    assert "damaged" in state.problem


def test_a_finished_run_has_its_end_and_no_prediction(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = kit.run()
    for step in steps_of(run):
        write_execution(step, "")
    assert span(progress(run, active=False)) is not None
    assert main(["status", str(run.folder)]) == 0
    assert "ended: 2026-11-21 10:19:00 UTC" in capsys.readouterr().out
