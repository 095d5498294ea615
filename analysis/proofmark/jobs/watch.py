"""Submits and monitors the jobs of a run; every wait has a limit.

An answer of the scheduler that cannot be read counts as no answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.grouping import flat
from proofmark.common.progress_lines import Say
from proofmark.common.rights import User, run_user, starting_as
from proofmark.jobs.active_job import (
    OWN_ENDS,
    ActiveJob,
    described,
    failure,
    has_run,
    overdue,
    runs_again,
    shown_status,
    with_down_nodes,
)
from proofmark.jobs.job_request import BatchQueue, JobSupply, divided, order, without_down_nodes
from proofmark.jobs.scripts import Manner, write_job
from proofmark.machine.scheduler import (
    IDLE,
    NO_SUCH_JOB,
    JobStatuses,
    NoCommand,
    NodeState,
    NodeStates,
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    SubmitLimitReached,
    is_closed,
    is_down,
    scheduler,
    waits_for,
)
from proofmark.machine.schedulers.none import ChildJobs
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import JobFolder, JobStatus, State, status_text
from proofmark.runs.run import Run

Given = ParamSpec("Given")

Answer = TypeVar("Answer")

_CANCEL_S = 60.0
"""The longest wait for the end of cancelled jobs."""

_LOOK_S = 1.0
"""The time between two looks at the files of the jobs."""
_REPEAT_S = 600.0
"""The time in which a poll that fails is repeated."""


class AskedScheduler:
    """A scheduler that refuses or does not answer, whatever goes wrong.

    Args:
        in_queue: returns the ids of the jobs of this run in its queue.
        reservation: that of the jobs; empty if they have none.
    """

    def __init__(
        self, chosen: Scheduler, in_queue: Callable[[], object], user: User, reservation: str = ""
    ) -> None:
        self.chosen, self._in_queue, self._user = chosen, in_queue, user
        self._reservation = reservation

    @property
    def ends_with_process(self) -> bool:
        """Whether its jobs end with this process."""
        return isinstance(self.chosen, ChildJobs)

    def _ask(
        self, call: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs
    ) -> Answer:
        """Return the answer of `call`, a method of the scheduler.

        Raises:
            BadInput: its commands are missing, and no job of this run is in its queue.
            SchedulerError: it refuses.
            SchedulerUnavailable: it does not answer, or by something that cannot be read, or its
                commands are missing while jobs of this run are in its queue.
        """
        try:
            with starting_as(self._user):
                return call(*given, **named)
        except (BadInput, NoCommand) as error:
            if self._in_queue():
                raise SchedulerUnavailable(str(error)) from None
            if isinstance(error, BadInput):
                raise
            accepted = "a scheduler whose commands are installed on this host"
            raise bad_input("partition", "scheduler", f"{error}", accepted) from None
        except SchedulerError:
            raise
        except Exception as error:
            if self.ends_with_process:
                raise  # nothing was read: a job could not be started
            raise SchedulerUnavailable(f"{type(error).__name__}: {error}") from error

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the states of the jobs that it lists; no job is asked for if `ids` are empty."""
        return self._ask(self.chosen.states, ids) if ids else {}

    def find(self, name: str) -> str:
        """Return the id of the job `name` that has not ended; empty if there is none."""
        return self._ask(self.chosen.find, name)

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script` and return the id of the job."""
        return self._ask(self.chosen.submit, script, request)

    def cancel(self, ids: Sequence[str]) -> None:
        """End the jobs."""
        self._ask(self.chosen.cancel, ids)

    def node_states(self, nodes: Sequence[str]) -> NodeStates:
        """Return the known states of `nodes`; none if it does not answer.

        A reserved node is idle for the jobs of a reservation: no other function decides that.

        Raises:
            BadInput: the scheduler, a plug-in of the site, has states of another type.
        """
        try:
            states = self._ask(self.chosen.nodes, list(dict.fromkeys(nodes)))
        except SchedulerError:
            return {}
        for state in states.values():
            if not isinstance(state, NodeState):
                name = type(self.chosen).__name__
                raise bad_input(name, "nodes", repr(state), "a NodeState of proofmark.api")
        own = self._reservation
        closed = {node for node, state in states.items() if is_closed(state)}
        opened = {node for node in closed if not is_closed(states[node], own)}
        return {node: IDLE if node in opened else state for node, state in states.items()}

    def by_id(self, job: str) -> JobStatus:
        """Return the state of a job that a listing does not show.

        A job is not VANISHED because a listing lacks it: the scheduler must say so of its id.
        """
        try:
            known = self._ask(self.chosen.ended, job)
        except SchedulerError as error:
            return JobStatus(State.UNREACHABLE, str(error))
        return known or JobStatus(State.UNREACHABLE, "it does not say whether it has the job")

    def answer(self, call: Callable[[str], Answer], job: str, unknown: Answer) -> Answer:
        """Return what `call`, a method of the scheduler, answers about a job, or `unknown`."""
        try:
            return self._ask(call, job)
        except (SchedulerError, BadInput):
            return unknown

    def down_nodes(self, nodes: Sequence[str]) -> str:
        """Return those of `nodes` that are down as text, each with the reason."""
        states = self.node_states(nodes)
        return "; ".join(f"{node}: {state}" for node, state in states.items() if is_down(state))


class JobMonitor:
    """Submits and monitors all unfinished jobs of one mode; `poll` is called until it is done.

    Args:
        say: called with one line for each change of a job that the user must know.
        manner: which steps the jobs run, and when they stop.

    Attributes:
        stopped_early: the job and the step by which fail_fast stopped all jobs; empty if none did.
        held: the jobs that wait for nodes (`JobSupply.held`), each with these nodes.
    """

    def __init__(
        self,
        run: Run,
        supply: JobSupply,
        batch: BatchQueue,
        say: Say,
        *,
        manner: Manner = Manner.UNFINISHED,
    ) -> None:
        self._run, self._supply, self._batch, self._say = run, supply, batch, say
        self._queue, self._manner, self._ended = batch.queue, manner, False
        chosen = scheduler(batch.scheduler)
        chosen.queue = batch.queue
        user, reservation = run_user(run.run_by), batch.queue.reservation
        self._scheduler = AskedScheduler(chosen, self._in_queue, user, reservation)
        self._pending: list[Job] = []
        self._active: list[ActiveJob] = []
        self._failed: tuple[Job, str] | None = None
        self._failing_since: float | None = None
        self._changed = time.monotonic()
        self.stopped_early = ""
        self.held: dict[str, str] = {}
        for job in supply.first:
            folder = JobFolder(run, job)
            try:
                submission = folder.submission()
            except BadInput as error:
                folder.not_run(batch.scheduler, f"{error}")
                say(f"job {job.id}: NOT RUN: {error}")
                continue
            if submission and submission.scheduler == batch.scheduler:
                submitted, rest = divided(run, job, submission)
                self._active.append(ActiveJob.of(run, submitted, submission, batch, resumed=True))
                self._pending += [rest] if rest else []
            else:
                self._pending.append(job)

    def _in_queue(self) -> list[str]:
        return [active.submission.id for active in self._active if active.submission.id]

    @property
    def pause(self) -> float:
        """Seconds until the next poll: a twentieth of the time since the last change."""
        quiet = time.monotonic() - self._changed
        return min(self._scheduler.chosen.poll_s, max(0.2, quiet / 20))

    def rest(self) -> None:
        """Wait until the next poll: a second, if a signal has stopped the script of a job.

        Only while such a job ends a scheduler without a history says who ended it.
        """
        pause = self.pause
        for _ in range(1 + int(pause / _LOOK_S)):
            time.sleep(min(pause, _LOOK_S))
            if any(each.stopped for each in self._active):
                break

    @property
    def line(self) -> str:
        """The number of jobs in each state as text; empty if all jobs run."""
        return described(self._active, len(self._pending))

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
            raise failure(self._run, *self._failed)
        if self._ended and not self._failed and not self.stopped_early:
            self._ended = False
            self._pending += self._supply.follow()
        quiet = time.monotonic() - self._changed
        rests = self._supply.rests(len(self._pending) - len(self.held), quiet)
        return bool(self._active or (self._pending and not self._failed and not rests))

    def node_states(self, nodes: Sequence[str]) -> NodeStates:
        """Return the known states of `nodes`; none without a queue, or if it does not answer."""
        return {} if self._scheduler.ends_with_process else self._scheduler.node_states(nodes)

    def leave(self, why: str) -> None:
        """Stop monitoring. The jobs go on, except those that end with this process."""
        if self._scheduler.ends_with_process:
            self.cancel(why)
        elif ids := self._in_queue():
            self._say(f"jobs {', '.join(ids)} go on; the same command finds them again")

    def cancel(self, why: str) -> None:
        """Cancel all jobs, and wait up to a minute for their end."""
        self._cancel(JobStatus(State.STOPPED, why))

    def _cancel(self, status: JobStatus) -> None:
        for active in self._active:
            active.submission = replace(active.submission, stopping=True)
            with suppress(BadInput):  # a full disk must not prevent the cancellation
                active.folder.save(active.submission)
        end = time.monotonic() + _CANCEL_S
        problem = ""
        try:
            for active in [each for each in self._active if not each.submission.id]:
                found = self._scheduler.find(active.submission.name)
                active.submission = replace(active.submission, id=found)
            if ids := self._in_queue():
                self._scheduler.cancel(ids)
            while self._active and time.monotonic() < end:
                problem = self._remove_ended(status)
                if self._active:
                    time.sleep(0.2)
        except SchedulerError as error:
            problem = str(error)
        if problem:
            self._say(f"jobs not cancelled, their ticket.json is kept: {problem}")

    def _remove_ended(self, cancelled: JobStatus) -> str:
        """Remove the cancelled jobs that have ended; return why that is not known of one."""
        try:
            statuses = self._scheduler.states(self._in_queue())
        except SchedulerError as error:
            return str(error)
        problem = ""
        for active in list(self._active):
            status = NO_SUCH_JOB  # it was never submitted
            if job := active.submission.id:
                status = statuses.get(job) or self._scheduler.by_id(job)
                status = shown_status(self._run, active, status)
            if status.state.final or status.state in (State.ENDED_UNKNOWN, State.VANISHED):
                active.folder.append_event(active.submission, cancelled, over=True)
                self._active.remove(active)
            elif status.state is State.UNREACHABLE:
                problem = status.reason
        return problem

    # --- submitting ---------------------------------------------------------------------------

    def _submit(self) -> None:
        room = self._queue.max_jobs - len(self._active)
        if room <= 0 or not self._pending or not all(each.submission.id for each in self._active):
            return  # or one waits to be submitted
        nodes = self._scheduler.node_states(flat(job.nodes for job in self._pending))
        self.held = self._supply.held(self._pending, nodes)
        free = [job for job in self._pending if job.id not in self.held]
        for job in sorted(free, key=lambda job: order(job, nodes)):
            submitted = all(each.submission.id for each in self._active)
            if room > 0 and submitted and self._is_independent(job):
                room -= 1
                self._pending.remove(job)
                self._submit_one(job, nodes)

    def _is_independent(self, job: Job) -> bool:
        """Return whether `job` cannot disturb an active job, and is no part of one."""
        if any(job.id == active.job.id for active in self._active):
            return False
        if self._queue.exclusive and self._scheduler.chosen.isolates_jobs:
            return True
        return not any(set(job.nodes) & set(active.job.nodes) for active in self._active)

    def _submit_one(self, job: Job, nodes: NodeStates) -> None:
        folder, excluded_nodes = JobFolder(self._run, job), self._supply.excluded_nodes
        excluded = [excluded_nodes[job.id]] if job.id in excluded_nodes else []
        # The job does not wait for a node that is down; the coverage lists the node as missing.
        submitted_job, down = without_down_nodes(job, nodes)
        if down:
            excluded.append(down)
            self._say(f"job {job.id}: without {down}")
        request = write_job(self._run.folder, submitted_job, self._batch, self._manner)
        submission = folder.create(self._batch.scheduler, request.name)
        if down:
            left_out = [node for node in job.nodes if node not in submitted_job.nodes]
            submission = replace(submission, left_out=" ".join(left_out))
        active = ActiveJob.of(self._run, job, submission, self._batch, resumed=False)
        active.request = request
        waiting = JobStatus(State.WAITING, "to be submitted")
        folder.append_event(submission, waiting, without="; ".join(excluded))
        self._active.append(active)
        self._submit_or_find(active)

    def _submit_or_find(self, active: ActiveJob) -> None:
        """Submit a job without an id, unless an earlier attempt to submit it succeeded."""
        try:
            job_id = self._scheduler.find(active.submission.name)
        except SchedulerError as error:
            self._update(active, JobStatus(State.UNREACHABLE, str(error)))
            return
        if active.resumed and not job_id:
            gone = "not in the queue: never submitted, or ended"
            self._finish(active, JobStatus(State.VANISHED, gone))
            return
        try:
            job_id = job_id or self._scheduler.submit(active.request.script, active.request)
        except SubmitLimitReached as error:
            self._update(active, JobStatus(State.WAITING, f"to be submitted: {error}"))
        except SchedulerUnavailable as error:
            state = State.NOT_ACCEPTED if error.code else State.UNREACHABLE
            self._update(active, JobStatus(state, str(error)))
        except SchedulerError as error:
            self._finish(active, JobStatus(State.REFUSED, str(error)))
        else:
            self._store_id(active, job_id)
            if not active.resumed:
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
            with suppress(SchedulerError):
                self._scheduler.cancel([job_id])
            raise

    # --- monitoring ---------------------------------------------------------------------------

    def _query(self) -> None:
        for active in [active for active in self._active if not active.submission.id]:
            self._submit_or_find(active)
        submitted = [active for active in self._active if active.submission.id]
        ids = [active.submission.id for active in submitted]
        try:
            statuses = self._scheduler.states(ids)
        except SchedulerError as error:
            for active in submitted:
                self._update(active, JobStatus(State.UNREACHABLE, str(error)))
        else:
            self._evaluate_all(submitted, statuses)
        for active in list(self._active):
            self._give_up_if_overdue(active)

    def _evaluate_all(self, submitted: Sequence[ActiveJob], listed: JobStatuses) -> None:
        """Evaluate the states of jobs; those that wait, with the states of their nodes."""
        found = [
            listed.get(each.submission.id) or self._scheduler.by_id(each.submission.id)
            for each in submitted
        ]
        waiting: list[str] = []
        for active, status in zip(submitted, found, strict=True):
            if status.state is State.WAITING or status.key:
                waiting += active.request.nodes
        nodes = self._scheduler.node_states(waiting) if waiting else {}
        for active, status in zip(submitted, found, strict=True):
            self._evaluate(active, waits_for(status, active.request.nodes, nodes))

    def _evaluate(self, active: ActiveJob, status: JobStatus) -> None:
        status = shown_status(self._run, active, status)
        if status.state.final:
            status = self._with_down_nodes(active, status)
        ends_with_process = self._scheduler.ends_with_process
        if status.state is State.CANCELLED:
            if active.submission.stopping or (active.resumed and ends_with_process):
                status = JobStatus(State.STOPPED, status.reason)  # by the end of the kit
            if ends_with_process:
                active.submission = replace(active.submission, stopping=True)
        if status.state.final:
            self._finish(active, status)
            return
        again = status == active.status  # a scheduler that restarts can say it of any job
        self._update(active, status)
        if status.key and again:
            limits = self._scheduler.answer(self._scheduler.chosen.limits, active.submission.id, "")
            said = f"{status.reason}; {limits or 'its limits are not known'}"
            never = f"{said}; it never starts; change `{status.key}`"
            self._withdraw(active, JobStatus(status.state, never))

    def _with_down_nodes(self, active: ActiveJob, status: JobStatus) -> JobStatus:
        """Return the end of a job with its nodes that are down now."""
        ran = has_run(active)
        own = status.state in OWN_ENDS and (ran or status.state is not State.FAILED)
        down = "" if own else self._scheduler.down_nodes(active.request.nodes)
        if not down:
            return status
        asked = self._scheduler.chosen.had_nodes
        ran = ran or self._scheduler.answer(asked, active.submission.id, False)
        return with_down_nodes(active, status, down, ran=ran)

    def _update(self, active: ActiveJob, status: JobStatus) -> None:
        if active.take(status):
            self._changed = active.state_since
            if status.state.stuck:
                self._say(f"job {active.job.id}: {status_text(status)}")

    def _give_up_if_overdue(self, active: ActiveJob) -> None:
        status = overdue(active, self._queue, ends=not self._scheduler.ends_with_process)
        if status is None:
            return
        # A scheduler that keeps no history forgets a job whose node died.
        if status.state in (State.VANISHED, State.ENDED_UNKNOWN):
            status = self._with_down_nodes(active, status)
        if active.stopped and status.state is State.ENDED_UNKNOWN:
            status = JobStatus(State.SIGNALLED, status.reason)
        if active.status.state is State.NOT_ACCEPTED:
            status = JobStatus(State.REFUSED, status.reason)
        if active.status.state in (State.UNREACHABLE, State.NOT_ACCEPTED):
            # It cannot be cancelled, or may be in the queue: ticket.json is kept for later.
            active.folder.append_event(active.submission, status)
            self._remove(active, status)
            return
        self._withdraw(active, status)

    def _withdraw(self, active: ActiveJob, status: JobStatus) -> None:
        """Cancel a job and stop monitoring it.

        A job that the scheduler does not have is not cancelled: its answer may be wrong.
        """
        if active.submission.id and active.status.state is not State.VANISHED:
            try:
                self._scheduler.cancel([active.submission.id])
            except SchedulerError as error:
                status = JobStatus(status.state, f"{status.reason}, not cancelled: {error}")
        self._finish(active, status)

    def _finish(self, active: ActiveJob, status: JobStatus) -> None:
        """Stop monitoring a job; mark it as pending again if it can make progress.

        A job that stopped by fail_fast stops all others.
        """
        active.folder.append_event(active.submission, status, over=True)
        if runs_again(self._run, active, status, self._queue):
            self._say(f"job {active.job.id}: {status_text(status)}; submitted again")
            self._pending.append(active.job)
            self._active.remove(active)
            self._changed = time.monotonic()
            return
        if status.state is State.FAILED and not self._supply.arrivals:
            self._failed = (active.job, status.reason)
        self._remove(active, status)
        if status.state is State.FAIL_FAST:
            self.stopped_early, self._pending = f"job {active.job.id}: {status.reason}", []
            self._cancel(JobStatus(State.FAIL_FAST, self.stopped_early))

    def _remove(self, active: ActiveJob, status: JobStatus) -> None:
        self._active.remove(active)
        self._changed, self._ended = time.monotonic(), True
        if status.state is not State.ENDED and not (self._failed and status.state is State.FAILED):
            self._say(f"job {active.job.id}: {status_text(status)}")
