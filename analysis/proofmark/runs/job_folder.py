"""What is on disk of a job in the queue: its ticket while it lives there, and its history.

``jobs/<id>/ticket.json`` is written before the job is submitted and once more when its id is known;
whoever comes later finds the job by it, or by the name that it was to be submitted under.
``jobs/<id>/history.jsonl`` gets a line whenever its state changes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from proofmark.common.files import write_whole
from proofmark.plan.plan import Job
from proofmark.runs.job_state import JobStatus, State
from proofmark.runs.run import Run


@dataclass(frozen=True)
class Submission:
    """A job that was submitted, or was about to be: then `id` is empty.

    `attempts` is how many attempts it had before; `stopping` that we have cancelled it.
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
        self._ticket, self._history = self.files.ticket, self.files.history

    def create(self, scheduler: str, name: str) -> Submission:
        """Write down that the job is about to be submitted."""
        ticket = Submission(scheduler, name, "", len(self.files.attempts()), _now())
        self.save(ticket)
        return ticket

    def save(self, ticket: Submission) -> None:
        """Write down what is known of the job now."""
        write_whole(self._ticket, json.dumps(asdict(ticket)) + "\n")

    def ticket(self) -> Submission | None:
        """Return the ticket of a job that may still live in the queue."""
        try:
            return Submission(**json.loads(self._ticket.read_text()))
        except FileNotFoundError:
            return None

    def append_event(
        self, ticket: Submission, report: JobStatus, *, over: bool = False, without: str = ""
    ) -> None:
        """Add a line to the history; the job's end takes its ticket away.

        `without` are nodes that it does not get, though it is planned for them.
        """
        line = {
            "time": _now(),
            "scheduler": ticket.scheduler,
            "job": ticket.id or ticket.name,
            "state": report.state.name,
            "reason": report.reason,
            "without": without,
        }
        if over:
            self._ticket.unlink(missing_ok=True)
        # A full disk is told of by the job that it stops; this line must not hide that.
        with suppress(OSError), self._history.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def not_run(self, scheduler: str, why: str) -> None:
        """Add to the history why the job was not even submitted."""
        self.append_event(Submission(scheduler, "", "", 0, ""), JobStatus(State.UNAVAILABLE, why))

    def history(self) -> list[dict[str, str]]:
        """Return the lines of the history, oldest first."""
        try:
            return [json.loads(line) for line in self._history.read_text().splitlines()]
        except FileNotFoundError:
            return []

    def exit_code(self, ticket: Submission) -> int | None:
        """Return what the script said at the end of its last attempt, if it came to it."""
        attempts = self.files.attempts()
        if len(attempts) <= ticket.attempts:
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
    return sum(not run.files.step(step.id).exit_code.exists() for step in job.steps)


def stopped_jobs(run: Run) -> list[str]:
    """Return a line for each job that ended before its steps had, or did without a node."""
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
    """Return in words what a job came to at last; empty where it never was in the queue."""
    history = folder.history()
    return (
        status_text(JobStatus(State.of(history[-1]["state"]), history[-1]["reason"]))
        if history
        else ""
    )


def status_text(report: JobStatus) -> str:
    """Return `report` in words."""
    return f"{report.state.value}: {report.reason}" if report.reason else report.state.value


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
