"""A job that the kit has submitted: what its state means, and what the kit does at its end."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import text_or_empty
from proofmark.common.message import Message
from proofmark.common.text import duration, size
from proofmark.jobs.job_request import BatchQueue, request_of
from proofmark.machine.scheduler import Request
from proofmark.plan.plan import Job
from proofmark.plan.totals import longest_step_s
from proofmark.runs.attempts import has_result
from proofmark.runs.job_folder import (
    JobFolder,
    JobStatus,
    JobSubmission,
    State,
    status_text,
    unfinished,
)
from proofmark.runs.run import Run
from proofmark.runs.step_state import (
    EXECUTIONS,
    WAITING,
    Repeat,
    disturbing,
    needs_execution,
)
from proofmark.site.execution import Queue

_SETTLE_S = 60.0
"""The delay after which the last files of a node are visible on a shared file system, at most."""
_MAX_REQUEUES = 3
_EXIT_CODE_STOPPED = 143
"""The exit code of a job script that a signal stopped."""


@dataclass
class ActiveJob:
    """A job that is, or may be, in the queue.

    Attributes:
        job: the job of the plan, or a part of it.
        steps_left: number of steps without a result when it was submitted.
        resumed: whether an earlier process submitted it, and its state was not queried yet.
        state_since: when this state began, by the monotonic clock.
        stuck_since: when it became stuck (`State.stuck`); None if it is not.
        requeues: how often it went from running back to waiting.
        ran: whether the scheduler said that it runs.
        end, limit_s: the last ones that the scheduler told (`JobStatus`).
    """

    job: Job
    folder: JobFolder
    request: Request
    submission: JobSubmission
    steps_left: int
    resumed: bool
    status: JobStatus
    state_since: float
    stuck_since: float | None = None
    requeues: int = 0
    ran: bool = False
    end: State | None = None
    limit_s: int = 0

    @classmethod
    def of(
        cls, run: Run, job: Job, submission: JobSubmission, batch: BatchQueue, *, resumed: bool
    ) -> ActiveJob:
        """Return a job with this submission, whose state is not known yet."""
        left_out = set(submission.left_out.split())
        nodes = [node for node in job.nodes if node not in left_out] or job.nodes
        return cls(
            job,
            folder=JobFolder(run, job),
            request=request_of(run.folder, job.model_copy(update={"nodes": nodes}), batch),
            submission=submission,
            steps_left=unfinished(run, job),
            resumed=resumed,
            status=JobStatus(State.WAITING),
            state_since=time.monotonic(),
        )

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped its script."""
        return self.folder.stopped_after(self.submission) is not None

    def take(self, status: JobStatus) -> bool:
        """Add a new status to the history; return whether it is another state."""
        previous, now = self.status, time.monotonic()
        self.resumed = False
        self.ran = self.ran or status.state is State.RUNNING
        self.end, self.limit_s = status.end or self.end, status.limit_s or self.limit_s
        if status == previous:
            return False
        self.status = status
        self.folder.append_event(self.submission, status)
        if status.state is previous.state:
            return False
        self.state_since = now
        self.stuck_since = (self.stuck_since or now) if status.state.stuck else None
        self.requeues += (previous.state, status.state) == (State.RUNNING, State.WAITING)
        return True


def described(active: Iterable[ActiveJob], pending: int) -> str:
    """Return the number of jobs in each state as text; empty if all jobs run.

    `pending` is the number of jobs that are not submitted yet.
    """
    statuses = (each.status for each in active)
    states = Counter(
        "running" if each.state is State.RUNNING else status_text(each) for each in statuses
    )
    if set(states) <= {"running"} and not pending:
        return ""
    parts = [f"{number} {text}" for text, number in states.items()]
    parts += [f"{pending} to submit"] if pending else []
    return f"jobs: {', '.join(parts)}"


_NO_ACCOUNT = (State.ENDED_UNKNOWN, State.VANISHED, State.UNREACHABLE)
"""States in which the scheduler has no account of the end of a job."""
_CUT = (State.TIME_LIMIT, State.KILLED, State.CANCELLED, State.PREEMPTED, State.NODE_FAILED)
"""Ends by the scheduler that can come after the script has ended: its job shuts down."""


def shown_status(run: Run, active: ActiveJob, status: JobStatus) -> JobStatus:
    """Return `status` of the scheduler as the files of the job show it."""
    status = _by_exit_code(active, status)
    if status.state is not State.ENDED:
        return status
    if early := active.folder.stopped_early(active.submission):
        return JobStatus(State.FAIL_FAST, early)
    if lost := active.folder.lost_steps(active.submission):
        return JobStatus(State.DISTURBED, f"{_lost(run, active.job, lost)}")
    if unfinished(run, active.job):
        return JobStatus(State.ENDED_UNKNOWN, "steps without a result")
    return status


def _lost(run: Run, job: Job, steps: int) -> Message:
    """Return why a job ended that could only go on disturbed, and what to do."""
    repeats = [
        Repeat(step.id, 1, WAITING, folder)
        for step in job.steps
        for folder in step.folders()[:1]
        if has_result(run.files.step(folder))
    ]
    by = disturbing(run.files, repeats) or f"{Message('disturbers-unknown')}"
    return Message("job-disturbed", steps=steps, by=by)


def _by_exit_code(active: ActiveJob, status: JobStatus) -> JobStatus:
    """Return the status of a job by its files, if its script ended well, or without an account.

    A script that a signal stopped does not know whose it was. It notes the signal before it probes
    its nodes, so that only the scheduler knows that the job has ended.
    """
    code = active.folder.exit_code(active.submission)
    listed = status.state is State.UNREACHABLE
    if code == 0 and status.state in (*_NO_ACCOUNT, *_CUT):
        return JobStatus(State.ENDED)
    if status.state not in _NO_ACCOUNT:
        return status
    if code not in (None, _EXIT_CODE_STOPPED):
        return JobStatus(State.FAILED, f"exit code {code}")
    if active.end and not listed:
        return JobStatus(active.end, active.status.reason)
    if code is None:
        if status.state is State.VANISHED and not has_run(active):
            return JobStatus(status.state, f"{status.reason} (deleted while it waited?)")
        return status
    limit = active.limit_s or active.request.seconds
    after = active.folder.stopped_after(active.submission)
    if not listed and after is not None and after >= limit - min(_SETTLE_S, limit / 10):
        return JobStatus(State.TIME_LIMIT, f"a signal stopped it after {duration(after)}")
    said = status.reason if status.state is State.ENDED_UNKNOWN else ""
    return JobStatus(
        State.ENDED_UNKNOWN, f"a signal stopped it; the scheduler says {said or 'nothing'}"
    )


def has_run(active: ActiveJob) -> bool:
    """Return whether the job was seen running, or its script began."""
    return active.ran or active.folder.began(active.submission)


OWN_ENDS = (State.ENDED, State.FAIL_FAST, State.DISTURBED, State.STOPPED, State.FAILED)
"""Ends of a job by its own script, or by the kit."""


def with_down_nodes(active: ActiveJob, status: JobStatus, down: str, *, ran: bool) -> JobStatus:
    """Return the end of a job, of which nodes are down now.

    Only a job that had its nodes can lose one. A job that ended before its script began was not
    cancelled by a person: its nodes could not start it.

    Args:
        down: the nodes, each with the reason.
        ran: whether the job had got its nodes.
    """
    began, state = active.folder.began(active.submission), status.state
    unknown = state in (State.VANISHED, State.ENDED_UNKNOWN)
    if state is State.NODE_FAILED:
        return JobStatus(state, down)
    if ran and (unknown or not began):
        said = f"; {status.reason}" if unknown else ""
        return JobStatus(State.NODE_FAILED, f"{down}{said}")
    return JobStatus(state, "; ".join(filter(None, (status.reason, f"now down: {down}"))))


def overdue(active: ActiveJob, queue: Queue, *, ends: bool) -> JobStatus | None:
    """Return the status with which the kit gives up a job; None if the job is within its limits.

    `ends` is whether the scheduler ends a job at its time limit.
    """
    state, running = active.status.state, float(active.request.seconds)
    if not ends:
        # The limits of its steps end it.
        every = EXECUTIONS * sum(step.timeout + step.stagger for step in active.job.steps)
        running = max(running, every)
    limits = {
        State.WAITING: queue.queue_timeout_s,
        State.RUNNING: running + queue.stall_timeout_s,
        State.ENDED_UNKNOWN: min(_SETTLE_S, queue.stall_timeout_s),
        State.VANISHED: min(_SETTLE_S, queue.stall_timeout_s),
    }
    limit = limits.get(state, queue.stall_timeout_s)
    start = active.state_since if state in limits else active.stuck_since or active.state_since
    if active.requeues > _MAX_REQUEUES:
        return JobStatus(State.REQUEUED, f"{active.requeues} times")
    if time.monotonic() - start < limit:
        return None
    parts = active.status.reason, f"given up after {duration(limit)}"
    return JobStatus(state, ", ".join(filter(None, parts)))


def runs_again(run: Run, active: ActiveJob, status: JobStatus, queue: Queue) -> bool:
    """Return whether an ended job can make progress if it is submitted again.

    It can if it was stopped at its time limit or preempted after it finished a step, if its next
    time limit is longer, if it ended before this process queried it, or if an earlier process
    cancelled it.
    """
    left = unfinished(run, active.job)
    early = status.state in (State.FAIL_FAST, State.DISTURBED)
    cut = status.state in (State.TIME_LIMIT, State.PREEMPTED)
    unseen = active.resumed or active.submission.stopping
    longest = longest_step_s(active.job.steps, queue)
    longer = status.state is State.TIME_LIMIT and active.request.seconds < longest
    return bool(left and cut and (left < active.steps_left or longer)) or (
        unseen and not early and any(needs_execution(run.files, step) for step in active.job.steps)
    )


def failure(run: Run, job: Job, reason: str) -> BadInput:
    """Return the error of a job whose script failed, with its last messages."""
    messages = text_or_empty(JobFolder(run, job).log).splitlines()[-3:]
    free = f"{size(shutil.disk_usage(run.folder).free)} free in {run.folder}"
    found = f"{reason}; {' / '.join(messages) or 'no message'}; {free}"
    return bad_input(f"job {job.id}", "", found, "a job that runs all its steps")
