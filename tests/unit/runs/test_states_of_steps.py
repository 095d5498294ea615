"""What follows from the states of the steps: paces, times that are left, and lines of progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.runs.progress import (
    CaseProgress,
    Progress,
    _time_of_jobs,
    case_progress,
    other_modes,
    pace_of,
    remaining,
    span,
)
from proofmark.runs.step_state import GAVE_UP, RUNNING, WAITING, Repeat, StepState


def state(name: str, word: str = "waiting", case: str = "c", **more: Any) -> StepState:
    """Return the state of a step that was to take 10 s."""
    step: Any = SimpleNamespace(id=name, case=case, wall_s=10.0, measurements=2)
    return StepState(step, word, **more)


def done(name: str, seconds: float | None = 20.0, rc: int | None = 0, **more: Any) -> StepState:
    return state(name, "done", rc=rc, seconds=seconds, **more)


@pytest.mark.parametrize(
    ("states", "pace"),
    [
        ([], None),
        ([state("a")], None),
        ([done("a")], 2.0),
        ([done("a", 0.0)], None),
        ([done("a", 20), done("b", 10), done("c", None), state("d")], 1.5),
    ],
)
def test_the_pace_is_that_of_the_steps_with_a_time(
    states: Sequence[StepState], pace: float | None
) -> None:
    assert pace_of(states) == pace


def test_a_step_without_a_plan_of_its_time_has_no_pace() -> None:
    step: Any = SimpleNamespace(wall_s=0.0)
    assert pace_of([StepState(step, "done", rc=0, seconds=5.0)]) is None


@pytest.mark.parametrize(
    ("states", "left"),
    [
        ([state("a")], {"a": 10}),
        ([done("a"), state("b"), state("x", case="d")], {"b": 20, "x": 20}),
        (
            [done("a"), done("x", 5, case="d"), state("b"), state("y", case="d")],
            {"b": 20, "y": 5},
        ),
        ([state("a", "running", started=96.0)], {"a": 6}),
        ([state("a", "running", started=80.0)], {"a": 0}),
        ([state("a", "running")], {"a": 10}),
        ([state("a", "interrupted", started=96.0)], {"a": 10}),
        ([state("a", "unreadable")], {"a": 10}),
        ([done("a", None, None)], {}),
    ],
)
def test_a_step_without_a_result_takes_what_like_steps_took(
    states: list[StepState], left: Mapping[str, float]
) -> None:
    """Those of its case, else all; a running one is that much nearer to its end."""
    assert remaining(states, 100.0) == left


def plan(at_once: int, *groups: tuple[str, Sequence[str]], entered: str = "now") -> Any:
    """Return a plan of groups: the mode, and the steps of each job by their letters."""
    made = []
    for mode, jobs in groups:
        named = [
            SimpleNamespace(steps=[SimpleNamespace(id=each, case="c") for each in job])
            for job in jobs
        ]
        steps = [step for job in named for step in job.steps]
        made.append(SimpleNamespace(mode=mode, jobs=named, steps=lambda steps=steps: steps))
    return SimpleNamespace(
        at_once=at_once,
        to_run=lambda: [each for each in made if each.mode == entered],
        needed=lambda: made,
    )


@pytest.mark.parametrize(
    ("at_once", "jobs", "time"),
    [(1, ("ab", "c"), 60), (2, ("ab", "c"), 30), (2, ("a", "b", "c"), 30), (3, ("abc",), 60)],
)
def test_jobs_at_the_same_time_take_as_long_as_the_longest(
    at_once: int, jobs: Sequence[str], time: float
) -> None:
    """Or all together, by the number of them that run at the same time."""
    seconds = {"a": 10.0, "b": 20.0, "c": 30.0}
    found = _time_of_jobs(plan(at_once, ("now", jobs), ("now", ())), seconds)
    assert found == time
    assert _time_of_jobs(plan(at_once, ("now", jobs)), {"a": 10.0}) == 10


def test_groups_run_one_after_the_other() -> None:
    groups = (("now", ("a", "b")), ("now", ("c",)), ("other", ("d",)))
    assert _time_of_jobs(plan(2, *groups), {"a": 1.0, "b": 5.0, "c": 5.0, "d": 9.0}) == 10


def shown(*states: StepState, **more: Any) -> Progress:
    return replace(Progress(states, True, {}, 65.0, 7.6), **more)


def repeat(step: str, word: str, execution: int = 2) -> Repeat:
    return Repeat(step, execution, word, step)


TAIL = "about 1 min 05 s left"


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (shown(done("a")), "1/1 steps"),
        (shown(done("a"), active=False), "1/1 steps"),
        (shown(state("a")), f"0/1 steps · no rate yet · {TAIL}"),
        (shown(done("a"), state("b")), f"1/2 steps · 8 steps/h · {TAIL}"),
        (
            shown(done("a", rc=2), done("x", rc=None), state("b", "running")),
            f"2/3 steps · 2 failed (exit code not 0) · running b · 8 steps/h · {TAIL}",
        ),
        (
            shown(done("a"), repeats=(repeat("a", WAITING),)),
            f"1/1 steps · 1 step will be repeated · {TAIL}",
        ),
        (
            shown(done("a"), repeats=tuple(repeat(each, WAITING) for each in "ab")),
            f"1/1 steps · 2 steps will be repeated · {TAIL}",
        ),
        (
            shown(
                done("a"),
                disturbed_by="make",
                repeats=(repeat("a", WAITING), repeat("b", RUNNING, 3), repeat("c", GAVE_UP)),
            ),
            "1/1 steps · repeating b (execution 3 of 3) · 1 step will be repeated · "
            f"1 step disturbed in all executions · disturbed by make · {TAIL}",
        ),
        (
            shown(done("a"), active=False, repeats=(repeat("b", RUNNING),)),
            f"1/1 steps · 1 step will be repeated · {TAIL} · "
            "nothing runs: the same command continues it",
        ),
        (
            shown(done("a"), repeats=tuple(repeat(each, GAVE_UP) for each in "ab")),
            "1/1 steps · 2 steps disturbed in all executions",
        ),
        (
            shown(done("a"), state("b"), executed=False),
            "4 outputs that others produced; nothing runs",
        ),
    ],
)
def test_a_line_says_what_runs_and_what_is_left(found: Progress, line: str) -> None:
    assert found.line() == line


def test_what_disturbs_is_named_once() -> None:
    found = shown(done("a"), disturbed_by="make")
    assert found.line() == found.line(shown(done("a"))) == "1/1 steps · disturbed by make"
    assert found.line(found) == "1/1 steps"


def test_the_steps_of_a_case_in_a_mode_are_counted() -> None:
    states = (
        done("a", 5.0),
        done("b", None, None),
        state("c", "running"),
        state("d"),
        state("e", "interrupted"),
    )
    current = shown(*states, left={"c": 1.0, "d": 2.0, "x": 9.0})
    run: Any = SimpleNamespace(plan=plan(1, ("now", ("abc", "de")), ("other", ("x", "yz"))))
    (row,) = case_progress(run, current)
    assert row == CaseProgress("now", "c", 5, 2, 1, 1, 2, 5.0, 3.0)
    assert other_modes(run) == {"other": 3}


@pytest.mark.parametrize(
    ("states", "times"),
    [
        ([], None),
        ([state("a", "running", started=5.0)], None),
        ([done("a", ended=5.0)], None),
        ([done("a", started=3.0, ended=5.0), done("b", started=2.0, ended=4.0)], (2.0, 5.0)),
        ([done("a", started=3.0, ended=5.0), state("b", "running", started=1.0)], (3.0, 5.0)),
    ],
)
def test_a_run_lasts_from_its_first_to_its_last_result(
    states: Sequence[StepState], times: tuple[float, float] | None
) -> None:
    assert span(shown(*states)) == times


@pytest.mark.parametrize(
    ("word", "finished"),
    [("done", True), ("adopted", True), *((w, False) for w in ("waiting", "running"))],
)
def test_a_step_is_finished_if_a_job_has_nothing_to_do(word: str, finished: bool) -> None:
    assert state("a", word).finished is finished
    assert (state("a", word, rc=0).failed, state("a", word, rc=1).failed) == (
        False,
        word == "done",
    )
