"""Damaged lines of the histories of jobs: named, and never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit

from proofmark.packages.stability.job_runs import damaged_histories, job_runs
from proofmark.runs.job_folder import JobFolder
from proofmark.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    kit = make_kit(tmp_path)
    kit.case()
    return kit.run()


BAD_TIMES = ["", "soon", "2026-01-01", "2026-01-01T00:00:00", "0000-00-00T00:00:00Z", "9" * 40]
BAD_TIMES += ["9999-12-31T23:59:59-14:00"]


@pytest.mark.parametrize("time", BAD_TIMES)
def test_a_history_with_a_bad_time_is_damaged(run: Run, time: str) -> None:
    (job,) = (job for group in run.plan.groups for job in group.jobs)
    good = {"time": "2026-01-01T00:00:00Z", "scheduler": "none", "job": "7", "state": "RUNNING"}
    lines = [{**good, "reason": ""}, {**good, "reason": "", "state": "ENDED", "time": time}]
    history = run.files.queued(job.id).history
    history.parent.mkdir(parents=True, exist_ok=True)
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = job_runs(run)
    assert found.state.name == "RUNNING", "it is not known that it ended"
    (message,) = damaged_histories(run)
    assert (message.code, message.fields["job"]) == ("job-damaged", job.id)
    assert "2" in f"{message.fields['problem']}"
    assert JobFolder(run, job).damage()


def test_a_job_that_ran_has_a_history(run: Run) -> None:
    (job,) = (job for group in run.plan.groups for job in group.jobs)
    assert damaged_histories(run) == []
    (run.files.job(job.id).folder / "attempt-1").mkdir(parents=True)
    (message,) = damaged_histories(run)
    assert message.fields["job"] == job.id


def test_a_clock_that_is_set_back_makes_no_job_shorter(run: Run) -> None:
    (job,) = (job for group in run.plan.groups for job in group.jobs)
    good = {"scheduler": "none", "job": "7", "reason": ""}
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", "2026-01-01T00:05:00Z"]
    states = ["WAITING", "RUNNING", "ENDED"]
    history = run.files.queued(job.id).history
    history.parent.mkdir(parents=True, exist_ok=True)
    pairs = zip(times, states, strict=True)
    history.write_text(
        "".join(json.dumps({**good, "time": time, "state": state}) + "\n" for time, state in pairs)
    )
    (found,) = job_runs(run)
    assert found.started <= found.ended
