"""Which steps a job runs again, and whose samples say what disturbed them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.runs.test_samples import NODE

from proofmark.runs.run_files import RunFiles, StepFiles
from proofmark.runs.step_state import GAVE_UP, Repeat, disturbing, needs_execution


def step_of_nodes(**changes: Any) -> Any:
    """Return a step of two nodes."""
    usual = {"id": "s", "reads": None, "kept": None, "folders": lambda: ["s/n1", "s/n2"]}
    return SimpleNamespace(**{**usual, **changes})


def executed(run: RunFiles, folder: str, *, disturbed: list[bool]) -> None:
    """Write the executions of a folder of a step."""
    for number, each in enumerate(disturbed, 1):
        made = StepFiles(run.step(folder).folder / f"execution-{number}")
        made.folder.mkdir(parents=True)
        made.exit_code.write_text("0")
        if each:
            made.disturbed.touch()


@pytest.mark.parametrize(
    ("first", "second", "changes", "needed"),
    [
        ([False], [False], {}, False),
        ([True], [False], {}, True),
        ([False], [True, True], {}, True),
        ([True, False], [False, True], {}, False),
        ([True], [True], {"reads": "other"}, False),
        ([True], [True], {"kept": "files"}, False),
    ],
)
def test_a_step_runs_again_if_each_execution_of_a_node_was_disturbed(
    tmp_path: Path, first: list[bool], second: list[bool], changes: dict[str, Any], needed: bool
) -> None:
    run, step = RunFiles(tmp_path), step_of_nodes(**changes)
    assert needs_execution(run, step), "it has no result"
    run.step("s").folder.mkdir(parents=True)
    run.step("s").exit_code.write_text("0")
    for name, disturbed in (("s/n1", first), ("s/n2", second)):
        executed(run, name, disturbed=disturbed)
    assert needs_execution(run, step) is needed


def test_what_disturbed_the_newest_execution_is_named(tmp_path: Path) -> None:
    run = RunFiles(tmp_path)
    executed(run, "s", disturbed=[True, True])
    for number, name in enumerate(("old", "new"), 1):
        other = {"name": name, "seconds": 5, "pid": 7, "user": "root", "command": name}
        noise = StepFiles(run.step("s").folder / f"execution-{number}").noise
        noise.write_text(json.dumps([{**NODE, "others": [other]}]))
    found = disturbing(run, [Repeat("s", 2, GAVE_UP, "s")])
    assert found == "new (50 % of a CPU, pid 7 of root: new)"
