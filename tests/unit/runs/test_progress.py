"""How far a run is, from its folders alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import write_execution
from tests.fixtures.kit import execution, make_kit, steps_of

from proofmark.common.text import duration, size
from proofmark.packages.twin.simulated_jobs import divided
from proofmark.runs.progress import Progress, progress
from proofmark.runs.run import Run
from proofmark.runs.run_files import StepFiles
from proofmark.runs.step_state import EXECUTIONS, RUNNING, WAITING, Repeat
from proofmark.site.node.cpu import cpu_list


@pytest.fixture
def run(tmp_path: Path) -> Run:
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": [1, 2, 3, 4]}, cost={"seconds": 10})
    return kit.run()


def finish(folder: Path, rc: int = 0, seconds: float = 20) -> None:
    write_execution(folder, "", exit_code=rc, seconds=seconds)


def begin(folder: Path, at: float = 1000) -> None:
    started = folder / "unfinished-1" / "started"
    started.parent.mkdir(parents=True)
    started.touch()
    os.utime(started, (at, at))


def states(found: Progress) -> list[str]:
    return [step.state for step in found.steps]


def test_each_step_is_in_one_state(run: Run) -> None:
    first, second, third, _ = steps_of(run)
    finish(first)
    finish(second, rc=3)
    begin(third)
    found = progress(run, active=True)
    assert states(found) == ["done", "done", "running", "waiting"]
    assert states(progress(run, active=False)) == ["done", "done", "interrupted", "waiting"]
    assert (found.done, found.failed) == (2, 1)
    assert [step.step.id for step in found.running] == [third.name]


def test_what_is_left_goes_by_what_the_steps_took_so_far(run: Run) -> None:
    first, second, third, _ = steps_of(run)
    assert progress(run, active=False).left_s == 40
    finish(first, seconds=20)
    finish(second, seconds=20)
    begin(third, at=1000)
    found = progress(run, active=True, now=1005)
    assert found.left_s == (20 - 5) + 20
    assert found.steps_per_hour == 180


def test_jobs_at_the_same_time_have_the_rate_of_all(run: Run) -> None:
    for folder in steps_of(run)[:2]:
        finish(folder, seconds=20)
    together = replace(run, plan=divided(run.plan, 2))
    assert progress(run, active=True).steps_per_hour == 180
    assert progress(together, active=True).steps_per_hour == 360


def test_the_line_says_how_far_what_runs_and_how_long(run: Run) -> None:
    first, second, *_ = steps_of(run)
    assert progress(run, active=True).line() == "0/4 steps · no rate yet · about 40 s left"
    finish(first, rc=1)
    begin(second)
    assert progress(run, active=True, now=1000).line() == (
        "1/4 steps · 1 failed (exit code not 0) · running 0002-fake-2 · 180 steps/h · "
        "about 1 min 00 s left"
    )
    assert (
        progress(run, active=False).line().endswith("nothing runs: the same command continues it")
    )
    for step in steps_of(run):
        finish(step)
    assert progress(run, active=False).line() == "4/4 steps"


@pytest.mark.parametrize("executions", range(EXECUTIONS + 1))
def test_a_disturbed_step_waits_for_its_next_execution(run: Run, executions: int) -> None:
    """No job has noted the disturbance. The last execution has no next one."""
    first, second, *_ = steps_of(run)
    finish(second)
    for number in range(1, executions + 1):
        write_execution(first, "", number=number)
        StepFiles(execution(first, number)).disturbed.touch()
    repeats = [
        (each.step, each.execution, each.state, each.folder)
        for each in progress(run, active=False).repeats
    ]
    following = min(EXECUTIONS, executions + 1)
    assert repeats == ([(first.name, following, WAITING, first.name)] if executions else [])


@pytest.mark.parametrize("disturbed", [True, False])
def test_a_note_of_a_job_is_older_than_the_newest_execution(run: Run, disturbed: bool) -> None:
    """A step waits for nothing if a later execution was not disturbed."""
    first, *_ = steps_of(run)
    finish(first)
    if disturbed:
        StepFiles(execution(first)).disturbed.touch()
    attempt = run.files.job(run.plan.groups[0].jobs[0].id).folder / "attempt-1"
    attempt.mkdir(parents=True)
    (attempt / "repeats").write_text(f"start 3 {first.name} {first.name}\n")
    wanted = [Repeat(first.name, 3, RUNNING, first.name)]
    assert [*progress(run, active=False).repeats] == (wanted if disturbed else [])


@pytest.mark.parametrize("name", ["rc", "when.json"])
@pytest.mark.parametrize("content", ["", "x", "{}", "[1]"])
def test_a_damaged_result_is_done_and_not_good(run: Run, name: str, content: str) -> None:
    first = steps_of(run)[0]
    finish(first)
    (execution(first) / name).write_text(content)
    found = progress(run, active=False)
    assert (states(found)[0], found.failed) == ("done", 1)


def test_done_steps_are_not_looked_at_again(run: Run) -> None:
    first, second, *_ = steps_of(run)
    finish(first)
    before = progress(run, active=True)
    execution(first).rename(first / "unfinished-1")
    finish(second)
    assert states(progress(run, active=True, before=before))[:2] == ["done", "done"]
    assert states(progress(run, active=True))[:2] == ["running", "done"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (7620, "2 h 07 min"),
    ],
)
def test_durations_are_said_as_people_do(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 29, "1.5 GiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_sizes_are_in_binary_units(count: int, expected: str) -> None:
    assert size(count) == expected


@given(st.sets(st.integers(0, 400)))
def test_a_list_of_cpus_is_read_as_the_kernel_writes_it(cpus: set[int]) -> None:
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][-1] == cpu - 1:
            ranges[-1].append(cpu)
        else:
            ranges.append([cpu])
    text = ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in ranges)
    assert cpu_list(text) == cpus
