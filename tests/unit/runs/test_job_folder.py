"""What a run has of a job in the queue: the notes of its script, its history, and its end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import write_execution
from tests.fixtures.kit import make_kit, steps_of

from proofmark.common.errors import BadInput
from proofmark.runs.job_folder import (
    JobFolder,
    JobStatus,
    JobSubmission,
    State,
    cut_before,
    read_looks,
    status_text,
    stopped_jobs,
)
from proofmark.runs.run import Run

SUBMITTED = JobSubmission("slurm", "p1", "7", 0, "")
EVENT = {
    **{"time": "2031-02-03T04:05:06Z", "scheduler": "slurm", "job": "7"},
    **{"state": "RUNNING", "reason": ""},
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": [1, 2, 3]})
    return kit.run()


@pytest.fixture
def folder(run: Run) -> JobFolder:
    (job,) = run.plan.jobs()
    made = JobFolder(run, job)
    (made.files.folder / "attempt-1").mkdir(parents=True)
    return made


STUCK = {
    *(State.HELD, State.UNAVAILABLE, State.SUSPENDED, State.UNKNOWN, State.UNREACHABLE),
    *(State.NOT_ACCEPTED, State.ENDED_UNKNOWN, State.VANISHED),
}


@pytest.mark.parametrize("state", State)
def test_a_job_waits_runs_needs_help_or_has_ended(state: State) -> None:
    assert state.stuck is (state in STUCK)
    assert state.final is (state not in {*STUCK, State.WAITING, State.RUNNING})
    assert status_text(JobStatus(state)) == state.value
    assert status_text(JobStatus(state, "why")) == f"{state.value}: why"


@pytest.mark.parametrize(
    ("text", "name", "read"),
    [
        ("143\n", "exit", (143, None, "", 0)),
        ("x", "exit", (None, None, "", 0)),
        ("3600\n", "stopped", (None, 3600, "", 0)),
        ("123456789", "stopped", (None, 123456789, "", 0)),
        ("1234567890", "stopped", (None, None, "", 0)),
        ("1 s", "stopped", (None, None, "", 0)),
        ("step s\nfailed\n", "fail-fast", (None, None, "step s failed", 0)),
        ("5\n", "lost", (None, None, "", 5)),
        ("123456", "lost", (None, None, "", 123456)),
        ("1234567", "lost", (None, None, "", 0)),
        ("", "lost", (None, None, "", 0)),
    ],
)
def test_the_notes_of_a_script_are_those_of_its_own_attempt(
    folder: JobFolder, text: str, name: str, read: tuple[Any, ...]
) -> None:
    def notes(submission: JobSubmission) -> tuple[Any, ...]:
        code, after = folder.exit_code(submission), folder.stopped_after(submission)
        return code, after, folder.stopped_early(submission), folder.lost_steps(submission)

    (folder.files.folder / "attempt-1" / name).write_text(text)
    assert notes(SUBMITTED) == read
    assert notes(replace(SUBMITTED, attempts=1)) == (None, None, "", 0)


def test_a_submission_is_kept_until_the_job_is_over(folder: JobFolder) -> None:
    assert folder.submission() is None
    made = folder.create("slurm", "p1")
    assert (made.name, made.id, made.attempts, len(made.steps.split())) == ("p1", "", 1, 3)
    sent = replace(made, id="7", stopping=True)
    folder.save(sent)
    folder.append_event(sent, JobStatus(State.RUNNING))
    assert folder.submission() == sent
    folder.append_event(sent, JobStatus(State.CANCELLED), over=True, without="n1")
    assert folder.submission() is None
    event = folder.history()[-1]
    assert (event["job"], event["by_kit"], event["without"]) == ("7", "yes", "n1")
    folder.not_run("slurm", "no nodes")
    event = folder.history()[-1]
    assert (event["state"], event["reason"], event["job"]) == ("UNAVAILABLE", "no nodes", "")


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "NO_STATE"},
        {"reason": None},
        {"without": 1},
        {"time": "2031-02-03T04:05:06+01:00"},
        {"time": "todayZ"},
    ],
)
def test_a_damaged_line_of_a_history_is_named(folder: JobFolder, changes: dict[str, Any]) -> None:
    lines = [EVENT, {**EVENT, **changes}, {**EVENT, "by_kit": "yes"}]
    folder.ticket.parent.mkdir(parents=True)
    path = folder.ticket.with_name("history.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [each["by_kit"] for each in folder.history()] == ["", "yes"]
    assert folder.damage() == "history.jsonl: damaged lines: 2"
    path.write_text("x\n" * 7)
    assert folder.damage() == "history.jsonl: damaged lines: 1, 2, 3, 4, 5"
    path.unlink()
    path.mkdir()
    assert folder.history() == []
    assert folder.damage().startswith("history.jsonl cannot be read: ")


@pytest.mark.parametrize(
    ("state", "why", "text"),
    [
        (State.TIME_LIMIT, "", "stopped at its time limit; 2 of 3 steps left"),
        (State.NODE_FAILED, "NodeFail", "lost a node: NodeFail; 2 of 3 steps left"),
    ],
)
def test_a_job_that_ended_early_says_how_many_steps_are_left(
    run: Run, folder: JobFolder, state: State, why: str, text: str
) -> None:
    first, *others = steps_of(run)
    write_execution(first, "n1")
    assert stopped_jobs(run) == []
    folder.append_event(SUBMITTED, JobStatus(state, why))
    ((job, message),) = stopped_jobs(run)
    assert job == folder.files.folder.name and text in message
    queued = run.files.queued(job)
    assert cut_before(queued) is (state is State.TIME_LIMIT)
    for step in others:
        write_execution(step, "n1")
    assert stopped_jobs(run) == []


def test_looks_that_cannot_be_read_are_refused(run: Run) -> None:
    assert read_looks(run.files) == ([], [])
    run.files.node_states.mkdir()
    with pytest.raises(BadInput, match="accepted: a regular file"):
        read_looks(run.files)
