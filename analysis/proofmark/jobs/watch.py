"""The jobs of a run in the queue: submitted, watched and given up, each wait with a bound."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.nodesets import folded
from proofmark.common.text import duration, size
from proofmark.jobs.job_script import write_job
from proofmark.jobs.request import request_of
from proofmark.machine.scheduler import Request, SchedulerError, SchedulerUnavailable, scheduler
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import JobFolder, Submission, status_text, unfinished
from proofmark.runs.job_state import JobStatus, State
from proofmark.runs.run import Run
from proofmark.site.execution import Queue

_SETTLE_S = 60.0
"""A shared file system may show a node's last files that much later."""
_CANCEL_S = 60.0
_REQUEUES = 3
_STOPPED = 143  # exit code of a job's script that a signal stopped in order


@dataclass
class ActiveJob:
    """A job that is, or may be, in the queue.

    Attributes:
        left: steps without a result when it was submitted.
        found: it was there before this process, which has not asked about it yet.
        since: when its state began.
        stuck: when it began to be stuck.
    """

    job: Job
    folder: JobFolder
    request: Request
    ticket: Submission
    left: int
    found: bool
    report: JobStatus
    since: float
    stuck: float | None = None
    requeues: int = 0


class JobMonitor:
    """All unfinished jobs of one mode; `turn` does what can be done now.

    Args:
        run: of the jobs.
        jobs: of the plan, or a part of such a job: fewer nodes or steps.
        name: of the scheduler.
        queue: how jobs are put into it.
        say: gets a line when something befalls a job.
        without: by job, the nodes that it is planned for and may not have, and why.
        again: the steps have results; they are run once more.
    """

    def __init__(
        self,
        run: Run,
        jobs: Iterable[Job],
        name: str,
        queue: Queue,
        say: Callable[[str], None],
        *,
        without: Mapping[str, str] | None = None,
        again: bool = False,
    ) -> None:
        self._run, self._name, self._queue, self._say = run, name, queue, say
        self._without, self._again = without or {}, again
        self._scheduler = scheduler(name)
        self._pending: list[Job] = []
        self._live: list[ActiveJob] = []
        self._failed: tuple[Job, str] | None = None
        self._changed = time.monotonic()
        for job in jobs:
            ticket = JobFolder(run, job).ticket()
            if ticket and ticket.scheduler == name:
                self._live.append(self._watch(job, ticket, found=True))
            else:
                self._pending.append(job)

    @property
    def pause(self) -> float:
        """Seconds until the next turn: a twentieth of how long nothing has happened."""
        quiet = time.monotonic() - self._changed
        return min(self._scheduler.poll_s, max(0.2, quiet / 20))

    @property
    def line(self) -> str:
        """What the jobs do, in few words; nothing where one runs and none waits."""
        states: dict[str, int] = {}
        for live in self._live:
            words = (
                status_text(live.report) if live.report.state is not State.RUNNING else "running"
            )
            states[words] = states.get(words, 0) + 1
        if set(states) <= {"running"} and not self._pending:
            return ""
        parts = [f"{number} {words}" for words, number in states.items()]
        parts += [f"{len(self._pending)} to submit"] if self._pending else []
        return f"jobs: {', '.join(parts)}"

    def poll(self) -> bool:
        """Submit what may be submitted, ask once for all; return whether anything is left.

        Raises:
            BadInput: a job's script failed; no other is left in the queue.
        """
        if not self._failed:
            self._submit()
        self._ask()
        if self._failed and not self._live:
            raise self._failure(*self._failed)
        return bool(self._live or (self._pending and not self._failed))

    def cancel(self, why: str) -> None:
        """Cancel all jobs, and wait a little until they are gone."""
        for live in self._live:
            live.ticket = replace(live.ticket, stopping=True)
            with suppress(BadInput):  # a full disk, which may be why: no job may stay for that
                live.folder.save(live.ticket)
        end = time.monotonic() + _CANCEL_S
        try:
            if ids := [live.ticket.id for live in self._live if live.ticket.id]:
                self._scheduler.cancel(ids)
            while self._live and time.monotonic() < end:
                known = self._scheduler.states([live.ticket.id for live in self._live])
                for live in list(self._live):
                    report = known.get(live.ticket.id)
                    if report is None or report.state.final or report.state is State.ENDED_UNKNOWN:
                        live.folder.append_event(
                            live.ticket, JobStatus(State.CANCELLED, why), over=True
                        )
                        self._live.remove(live)
                if self._live:
                    time.sleep(0.2)
        except (SchedulerUnavailable, SchedulerError) as error:
            self._say(f"not cancelled, their tickets stay: {error}")

    # --- submitting ---------------------------------------------------------------------------

    def _submit(self) -> None:
        room = self._queue.max_jobs - len(self._live)
        if room <= 0 or not self._pending:
            return
        nodes = self._nodes()
        for job in sorted(self._pending, key=lambda job: _rank(job, nodes)):
            if room > 0 and self._apart(job):
                room -= 1
                self._pending.remove(job)
                self._submit_one(job, nodes)

    def _nodes(self) -> Mapping[str, str]:
        wanted = dict.fromkeys(node for job in self._pending for node in job.nodes)
        try:
            return self._scheduler.nodes(list(wanted))
        except (SchedulerUnavailable, SchedulerError):
            return {}

    def _apart(self, job: Job) -> bool:
        """Return whether `job` cannot disturb one that is submitted already."""
        if self._queue.exclusive and self._scheduler.isolates_jobs:
            return True
        return not any(set(job.nodes) & set(live.job.nodes) for live in self._live)

    def _submit_one(self, job: Job, nodes: Mapping[str, str]) -> None:
        folder, given = JobFolder(self._run, job), job
        without = [self._without[job.id]] if job.id in self._without else []
        if len(job.nodes) > 1 and all(step.scope != "job" for step in job.steps):
            # Not to wait for ever for a node that is down: it is a hole in the coverage.
            there = [node for node in job.nodes if not nodes.get(node, "").startswith("down")]
            lost = {node: nodes[node] for node in job.nodes if node not in there}
            if there and lost:
                given = job.model_copy(update={"nodes": there})
                without.append(f"{folded(lost)}: {'; '.join(dict.fromkeys(lost.values()))}")
                self._say(f"job {job.id}: without {without[-1]}")
        asked = write_job(self._run.folder, given, self._name, self._queue, again=self._again)
        ticket = folder.create(self._name, asked.name)
        live = self._watch(job, ticket, found=False)
        live.request = asked
        told_of = JobStatus(State.WAITING, "to be submitted")
        folder.append_event(ticket, told_of, without="; ".join(without))
        self._live.append(live)
        self._submit_or_find(live)

    def _submit_or_find(self, live: ActiveJob) -> None:
        """Submit a job whose ticket has no id yet, unless an earlier try came through."""
        try:
            job = self._scheduler.find(live.ticket.name)
            job = job or self._scheduler.submit(live.folder.script, live.request)
        except SchedulerUnavailable as error:
            self._note(live, JobStatus(State.UNREACHABLE, str(error)))
        except SchedulerError as error:
            self._finish(live, JobStatus(State.REFUSED, str(error)))
        else:
            self._submitted(live, job)
            self._note(live, JobStatus(State.WAITING))

    def _submitted(self, live: ActiveJob, job: str) -> None:
        """Note the job's id; it is known here also where the disk has no room for it."""
        live.ticket = replace(live.ticket, id=job)
        live.folder.save(live.ticket)

    def _watch(self, job: Job, ticket: Submission, *, found: bool) -> ActiveJob:
        folder = JobFolder(self._run, job)
        asked = request_of(self._run.folder, job, self._queue)
        left, now = unfinished(self._run, job), time.monotonic()
        return ActiveJob(job, folder, asked, ticket, left, found, JobStatus(State.WAITING), now)

    # --- watching -----------------------------------------------------------------------------

    def _ask(self) -> None:
        for live in [live for live in self._live if not live.ticket.id]:
            if live.found and not self._find_submitted(live):
                continue
            if not live.ticket.id:
                self._submit_or_find(live)
        asked = [live for live in self._live if live.ticket.id]
        try:
            known = self._scheduler.states([live.ticket.id for live in asked]) if asked else {}
        except (SchedulerUnavailable, SchedulerError) as error:
            for live in asked:
                self._note(live, JobStatus(State.UNREACHABLE, str(error)))
        else:
            for live in asked:
                self._judge(live, known.get(live.ticket.id))
        for live in list(self._live):
            self._abandon(live)

    def _find_submitted(self, live: ActiveJob) -> bool:
        """Find out about a job that was about to be submitted when its controller died."""
        try:
            job = self._scheduler.find(live.ticket.name)
        except (SchedulerUnavailable, SchedulerError) as error:
            self._note(live, JobStatus(State.UNREACHABLE, str(error)))
            return False
        if job:
            self._submitted(live, job)
            return True
        self._finish(live, JobStatus(State.VANISHED, "not in the queue: never submitted, or ended"))
        return False

    def _judge(self, live: ActiveJob, report: JobStatus | None) -> None:
        if report is None:
            known = self._scheduler.ended(live.ticket.id)
            report = known or JobStatus(State.VANISHED, "the scheduler no longer knows it")
        if report.state in (State.ENDED_UNKNOWN, State.VANISHED):
            report = _by_exit_code(live.folder.exit_code(live.ticket)) or report
        if report.state is State.ENDED and unfinished(self._run, live.job):
            report = JobStatus(State.ENDED_UNKNOWN, "steps without a result")
        if report.state is State.NODE_FAILED:
            report = JobStatus(State.NODE_FAILED, self._lost(live) or report.reason)
        if report.state.final:
            self._finish(live, report)
        else:
            self._note(live, report)

    def _lost(self, live: ActiveJob) -> str:
        """Name the nodes of a job that are down."""
        try:
            nodes = self._scheduler.nodes(live.request.nodes)
        except (SchedulerUnavailable, SchedulerError):
            return ""
        down = {node: why for node, why in nodes.items() if why.startswith("down")}
        return "; ".join(f"{node}: {why}" for node, why in down.items())

    def _note(self, live: ActiveJob, report: JobStatus) -> None:
        before, now = live.report, time.monotonic()
        live.found = False
        if report == before:
            return
        live.report = report
        live.folder.append_event(live.ticket, report)
        if report.state is before.state:
            return
        self._changed = live.since = now
        live.stuck = (live.stuck or now) if report.state.stuck else None
        live.requeues += (before.state, report.state) == (State.RUNNING, State.WAITING)
        if report.state.stuck:
            self._say(f"job {live.job.id}: {status_text(report)}")

    def _abandon(self, live: ActiveJob) -> None:
        state, queue = live.report.state, self._queue
        bounds = {
            State.WAITING: queue.queue_timeout_s,
            State.RUNNING: live.request.seconds + queue.stall_timeout_s,
            State.ENDED_UNKNOWN: min(_SETTLE_S, queue.stall_timeout_s),
            State.VANISHED: min(_SETTLE_S, queue.stall_timeout_s),
        }
        bound = bounds.get(state, queue.stall_timeout_s)
        began = live.since if state in bounds else live.stuck or live.since
        if live.requeues > _REQUEUES:
            report = JobStatus(State.REQUEUED, f"{live.requeues} times")
        elif time.monotonic() - began < bound:
            return
        else:
            reason = f"{live.report.reason}, given up after {duration(bound)}"
            report = JobStatus(state, reason.removeprefix(", "))
        if state is State.UNREACHABLE:  # nobody would hear us cancel it: who comes later finds it
            live.folder.append_event(live.ticket, report)
            self._drop(live, report)
            return
        try:
            self._scheduler.cancel([live.ticket.id])
        except (SchedulerUnavailable, SchedulerError) as error:
            report = JobStatus(report.state, f"{report.reason}, not cancelled: {error}")
        self._finish(live, report)

    def _finish(self, live: ActiveJob, report: JobStatus) -> None:
        """Stop monitoring a job; resubmit it if it made progress before it was stopped."""
        live.folder.append_event(live.ticket, report, over=True)
        left = unfinished(self._run, live.job)
        goes_on = report.state in (State.TIME_LIMIT, State.PREEMPTED) and left < live.left
        if left and (live.found or live.ticket.stopping or goes_on):
            self._say(f"job {live.job.id}: {status_text(report)}; goes on")
            self._pending.append(live.job)
            self._live.remove(live)
            self._changed = time.monotonic()
            return
        if report.state is State.FAILED:
            self._failed = (live.job, report.reason)
        self._drop(live, report)

    def _drop(self, live: ActiveJob, report: JobStatus) -> None:
        self._live.remove(live)
        self._changed = time.monotonic()
        if report.state not in (State.ENDED, State.FAILED):
            self._say(f"job {live.job.id}: {status_text(report)}")

    def _failure(self, job: Job, reason: str) -> Exception:
        log = JobFolder(self._run, job).log
        messages = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
        free = size(shutil.disk_usage(self._run.folder).free)
        room = f"{free} free in {self._run.folder}"
        found = f"{reason}; {' / '.join(messages) or 'no message'}; {room}"
        return bad_input(f"job {job.id}", "", found, "a job that runs all its steps")


def _by_exit_code(code: int | None) -> JobStatus | None:
    """Return how a job ended that left this exit code."""
    if code is None:
        return None
    if code == _STOPPED:
        return JobStatus(State.CANCELLED, "a signal stopped it")
    return JobStatus(State.FAILED, f"exit code {code}") if code else JobStatus(State.ENDED)


def _rank(job: Job, nodes: Mapping[str, str]) -> int:
    """Idle nodes first, then busy ones, then those that are down."""
    states = {nodes.get(node, "idle").partition(" ")[0] for node in job.nodes}
    return 2 if "down" in states else 1 if "busy" in states else 0
