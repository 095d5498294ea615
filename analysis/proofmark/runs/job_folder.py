"""The files of a job in the queue: its submission, its history, and the states that it has.

``queue/<job>/ticket.json`` has the submission. It is written before the job is submitted and again
when its id is known. A later process finds the job by this id, or by the name of the submission.
``queue/<job>/history.jsonl`` gets a line for each change of the state of the job.
``node-states.jsonl`` of a run gets a line for each look of the controller at the nodes.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple, TextIO

import pydantic.dataclasses

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import (
    make_folder,
    moment_of,
    open_to_append,
    parse_json,
    read_bytes,
    regular_or_empty,
    text_or_empty,
    write_atomic,
)
from proofmark.common.input_limits import MAX_HISTORY_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import Message, Term
from proofmark.common.text import one_line, whole_number
from proofmark.plan.plan import Job
from proofmark.runs.attempts import has_result
from proofmark.runs.run import Run
from proofmark.runs.run_files import QueueFiles, RunFiles


class State(Enum):
    """The states of a job. The states of every scheduler map onto these.

    ENDED_UNKNOWN: the scheduler only reports that the job ended; the exit code is read from the
    job's own file.
    """

    WAITING = "waiting"
    RUNNING = "running"
    # A job does not leave these states without help. The watch waits for a limited time.
    HELD = "held"
    UNAVAILABLE = "its nodes are not available"
    SUSPENDED = "suspended"
    UNKNOWN = "in an unknown state"
    UNREACHABLE = "the scheduler does not answer"
    NOT_ACCEPTED = "not accepted yet"
    ENDED_UNKNOWN = "ended, and its results are still missing"
    VANISHED = "vanished"
    # Final states.
    ENDED = "ended"
    FAILED = "failed"
    KILLED = "killed"
    REFUSED = "refused"
    CANCELLED = "cancelled by another user"
    SIGNALLED = "stopped by a signal"
    STOPPED = "its own command was stopped and cancelled it"
    TIME_LIMIT = "stopped at its time limit"
    NODE_FAILED = "lost a node"
    PREEMPTED = "preempted"
    REQUEUED = "requeued too often"
    FAIL_FAST = "stopped by fail_fast"
    DISTURBED = "ended early"

    @property
    def stuck(self) -> bool:
        """Whether the job needs help to continue."""
        return self in _STUCK

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self not in _STUCK and self not in (State.WAITING, State.RUNNING)


_STUCK = (
    State.HELD,
    State.UNAVAILABLE,
    State.SUSPENDED,
    State.UNKNOWN,
    State.UNREACHABLE,
    State.NOT_ACCEPTED,
    State.ENDED_UNKNOWN,
    State.VANISHED,
)


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, and the reason in the words of the scheduler.

    Attributes:
        key: the key of the site that must change before the job can start; empty if it can.
        end: how a job ends that is still listed, as the scheduler says; None if it does not say.
        limit_s: the time limit that the scheduler has for it; 0 if the listing does not have it.
    """

    state: State
    reason: str = ""
    key: str = ""
    end: State | None = None
    limit_s: int = 0


@pydantic.dataclasses.dataclass(frozen=True, config={"strict": True, "extra": "forbid"})
class JobSubmission:
    """The submission of a job to a scheduler.

    Attributes:
        id: id of the job; empty before the job is submitted.
        submitted: time of the submission, UTC in ISO 8601.
        stopping: whether the job was cancelled by the kit.
        steps: the ids of its steps, separated by blanks.
        left_out: the nodes that were down, and that it does not request, separated by blanks.
    """

    scheduler: str
    name: str
    id: str
    attempts: int
    submitted: str
    stopping: bool = False
    steps: str = ""
    left_out: str = ""


_SUBMISSION = pydantic.TypeAdapter(JobSubmission)


class JobFolder:
    """What a run has of a job: what the controller keeps, and the outputs of the job."""

    def __init__(self, run: Run, job: Job) -> None:
        self._steps = " ".join(step.id for step in job.steps)
        self.files, queued = run.files.job(job.id), run.files.queued(job.id)
        self.log, self.ticket, self._history = self.files.messages, queued.ticket, queued.history

    def create(self, scheduler: str, name: str) -> JobSubmission:
        """Write and return the submission of a job that will be submitted next."""
        attempts = len(self.files.attempts())
        submission = JobSubmission(scheduler, name, "", attempts, _now(), steps=self._steps)
        self.save(submission)
        return submission

    def save(self, submission: JobSubmission) -> None:
        """Write `submission` to ``ticket.json``."""
        make_folder(self.ticket.parent)
        write_atomic(self.ticket, json.dumps(asdict(submission)) + "\n")

    def submission(self) -> JobSubmission | None:
        """Return the submission of a job that may still be in the queue; None if there is none.

        Raises:
            BadInput: ``ticket.json`` is damaged. The job may still be in the queue, and a second
                job would write into the same folders.
        """
        try:
            return _SUBMISSION.validate_json(read_bytes(self.ticket, MAX_SMALL_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            found = f"damaged: {error.strerror if isinstance(error, OSError) else error}"
            accepted = "the file that the kit wrote; delete it if the job is not in the queue"
            raise bad_input(self.ticket, "", found, accepted) from None

    def append_event(
        self, submission: JobSubmission, status: JobStatus, *, over: bool = False, without: str = ""
    ) -> None:
        """Add a line to the history.

        Args:
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
            "by_kit": "yes" if submission.stopping else "",
        }
        if over:
            self.ticket.unlink(missing_ok=True)
        # A full disk is reported by the job that it stops; this line must not hide that.
        with suppress(OSError, BadInput):
            make_folder(self._history.parent)
            with open_to_append(self._history) as file:
                file.write(f"{cut_end(file)}{json.dumps(line)}\n")

    def not_run(self, scheduler: str, why: str) -> None:
        """Add to the history why the job was not submitted."""
        self.append_event(
            JobSubmission(scheduler, "", "", 0, ""), JobStatus(State.UNAVAILABLE, why)
        )

    def history(self) -> list[dict[str, str]]:
        """Return the lines of the history that can be read, oldest first."""
        return self._read_history()[0]

    def damage(self) -> str:
        """Return which part of the history cannot be read; empty if all of it can."""
        return self._read_history()[1]

    def _read_history(self) -> tuple[list[dict[str, str]], str]:
        """Return the lines that can be read, and which part cannot."""
        try:
            content = read_bytes(self._history, MAX_HISTORY_BYTES)
        except FileNotFoundError:
            return [], ""
        except OSError as error:
            return [], f"{self._history.name} cannot be read: {error.strerror}"
        lines: list[dict[str, str]] = []
        damaged: list[int] = []
        for number, text in enumerate(content.splitlines(), start=1):
            try:
                lines.append(_event(parse_json(text)))
            except (ValueError, KeyError, TypeError):
                damaged.append(number)
        numbers = ", ".join(map(str, damaged[:MOST_DAMAGED]))
        return lines, f"{self._history.name}: damaged lines: {numbers}" if damaged else ""

    def exit_code(self, submission: JobSubmission) -> int | None:
        """Return the exit code of the job script of `submission`; None if it did not end."""
        return whole_number(self._note(submission, "exit"))

    def stopped_after(self, submission: JobSubmission) -> int | None:
        """Return after how many seconds a signal stopped the job script; None if none did."""
        return whole_number(self._note(submission, "stopped"), digits=9)

    def began(self, submission: JobSubmission) -> bool:
        """Return whether the job script of `submission` began."""
        return len(self.files.attempts()) > submission.attempts

    def stopped_early(self, submission: JobSubmission) -> str:
        """Return why the job script of `submission` started no further step; or "" if it did."""
        return one_line(self._note(submission, "fail-fast"))

    def lost_steps(self, submission: JobSubmission) -> int:
        """Return by how many disturbed steps in a row the job script ended early; or 0."""
        return whole_number(self._note(submission, "lost"), digits=6) or 0

    def _note(self, submission: JobSubmission, name: str) -> str:
        """Return a file of the newest attempt, if that belongs to `submission`; else ""."""
        if not self.began(submission):
            return ""
        return text_or_empty(self.files.attempts()[-1] / name, MAX_SMALL_BYTES).strip()


MOST_DAMAGED = 5
"""The number of damaged lines that a message names."""
_EVENT_KEYS = ("time", "scheduler", "job", "state", "reason", "without", "by_kit")
_LATER_KEYS = ("without", "by_kit")
"""Keys that a line may lack."""


def cut_end(file: TextIO) -> str:
    """Return the end of the last line of `file` if it has none: the process was killed."""
    size = os.fstat(file.fileno()).st_size
    return "\n" if size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n" else ""


def _event(line: Any) -> dict[str, str]:
    """Return a line of the history.

    Raises:
        KeyError, TypeError or ValueError: it is damaged.
    """
    event = {key: line.get(key, "") if key in _LATER_KEYS else line[key] for key in _EVENT_KEYS}
    if not all(isinstance(value, str) for value in event.values()):
        raise TypeError("a value that is no text")
    State[event["state"]]
    if not event["time"].endswith("Z"):
        raise ValueError("a time that is not UTC")
    moment_of(event["time"])
    return event


def cut_before(files: QueueFiles) -> bool:
    """Return whether an attempt of a job ended at its time limit."""
    event = json.dumps({"state": State.TIME_LIMIT.name})[1:-1]
    return event in text_or_empty(files.history)


def unfinished(run: Run, job: Job) -> int:
    """Return how many steps of `job` have no result."""
    return sum(not has_result(run.files.step(step.id)) for step in job.steps)


class StoppedJob(NamedTuple):
    """What is wrong with a job; `job` is empty for a file that is of no job."""

    job: str
    message: Message


def stopped_jobs(run: Run) -> list[StoppedJob]:
    """Return each job that ended early, ran without a planned node, or has a damaged history."""
    found = []
    for job in run.plan.jobs_to_run():
        folder = JobFolder(run, job)
        history = folder.history()
        if history and (left := unfinished(run, job)):
            steps = {"left": left, "steps": len(job.steps)}
            found.append(StoppedJob(job.id, _stopped(job.id, history[-1], **steps)))
        if damage := folder.damage():
            message = Message("job-damaged", job=job.id, problem=damage)
            found.append(StoppedJob(job.id, message))
        without = [line["without"] for line in history if line["without"]]
        for nodes in without[-1:]:
            message = Message("job-without", job=job.id, nodes=nodes)
            found.append(StoppedJob(job.id, message))
    return found


def _stopped(job: str, last: Mapping[str, str], *, left: int, steps: int) -> Message:
    """Return the end of a job; `last` is the last line of its history."""
    state, reason = Term(State[last["state"]].value), last["reason"]
    if not reason:
        return Message("job-stopped", job=job, text=state, left=left, steps=steps)
    fields = {"job": job, "state": state, "message": reason}
    return Message("job-stopped-said", left=left, steps=steps, **fields)


def last_state(folder: JobFolder) -> str:
    """Return the last status of a job as text; empty if it was never submitted."""
    for last in folder.history()[-1:]:
        return status_text(JobStatus(State[last["state"]], last["reason"]))
    return ""


def status_text(status: JobStatus) -> str:
    """Return `status` as text."""
    return f"{status.state.value}: {status.reason}" if status.reason else status.state.value


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


LOOK_S = 60.0
"""The time between two looks at the nodes."""
LAST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""No time of a look is later: no calendar has it."""


@dataclass(frozen=True)
class Look:
    """One look at the nodes.

    Attributes:
        time: in seconds since 1970.
        unknown: the nodes whose state the scheduler did not tell.
        cut: whether lines before this one cannot be read: nothing is known since the last look.
    """

    time: float
    down: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    cut: bool = False


def add_look(files: RunFiles, look: Look) -> None:
    """Add a look at the nodes. A full disk is reported by the job that it stops."""
    line = {"time": look.time, "down": dict(look.down)}
    if look.unknown:
        line["unknown"] = [*look.unknown]
    with suppress(OSError, BadInput), open_to_append(files.node_states) as file:
        file.write(f"{cut_end(file)}{json.dumps(line)}\n")


def looks_at(files: RunFiles) -> list[Look]:
    """Return the looks at the nodes that can be read, in order."""
    return read_looks(files)[0]


def read_looks(files: RunFiles) -> tuple[list[Look], list[int]]:
    """Return the looks at the nodes, and the numbers of the lines that are none.

    A line that cannot be read is none, and one whose time is not after those of the lines before.
    Of lines that contradict each other in this way, the greatest number is kept.

    Raises:
        BadInput: the file cannot be read.
    """
    lines = regular_or_empty(files.node_states, MAX_HISTORY_BYTES).splitlines()
    read = {number: look for number, line in enumerate(lines, 1) if (look := _look(line))}
    kept = _rising({number: look.time for number, look in read.items()})
    looks, damaged, previous = list[Look](), list[int](), 0
    for number in kept:
        looks.append(replace(read[number], cut=number > previous + 1 and bool(previous)))
        damaged += range(previous + 1, number)
        previous = number
    return looks, [*damaged, *range(previous + 1, len(lines) + 1)]


def _look(line: bytes) -> Look | None:
    """Return the look of a line; None if it is damaged."""
    with suppress(ValueError, KeyError, TypeError, OverflowError):
        values = parse_json(line)
        time, down, unknown = values["time"], values["down"], values.get("unknown", [])
        texts = isinstance(down, dict) and isinstance(unknown, list)
        texts = texts and all(isinstance(each, str) for each in (*down.values(), *unknown))
        if texts and type(time) in (int, float) and 0 <= time < LAST_S:
            return Look(float(time), down, tuple(unknown))
    return None


def _rising(times: Mapping[int, float]) -> list[int]:
    """Return the keys of the longest part of `times` that rises; of equal times the first one."""
    ends: list[int] = []  # the last key of the best part of each length
    before: dict[int, int | None] = {}
    for key, time in times.items():
        place = bisect_left(ends, time, key=times.__getitem__)
        before[key] = ends[place - 1] if place else None
        if place == len(ends):
            ends.append(key)
        elif time < times[ends[place]]:
            ends[place] = key
    found, last = list[int](), ends[-1] if ends else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found[::-1]
