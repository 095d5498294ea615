"""Which steps a job runs again, and whose samples say what disturbed them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
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


def named(name: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, **more}


def test_of_running_steps_the_busiest_process_of_each_name_is_named(tmp_path: Path) -> None:
    """A node that writes its samples now is left out, and so is the fourth name."""
    run = RunFiles(tmp_path)
    samples = {
        "s/n1": [named("a", 2, pid=3, user="u", command="a --b"), named("b", 3, pid=4)],
        "s/n2": [named("a", 4, pid=5, user="v", command="a c"), named("b", 1, pid=6, user="w")],
        "s/n3": [named("a", 1, pid=7, user="x"), named("c", 3), named("d", 0.5, pid=8)],
        "s/n4": [named("e", 9, pid=9)],
    }
    for folder, others in samples.items():
        host = folder[2:]
        place = StepFiles(run.step(folder).folder / "unfinished-1").samples
        text = json.dumps({**NODE, "host": host, "others": others})
        for name, content in ((host, text), ("n9", text[:9])):
            (place / name).mkdir(parents=True)
            (place / name / "sums").write_text(content)
    step = step_of_nodes(folders=lambda: [*samples])
    assert disturbing(run, [], [step]) == (
        "a (23 % of a CPU, pid 5 on n2 of v: a c), "
        "b (13 % of a CPU, pid 4 on n1 of an unknown user), c (10 % of a CPU)"
    )
    alone = step_of_nodes(folders=lambda: ["s/n1", "s/none"])
    assert disturbing(run, [], [alone]) == (
        "b (30 % of a CPU, pid 4 of an unknown user), a (20 % of a CPU, pid 3 of u: a --b)"
    )
    assert disturbing(run, [], []) == ""


def test_a_running_step_that_nothing_disturbs_names_no_node(tmp_path: Path) -> None:
    """What disturbed an earlier step is named as if it were alone."""
    run = RunFiles(tmp_path)
    place = StepFiles(run.step("s/n1").folder / "unfinished-1").samples / "n1"
    place.mkdir(parents=True)
    (place / "sums").write_text(json.dumps({**NODE, "host": "n1", "others": []}))
    executed(run, "old", disturbed=[True])
    noise = StepFiles(run.step("old").folder / "execution-1").noise
    others = [named("make", 5, pid=7, user="root")]
    noise.write_text(json.dumps([{**NODE, "host": "n2", "others": others}]))
    running = step_of_nodes(folders=lambda: ["s/n1"])
    found = disturbing(run, [Repeat("old", 2, GAVE_UP, "old")], [running])
    assert found == "make (50 % of a CPU, pid 7 of root)"


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([1], "p0 (50 %)"),
        ([4, 3, 2, 1], "p1 (17 %), p2 (17 %), p3 (17 %)"),
        ([1, 1, 1, 0, 0, 9, 9, 9], "p0 (17 %), p1 (17 %), p2 (17 %)"),
        ([9, 9, 9, 0, 0, 1, 1, 1], "p5 (17 %), p6 (17 %), p7 (17 %)"),
    ],
)
def test_the_samples_of_the_newest_of_few_steps_are_read(
    tmp_path: Path, ages: Sequence[float], expected: str
) -> None:
    """Of many steps, those in the middle are not read."""
    run = RunFiles(tmp_path)
    for number, age in enumerate(ages):
        executed(run, f"s{number}", disturbed=[True])
        noise = StepFiles(run.step(f"s{number}").folder / "execution-1").noise
        noise.write_text(json.dumps([{**NODE, "others": [named(f"p{number}", 5)]}]))
        os.utime(noise, (1e9 - age, 1e9 - age))
    repeats = [Repeat(f"s{number}", 2, GAVE_UP, f"s{number}") for number in range(len(ages))]
    found = disturbing(run, repeats)
    assert sorted(found.replace(" of a CPU", "").split(", ")) == expected.split(", ")
