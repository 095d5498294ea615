"""Submits and monitors the jobs of a run; every wait has a limit."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import text_or_empty
from proofmark.common.nodesets import folded
from proofmark.common.text import duration, size
from proofmark.jobs.job_request import request_of
from proofmark.jobs.job_script import Manner, write_job
from proofmark.machine.child_jobs import ChildJobs
from proofmark.machine.scheduler import Request, SchedulerError, SchedulerUnavailable, scheduler
from proofmark.plan.plan import Job
from proofmark.runs.disturbed_steps import needs_execution
from proofmark.runs.job_folder import JobFolder, Submission, status_text, unfinished
from proofmark.runs.job_state import JobStatus, State
from proofmark.runs.run import Run
from proofmark.site.execution import Queue

_SETTLE_S = 60.0
"""The delay after which the last files of a node are visible on a shared file system, at most."""
_CANCEL_S = 60.0
"""The longest wait for the end of cancelled jobs."""
_MAX_REQUEUES = 3
_EXIT_CODE_STOPPED = 143
"""The exit code of a job script that a signal stopped."""
_REPEAT_S = 600.0
"""The time in which a poll that fails is repeated."""

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


@dataclass
class ActiveJob:
    """A job that is, or may be, in the queue.

    Attributes:
        job: the job of the plan, or a part of it.
        folder: its folder in the run.
        request: its request to the scheduler.
        submission: its entry in ``ticket.json``.
        steps_left: number of steps without a result when it was submitted.
        resumed: whether an earlier process submitted it, and its state was not queried yet.
        status: its last reported status.
        state_since: when this state began, by the monotonic clock.
        stuck_since: when it became stuck (`State.stuck`); None if it is not.
        requeues: how often it went from running back to waiting.
    """

    job: Job
    folder: JobFolder
    request: Request
    submission: Submission
    steps_left: int
    resumed: bool
    status: JobStatus
    state_since: float
    stuck_since: float | None = None
    requeues: int = 0


class JobMonitor:
    """Submits and monitors all unfinished jobs of one mode; `poll` is called until it is done.

    Args:
        run: the run of the jobs.
        jobs: jobs of the plan, or parts of them: fewer nodes or steps.
        scheduler_name: name of the scheduler.
        queue: the settings of the queue.
        say: called with one line for each change of a job that the user must know.
        excluded_nodes: the planned nodes that a job does not get and the reason, by id of the job.
        manner: which steps the jobs run, and when they stop.
        follow: returns the jobs that can run after the end of a job; called after each end.

    Attributes:
        stopped_early: the job and the step by which fail_fast stopped all jobs; empty if none did.
    """

    def __init__(
        self,
        run: Run,
        jobs: Iterable[Job],
        scheduler_name: str,
        queue: Queue,
        say: Callable[[str], None],
        *,
        excluded_nodes: Mapping[str, str] | None = None,
        manner: Manner = Manner.UNFINISHED,
        follow: Callable[[], Iterable[Job]] | None = None,
    ) -> None:
        self._follow, self._ended = follow, False
        self._run, self._scheduler_name, self._queue, self._say = run, scheduler_name, queue, say
        self._excluded_nodes = {} if excluded_nodes is None else excluded_nodes
        self._manner = manner
        self._scheduler = scheduler(scheduler_name)
        self._pending: list[Job] = []
        self._active: list[ActiveJob] = []
        self._failed: tuple[Job, str] | None = None
        self._failing_since: float | None = None
        self._changed = time.monotonic()
        self.stopped_early = ""
        for job in jobs:
            folder = JobFolder(run, job)
            try:
                submission = folder.submission()
            except BadInput as error:
                folder.not_run(scheduler_name, f"{error}")
                say(f"job {job.id}: NOT RUN: {error}")
                continue
            if submission and submission.scheduler == scheduler_name:
                submitted, rest = _divided(run, job, submission)
                self._active.append(self._active_job(submitted, submission, resumed=True))
                self._pending += [rest] if rest else []
            else:
                self._pending.append(job)

    @property
    def pause(self) -> float:
        """Seconds until the next poll: a twentieth of the time since the last change."""
        quiet = time.monotonic() - self._changed
        return min(self._scheduler.poll_s, max(0.2, quiet / 20))

    @property
    def running(self) -> dict[str, int]:
        """The jobs that run, with the number of their earlier attempts."""
        return {
            each.job.id: each.submission.attempts
            for each in self._active
            if each.status.state is State.RUNNING
        }

    @property
    def line(self) -> str:
        """The number of jobs in each state as text; empty if all jobs run."""
        states: dict[str, int] = {}
        for active in self._active:
            running = active.status.state is State.RUNNING
            text = "running" if running else status_text(active.status)
            states[text] = states.get(text, 0) + 1
        if set(states) <= {"running"} and not self._pending:
            return ""
        parts = [f"{number} {text}" for text, number in states.items()]
        parts += [f"{len(self._pending)} to submit"] if self._pending else []
        return f"jobs: {', '.join(parts)}"

    def poll(self) -> bool:
        """Submit pending jobs, query the state of all active jobs; return whether a job is left.

        A poll that fails is repeated for ten minutes.

        Raises:
            BadInput: the script of a job failed, and no other job is in the queue; or a file of
                the run cannot be written.
        """
        try:
            left = self._poll()
        except BadInput:
            raise
        except Exception as error:
            if self._failing_since is None:
                self._failing_since = time.monotonic()
                self._say(f"the poll is repeated: {type(error).__name__}: {error}")
            if time.monotonic() - self._failing_since > _REPEAT_S:
                raise
            return True
        self._failing_since = None
        return left

    def _poll(self) -> bool:
        if not self._failed:
            self._submit()
        self._query()
        if self._failed and not self._active:
            raise self._failure(*self._failed)
        if self._ended and self._follow and not self._failed and not self.stopped_early:
            self._ended = False
            self._pending += self._follow()
        return bool(self._active or (self._pending and not self._failed))

    def leave(self, why: str) -> None:
        """Stop monitoring. The jobs go on, except those that end with this process."""
        if isinstance(self._scheduler, ChildJobs):
            self.cancel(why)
        elif ids := [active.submission.id for active in self._active if active.submission.id]:
            self._say(f"jobs {', '.join(ids)} go on; the same command finds them again")

    def cancel(self, why: str) -> None:
        """Cancel all jobs, and wait up to a minute for their end."""
        self._cancel(JobStatus(State.CANCELLED, why))

    def _cancel(self, status: JobStatus) -> None:
        for active in self._active:
            active.submission = replace(active.submission, stopping=True)
            with suppress(BadInput):  # a full disk must not prevent the cancellation
                active.folder.save(active.submission)
        ids = [active.submission.id for active in self._active if active.submission.id]
        end = time.monotonic() + _CANCEL_S
        problem = ""
        try:
            if ids:
                self._ask(self._scheduler.cancel, ids)
            while self._active and time.monotonic() < end:
                problem = self._remove_ended(status)
                if self._active:
                    time.sleep(0.2)
        except (SchedulerUnavailable, SchedulerError) as error:
            problem = str(error)
        if problem:
            self._say(f"jobs not cancelled, their ticket.json is kept: {problem}")

    def _remove_ended(self, cancelled: JobStatus) -> str:
        """Remove the cancelled jobs that have ended; return why that is not known of one."""
        try:
            ids = [active.submission.id for active in self._active]
            statuses = self._ask(self._scheduler.states, ids)
        except (SchedulerUnavailable, SchedulerError) as error:
            return str(error)
        for active in list(self._active):
            status = statuses.get(active.submission.id)
            if status is None or status.state.final or status.state is State.ENDED_UNKNOWN:
                active.folder.append_event(active.submission, cancelled, over=True)
                self._active.remove(active)
        return ""

    def _ask(
        self, call: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs
    ) -> Answer:
        """Return the answer of the scheduler. An answer that nobody can read is none.

        Raises:
            SchedulerError: it refuses.
            SchedulerUnavailable: it does not answer, or by something that cannot be read, or its
                commands are missing while jobs of this run are in its queue.
        """
        try:
            return call(*given, **named)
        except (SchedulerError, SchedulerUnavailable):
            raise
        except BadInput as error:
            if not any(active.submission.id for active in self._active):
                raise
            raise SchedulerUnavailable(str(error)) from None
        except Exception as error:
            if isinstance(self._scheduler, ChildJobs):
                raise  # nothing was read: a job could not be started
            raise SchedulerUnavailable(f"{type(error).__name__}: {error}") from error

    # --- submitting ---------------------------------------------------------------------------

    def _submit(self) -> None:
        room = self._queue.max_jobs - len(self._active)
        if room <= 0 or not self._pending:
            return
        nodes = self._node_states()
        for job in sorted(self._pending, key=lambda job: _order(job, nodes)):
            if room > 0 and self._is_independent(job):
                room -= 1
                self._pending.remove(job)
                self._submit_one(job, nodes)

    def _node_states(self) -> Mapping[str, str]:
        names = dict.fromkeys(node for job in self._pending for node in job.nodes)
        try:
            return self._ask(self._scheduler.nodes, list(names))
        except (SchedulerUnavailable, SchedulerError):
            return {}

    def _is_independent(self, job: Job) -> bool:
        """Return whether `job` cannot disturb an active job, and is no part of one."""
        if any(job.id == active.job.id for active in self._active):
            return False
        if self._queue.exclusive and self._scheduler.isolates_jobs:
            return True
        return not any(set(job.nodes) & set(active.job.nodes) for active in self._active)

    def _submit_one(self, job: Job, nodes: Mapping[str, str]) -> None:
        folder, submitted_job = JobFolder(self._run, job), job
        excluded = [self._excluded_nodes[job.id]] if job.id in self._excluded_nodes else []
        if len(job.nodes) > 1 and all(step.scope != "job" for step in job.steps):
            # The job does not wait for a node that is down; the coverage lists the node as missing.
            down = {node: nodes[node] for node in job.nodes if _is_down(nodes.get(node, ""))}
            if 0 < len(down) < len(job.nodes):
                available = [node for node in job.nodes if node not in down]
                submitted_job = job.model_copy(update={"nodes": available})
                excluded.append(f"{folded(down)}: {'; '.join(dict.fromkeys(down.values()))}")
                self._say(f"job {job.id}: without {excluded[-1]}")
        request = write_job(
            self._run.folder, submitted_job, self._scheduler_name, self._queue, self._manner
        )
        submission = folder.create(self._scheduler_name, request.name)
        active = self._active_job(job, submission, resumed=False)
        active.request = request
        waiting = JobStatus(State.WAITING, "to be submitted")
        folder.append_event(submission, waiting, without="; ".join(excluded))
        self._active.append(active)
        self._submit_or_find(active)

    def _submit_or_find(self, active: ActiveJob) -> None:
        """Submit a job without an id, unless an earlier attempt to submit it succeeded."""
        try:
            job_id = self._ask(self._scheduler.find, active.submission.name)
            job_id = job_id or self._ask(
                self._scheduler.submit, active.folder.script, active.request
            )
        except SchedulerUnavailable as error:
            self._update(active, JobStatus(State.UNREACHABLE, str(error)))
        except SchedulerError as error:
            self._finish(active, JobStatus(State.REFUSED, str(error)))
        else:
            self._store_id(active, job_id)
            self._update(active, JobStatus(State.WAITING))

    def _store_id(self, active: ActiveJob, job_id: str) -> None:
        """Store the id of a job, first in memory: the disk may be full.

        Raises:
            BadInput: its id cannot be stored; the job was cancelled, because nobody would find it.
        """
        active.submission = replace(active.submission, id=job_id)
        try:
            active.folder.save(active.submission)
        except BadInput:
            with suppress(SchedulerUnavailable, SchedulerError):
                self._ask(self._scheduler.cancel, [job_id])
            raise

    def _active_job(self, job: Job, submission: Submission, *, resumed: bool) -> ActiveJob:
        return ActiveJob(
            job,
            folder=JobFolder(self._run, job),
            request=request_of(self._run.folder, job, self._queue),
            submission=submission,
            steps_left=unfinished(self._run, job),
            resumed=resumed,
            status=JobStatus(State.WAITING),
            state_since=time.monotonic(),
        )

    # --- monitoring ---------------------------------------------------------------------------

    def _query(self) -> None:
        for active in [active for active in self._active if not active.submission.id]:
            if active.resumed and not self._find_submitted(active):
                continue
            if not active.submission.id:
                self._submit_or_find(active)
        submitted = [active for active in self._active if active.submission.id]
        ids = [active.submission.id for active in submitted]
        try:
            statuses = self._ask(self._scheduler.states, ids) if ids else {}
        except (SchedulerUnavailable, SchedulerError) as error:
            for active in submitted:
                self._update(active, JobStatus(State.UNREACHABLE, str(error)))
        else:
            for active in submitted:
                self._evaluate(active, statuses.get(active.submission.id))
        for active in list(self._active):
            self._give_up_if_overdue(active)

    def _find_submitted(self, active: ActiveJob) -> bool:
        """Return whether the scheduler has the job of an unfinished submission."""
        try:
            job_id = self._ask(self._scheduler.find, active.submission.name)
        except (SchedulerUnavailable, SchedulerError) as error:
            self._update(active, JobStatus(State.UNREACHABLE, str(error)))
            return False
        if job_id:
            self._store_id(active, job_id)
            return True
        self._finish(
            active, JobStatus(State.VANISHED, "not in the queue: never submitted, or ended")
        )
        return False

    def _evaluate(self, active: ActiveJob, status: JobStatus | None) -> None:
        if status is None:
            status = self._by_id(active.submission.id)
        if status.state in (State.ENDED_UNKNOWN, State.VANISHED):
            status = _by_exit_code(active.folder.exit_code(active.submission)) or status
        early = active.folder.stopped_early(active.submission)
        if status.state is State.ENDED and early:
            status = JobStatus(State.FAIL_FAST, early)
        if status.state is State.ENDED and unfinished(self._run, active.job):
            status = JobStatus(State.ENDED_UNKNOWN, "steps without a result")
        if status.state is State.NODE_FAILED:
            status = JobStatus(State.NODE_FAILED, self._down_nodes(active) or status.reason)
        if status.state.final:
            self._finish(active, status)
        else:
            self._update(active, status)

    def _by_id(self, job: str) -> JobStatus:
        """Return the state of a job that a listing does not show."""
        try:
            known = self._ask(self._scheduler.ended, job)
        except (SchedulerUnavailable, SchedulerError) as error:
            return JobStatus(State.UNREACHABLE, str(error))
        return known or JobStatus(State.VANISHED, "the scheduler no longer lists it")

    def _down_nodes(self, active: ActiveJob) -> str:
        """Return the nodes of a job that are down as text, each with the reason."""
        try:
            nodes = self._ask(self._scheduler.nodes, active.request.nodes)
        except (SchedulerUnavailable, SchedulerError):
            return ""
        return "; ".join(f"{node}: {state}" for node, state in nodes.items() if _is_down(state))

    def _update(self, active: ActiveJob, status: JobStatus) -> None:
        previous, now = active.status, time.monotonic()
        active.resumed = False
        if status == previous:
            return
        active.status = status
        active.folder.append_event(active.submission, status)
        if status.state is previous.state:
            return
        self._changed = active.state_since = now
        active.stuck_since = (active.stuck_since or now) if status.state.stuck else None
        active.requeues += (previous.state, status.state) == (State.RUNNING, State.WAITING)
        if status.state.stuck:
            self._say(f"job {active.job.id}: {status_text(status)}")

    def _give_up_if_overdue(self, active: ActiveJob) -> None:
        state, queue = active.status.state, self._queue
        limits = {
            State.WAITING: queue.queue_timeout_s,
            State.RUNNING: active.request.seconds + queue.stall_timeout_s,
            State.ENDED_UNKNOWN: min(_SETTLE_S, queue.stall_timeout_s),
            State.VANISHED: min(_SETTLE_S, queue.stall_timeout_s),
        }
        limit = limits.get(state, queue.stall_timeout_s)
        start = active.state_since if state in limits else active.stuck_since or active.state_since
        if active.requeues > _MAX_REQUEUES:
            status = JobStatus(State.REQUEUED, f"{active.requeues} times")
        elif time.monotonic() - start < limit:
            return
        else:
            reason = f"{active.status.reason}, given up after {duration(limit)}"
            status = JobStatus(state, reason.removeprefix(", "))
        if state is State.UNREACHABLE:  # it cannot be cancelled; ticket.json is kept for later
            active.folder.append_event(active.submission, status)
            self._remove(active, status)
            return
        try:
            self._ask(self._scheduler.cancel, [active.submission.id])
        except (SchedulerUnavailable, SchedulerError) as error:
            status = JobStatus(status.state, f"{status.reason}, not cancelled: {error}")
        self._finish(active, status)

    def _finish(self, active: ActiveJob, status: JobStatus) -> None:
        """Stop monitoring a job; mark it as pending again if it can make progress.

        It can if it was stopped at its time limit or preempted after it finished a step, if it
        ended before this process queried it, or if an earlier process cancelled it. A job that
        stopped by fail_fast stops all others.
        """
        active.folder.append_event(active.submission, status, over=True)
        left, early = unfinished(self._run, active.job), status.state is State.FAIL_FAST
        cut = status.state in (State.TIME_LIMIT, State.PREEMPTED)
        unseen = active.resumed or active.submission.stopping
        again = (left and cut and left < active.steps_left) or (
            unseen
            and not early
            and any(needs_execution(self._run.files, step) for step in active.job.steps)
        )
        if again:
            self._say(f"job {active.job.id}: {status_text(status)}; submitted again")
            self._pending.append(active.job)
            self._active.remove(active)
            self._changed = time.monotonic()
            return
        if status.state is State.FAILED:
            self._failed = (active.job, status.reason)
        self._remove(active, status)
        if early:
            self.stopped_early, self._pending = f"job {active.job.id}: {status.reason}", []
            self._cancel(JobStatus(State.FAIL_FAST, self.stopped_early))

    def _remove(self, active: ActiveJob, status: JobStatus) -> None:
        self._active.remove(active)
        self._changed, self._ended = time.monotonic(), True
        if status.state not in (State.ENDED, State.FAILED):
            self._say(f"job {active.job.id}: {status_text(status)}")

    def _failure(self, job: Job, reason: str) -> Exception:
        log = JobFolder(self._run, job).log
        messages = text_or_empty(log).splitlines()[-3:]
        free = f"{size(shutil.disk_usage(self._run.folder).free)} free in {self._run.folder}"
        found = f"{reason}; {' / '.join(messages) or 'no message'}; {free}"
        return bad_input(f"job {job.id}", "", found, "a job that runs all its steps")


def _divided(run: Run, job: Job, submission: Submission) -> tuple[Job, Job | None]:
    """Return the part of a job that was submitted, and the rest of `job`; None if there is none.

    The rest are steps that became ready after the submission.
    """
    submitted = submission.steps.split()
    planned = {step.id: step for step in run.plan.steps()}
    part = [planned[name] for name in submitted if name in planned] or job.steps
    rest = [step for step in job.steps if step not in part]
    return (
        job.model_copy(update={"steps": part}),
        job.model_copy(update={"steps": rest}) if rest else None,
    )


def _by_exit_code(code: int | None) -> JobStatus | None:
    """Return the status of an ended job by the exit code of its script; None if there is none."""
    if code is None:
        return None
    if code == _EXIT_CODE_STOPPED:
        return JobStatus(State.CANCELLED, "a signal stopped it")
    return JobStatus(State.FAILED, f"exit code {code}") if code else JobStatus(State.ENDED)


def _is_down(state: str) -> bool:
    return state.startswith("down")


def _order(job: Job, nodes: Mapping[str, str]) -> int:
    """Return the sort key of a pending job: 2 if a node is down, 1 if one is busy, else 0."""
    states = {nodes.get(node, "idle").partition(" ")[0] for node in job.nodes}
    return 2 if "down" in states else 1 if "busy" in states else 0
