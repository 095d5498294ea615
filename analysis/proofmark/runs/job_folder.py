"""The files of a job in the queue: its submission and its history.

``jobs/<id>/ticket.json`` has the submission. It is written before the job is submitted and again
when its id is known. A later process finds the job by this id, or by the name of the submission.
``jobs/<id>/history.jsonl`` gets a line for each change of the state of the job.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from proofmark.common.files import write_whole
from proofmark.plan.plan import Job
from proofmark.runs.attempts import has_result
from proofmark.runs.job_state import JobStatus, State
from proofmark.runs.run import Run


@dataclass(frozen=True)
class Submission:
    """The submission of a job to a scheduler.

    Attributes:
        scheduler: name of the scheduler.
        name: name of the job in the queue.
        id: id of the job; empty before the job is submitted.
        attempts: number of attempts of the job before this submission.
        submitted: time of the submission, UTC in ISO 8601.
        stopping: whether the job was cancelled by the kit.
    """

    scheduler: str
    name: str
    id: str
    attempts: int
    submitted: str
    stopping: bool = False


class JobFolder:
    """``jobs/<id>/`` of a run."""

    def __init__(self, run: Run, job: Job) -> None:
        self.files = run.files.job(job.id)
        self.script, self.log = self.files.script, self.files.messages
        self._submission, self._history = self.files.ticket, self.files.history

    def create(self, scheduler: str, name: str) -> Submission:
        """Write and return the submission of a job that will be submitted next."""
        submission = Submission(scheduler, name, "", len(self.files.attempts()), _now())
        self.save(submission)
        return submission

    def save(self, submission: Submission) -> None:
        """Write `submission` to ``ticket.json``."""
        write_whole(self._submission, json.dumps(asdict(submission)) + "\n")

    def submission(self) -> Submission | None:
        """Return the submission of a job that may still be in the queue; None if there is none."""
        try:
            return Submission(**json.loads(self._submission.read_text()))
        except FileNotFoundError:
            return None

    def append_event(
        self, submission: Submission, status: JobStatus, *, over: bool = False, without: str = ""
    ) -> None:
        """Add a line to the history.

        Args:
            submission: the submission of the job.
            status: its new status.
            over: whether the job ended; then ``ticket.json`` is removed.
            without: the planned nodes that the job does not get, with the reason.
        """
        line = {
            "time": _now(),
            "scheduler": submission.scheduler,
            "job": submission.id or submission.name,
            "state": status.state.name,
            "reason": status.reason,
            "without": without,
        }
        if over:
            self._submission.unlink(missing_ok=True)
        # A full disk is reported by the job that it stops; this line must not hide that.
        with suppress(OSError), self._history.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def not_run(self, scheduler: str, why: str) -> None:
        """Add to the history why the job was not submitted."""
        self.append_event(Submission(scheduler, "", "", 0, ""), JobStatus(State.UNAVAILABLE, why))

    def history(self) -> list[dict[str, str]]:
        """Return the lines of the history, oldest first."""
        try:
            return [json.loads(line) for line in self._history.read_text().splitlines()]
        except FileNotFoundError:
            return []

    def exit_code(self, submission: Submission) -> int | None:
        """Return the exit code of the job script of `submission`; None if it did not end."""
        attempts = self.files.attempts()
        if len(attempts) <= submission.attempts:
            return None
        try:
            return int((attempts[-1] / "exit").read_text())
        except (FileNotFoundError, ValueError):
            return None


def complete(run: Run, job: Job) -> bool:
    """Return whether all steps of `job` have a result."""
    return unfinished(run, job) == 0


def unfinished(run: Run, job: Job) -> int:
    """Return how many steps of `job` have no result."""
    return sum(not has_result(run.files.step(step.id)) for step in job.steps)


def stopped_jobs(run: Run) -> list[str]:
    """Return a line for each job that ended before its steps, or ran without a planned node."""
    lines = []
    for group in run.plan.to_run():
        for job in group.jobs:
            folder = JobFolder(run, job)
            history = folder.history()
            if history and (left := unfinished(run, job)):
                last = last_state(folder)
                lines.append(f"job {job.id}: {last}; {left} of {len(job.steps)} steps left")
            without = [line["without"] for line in history if line["without"]]
            lines += [f"job {job.id}: without {nodes}" for nodes in without[-1:]]
    return lines


def last_state(folder: JobFolder) -> str:
    """Return the last status of a job as text; empty if it was never submitted."""
    history = folder.history()
    return (
        status_text(JobStatus(State.of(history[-1]["state"]), history[-1]["reason"]))
        if history
        else ""
    )


def status_text(status: JobStatus) -> str:
    """Return `status` as text."""
    return f"{status.state.value}: {status.reason}" if status.reason else status.state.value


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
