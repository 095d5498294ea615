"""Runs the jobs of a run through the scheduler of the site, and reports their progress.

During a run it decides which steps that read files of others can run now. When finished steps run
again, the new output is stored beside the first one, and both count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from proofmark.common.errors import Stopped, bad_input
from proofmark.common.grouping import flat
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, nodes_by
from proofmark.common.processes import on_stop_signal
from proofmark.common.progress_lines import Say
from proofmark.common.text import duration
from proofmark.jobs.job_request import Arrivals, BatchQueue, JobSupply, batch_of
from proofmark.jobs.scripts import Manner
from proofmark.jobs.watch import JobMonitor
from proofmark.machine.scheduler import is_down, scheduler
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Group, Job, Step, instance_named
from proofmark.plan.step import StepInstance
from proofmark.runs.attempts import Attempt, attempts, has_result, last_words
from proofmark.runs.job_folder import LOOK_S, JobFolder, Look, add_look, last_state, unfinished
from proofmark.runs.journal import unverified
from proofmark.runs.progress import Progress, progress
from proofmark.runs.run import Decisions, Run, SetAside, add_decisions, site_of, with_decisions
from proofmark.runs.state import lock, planned
from proofmark.runs.step_state import needs_execution


class ReadySteps:
    """The steps of one group of a run that can run now; each step is returned once.

    A step that ran without a result is not returned again: the next execution continues it. A step
    of which all executions were disturbed before is returned.

    Args:
        say: called with one line when a step cannot run.

    Attributes:
        run: the run with the decisions so far.
    """

    def __init__(self, run: Run, group: Group, say: Say) -> None:
        self.run, self._group, self._say = run, group, say
        steps = list(group.steps())
        self._left = {step.id for step in steps if needs_execution(run.files, step)}
        self._readers = {step.id for step in steps if step.reads}

    def jobs(self) -> list[Job]:
        """Return the parts of the jobs with the steps that can run now and were not returned yet.

        Raises:
            BadInput: a decision cannot be written, or an output cannot be read.
        """
        held = {*self._unwritten()}
        ready = self._left - held - self.run.plan.not_needed.keys()
        self._left = (self._left & self._readers) - ready
        return [
            job.model_copy(update={"steps": steps})
            for job in self._group.jobs
            if (steps := [step for step in job.steps if step.id in ready])
        ]

    def _unwritten(self) -> Iterator[str]:
        """Yield the steps whose files are not written yet. Write which will not be written."""
        not_run: dict[str, Message] = {}
        not_needed: dict[str, Message] = {}
        readers = self._left & self._readers
        for step in self._group.steps():
            if step.id not in readers:
                continue
            if why := self.run.plan.not_needed.get(step.reads):
                not_needed[step.id] = Message("same-files", step=step.reads, text=why)
            elif not has_result(self.run.files.step(step.reads)):
                yield step.id
            elif problem := write_problem(self.run, step.reads):
                failed = Message("writer-failed", step=step.reads, problem=problem)
                not_run[step.id] = failed
        for name, reason in not_run.items():
            self._say(f"{name}: {reason}")
        if not_run or not_needed:
            add_decisions(self.run.files, Decisions(not_run=not_run, not_needed=not_needed))
            self.run = with_decisions(self.run)


def write_problem(run: Run, step: str) -> str:
    """Return why the files of a finished step are not complete; empty if they are.

    The newest execution wrote them.
    """
    finished = attempts(run.files.step(step).folder)
    if not finished:
        return "has no result"
    newest = finished[-1]
    if newest.timed_out:
        return f"timed out after {newest.seconds:.0f} s"
    return f"ended with exit code {newest.rc}" if newest.rc else ""


_REPORT_EVERY_S = 30.0
ANY_NODE = Arrivals()


def execute(
    run: Run,
    scheduler_name: str,
    say: Say,
    *,
    manner: Manner = Manner.UNFINISHED,
    arrivals: Arrivals = ANY_NODE,
) -> str:
    """Run every unfinished job of `run` whose nodes are in its mode.

    Jobs of another mode are not run. If the site can set the firmware, the journal must prove the
    mode of each node: a node without this proof is excluded, and a step that needs it together with
    other nodes is not run. A job that is ended by its scheduler, or that exceeds a limit of the
    site, is reported and stops no other job; the same command continues it.

    In a run that nodes join, a job is submitted when none of its nodes is down, and a script that
    fails stops no other job.

    Steps that read files of others are submitted when these have ended (`ReadySteps`).

    Args:
        say: called with one line when a step or a job starts or ends, and every 30 seconds.
        manner: which steps run, and when they stop.
        arrivals: which jobs are submitted in a run that nodes join; other runs do not use it.

    Returns:
        The job and the step by which fail_fast stopped the run; empty if it did not.

    Raises:
        BadInput: another process runs it, or the script of a job failed.
        Stopped: SIGINT or SIGTERM was received; the jobs were cancelled.
    """
    scheduler(scheduler_name)
    batch = batch_of(run, scheduler_name)
    with lock(run.folder):
        for group in run.plan.to_run():
            ready = ReadySteps(run, group, say)
            waits = arrivals if kind_of(run.plan).nodes_arrive else None
            if early := _execute_group(ready, group.mode, batch, manner, waits, say):
                return early
    return ""


def _execute_group(
    ready: ReadySteps,
    mode: str,
    batch: BatchQueue,
    manner: Manner,
    arrivals: Arrivals | None,
    say: Say,
) -> str:
    """Run the unfinished jobs of one mode; return as `execute` does."""
    run = ready.run
    excluded: dict[str, str] = {}

    def next_jobs() -> list[Job]:
        return _possible(run, ready.jobs(), mode, batch.scheduler, excluded, say)

    supply = JobSupply(next_jobs(), next_jobs, excluded, arrivals)
    jobs = JobMonitor(run, supply, batch, say, manner=manner)
    looks, reporter = NodeLooks(run, jobs), ProgressReporter(ready, jobs, say)

    def report() -> None:
        looks.look()
        reporter.report()

    looks.look()
    poll_until_done(jobs, report)
    looks.look(last=True)
    for job, nodes in jobs.held.items():
        say(f"job {job}: waits for {nodes}")
    return jobs.stopped_early


def _possible(
    run: Run,
    jobs: Iterable[Job],
    mode: str,
    scheduler_name: str,
    excluded: dict[str, str],
    say: Say,
) -> list[Job]:
    """Return the parts of `jobs` whose nodes are proven to be in `mode`.

    The reasons for nodes that are excluded are added to `excluded`, by id of the job.
    """
    possible: list[Job] = []
    for job in jobs:
        missing = unverified_nodes(run, job.nodes, mode)
        rest = _without_nodes(job, missing)
        if missing and not unfinished(run, job):
            continue  # disturbed steps of a mode that the nodes have left
        if missing:
            reason = excluded[job.id] = f"{format_reasons(missing)} (mode {mode})"
            say(f"job {job.id}: {'without' if rest else 'NOT RUN:'} {reason}")
        if rest:
            possible.append(rest)
        else:
            JobFolder(run, job).not_run(scheduler_name, excluded[job.id])
    return possible


def _without_nodes(job: Job, missing: Collection[str]) -> Job | None:
    """Return the part of `job` that can run without the nodes `missing`; None if there is none."""
    if not missing:
        return job
    nodes = [node for node in job.nodes if node not in missing]
    steps = [step for step in job.steps if step.scope != "job"]
    return job.model_copy(update={"nodes": nodes, "steps": steps}) if nodes and steps else None


def unverified_nodes(run: Run, nodes: Sequence[str], mode: str) -> dict[str, str]:
    """Return the nodes that are not verified in `mode`, each with the reason."""
    firmware = site_of(run).partition.firmware
    return unverified(planned(run).folder, nodes, mode) if firmware else {}


def format_reasons(missing: Mapping[str, str]) -> str:
    """Return nodes and reasons as text; nodes with the same reason are one entry."""
    return "; ".join(f"{folded(nodes)}: {reason}" for reason, nodes in nodes_by(missing).items())


def poll_until_done(jobs: JobMonitor, report: Callable[[], None]) -> None:
    """Poll `jobs` until none is left, and call `report` after each poll.

    Only a signal cancels them. An exception leaves them: they can be hours old.

    Raises:
        Stopped: SIGINT or SIGTERM was received; they were cancelled.
    """
    received: list[str] = []
    with on_stop_signal(received.append):
        try:
            while jobs.poll():
                if received:
                    raise Stopped(received[0])
                report()
                jobs.rest()
        except Stopped as stopped:
            jobs.cancel(f"stopped by {stopped}")
            raise
        except Exception:
            jobs.leave("the process that started it has failed")
            raise
        except BaseException:
            jobs.cancel("stopped")
            raise
        report()
        if received:
            raise Stopped(received[0])


class NodeLooks:
    """Keeps what the scheduler says of the nodes of a run, when its jobs begin, run and end."""

    def __init__(self, run: Run, jobs: JobMonitor) -> None:
        self._run, self._jobs, self._next = run, jobs, 0.0

    def look(self, *, last: bool = False) -> None:
        """Ask for the states, if the last time was long ago, or if no look follows."""
        if time.monotonic() < self._next and not last:
            return
        self._next = time.monotonic() + LOOK_S
        hosts = self._run.plan.nodes()
        if states := self._jobs.node_states(hosts):
            down = {node: state for node, state in states.items() if is_down(state)}
            unknown = tuple(node for node in hosts if node not in states)
            add_look(self._run.files, Look(time.time(), down, unknown))


class ProgressReporter:
    """Reports the progress of a run when it changed, at least every 30 seconds."""

    def __init__(self, ready: ReadySteps, jobs: JobMonitor, say: Say) -> None:
        self._ready, self._jobs, self._say = ready, jobs, say
        self._current: Progress | None = None
        self._said: Progress | None = None
        self._last: object = None
        self._moment = 0.0

    def report(self) -> None:
        """Report the progress of the run and the state of its jobs."""
        self._current = current = progress(self._ready.run, active=True, before=self._current)
        jobs = self._jobs.line
        key = (
            current.done,
            len(current.steps),
            tuple(step.step.id for step in current.running),
            current.repeats,
            jobs,
        )
        if key == self._last and time.monotonic() - self._moment < _REPORT_EVERY_S:
            return
        self._last, self._moment = key, time.monotonic()
        self._say(" · ".join(filter(None, (current.line(self._said), jobs))))
        self._said = current


def summary(run: Run) -> str:
    """Return one line for the end of a run: its done, failed and disturbed steps, their time.

    The time is the sum over the steps. Steps can run at the same time, so that a run can take less.
    """
    states = progress(run, active=False)
    seconds = sum(step.seconds or 0.0 for step in states.steps)
    parts = [
        f"{states.done}/{len(states.steps)} steps done",
        f"{states.failed} failed (exit code not 0)",
        *([f"{len(states.repeats)} disturbed"] if states.repeats else []),
        f"{duration(seconds)} in total",
    ]
    return ", ".join(parts)


@dataclass(frozen=True)
class RepeatedStep:
    """A step to run again, or one instance of a per-node step.

    `instance` without a name stands for all instances of the step.
    """

    step: Step
    instance: StepInstance

    @property
    def nodes(self) -> list[str]:
        """The nodes that it runs on."""
        return self.step.nodes_of(self.instance)

    @property
    def folders(self) -> list[str]:
        """The folders of its instances below ``steps/``."""
        return [str(self.instance)] if self.instance.name else self.step.folders()

    def attempts(self, run: Run) -> list[Attempt]:
        """Return all its finished executions."""
        return flat(attempts(run.files.step(name).folder) for name in self.folders)


def pick(run: Run, wanted: Sequence[str]) -> list[RepeatedStep]:
    """Return the executions with the names `wanted`: ids or numbers of steps, or ``<step>/<node>``.

    A node that was down while its step was measured can be chosen as well.

    Raises:
        BadInput: there is no such step or node, or the step is not finished.
    """
    steps = list(run.plan.steps())
    executions = []
    for word in wanted:
        step, instance = instance_named(word, steps, run.id)
        if step.reads or step.kept:
            found = f"{step.id}: reads or writes the files of two steps"
            raise bad_input("STEP", "", found, "a step with own files; fresh=true repeats both")
        if not any(has_result(run.files.step(each)) for each in (step.id, str(instance))):
            raise bad_input("STEP", "", f"{instance}: not finished yet", "a finished step")
        executions.append(RepeatedStep(step, instance))
    return executions


def rerun(run: Run, executions: Sequence[RepeatedStep], say: Say, reason: str = "") -> None:
    """Run each of `executions` again, in order, through the scheduler and on the planned nodes.

    Consecutive executions on the same nodes of one job are one job. It is a further attempt of the
    planned job, so that its nodes are probed before and after it.

    Args:
        say: called with one line before and after each execution.
        reason: why the executions so far are set aside; empty: they are not.

    Raises:
        BadInput: another process runs this run, a job of it is still in the queue, a node is not in
            the mode, or there is no result.
        Stopped: SIGINT or SIGTERM was received; the job was cancelled.
    """
    with lock(run.folder):
        for group, job, together in _jobs(run, executions):
            if missing := unverified_nodes(run, job.nodes, group.mode):
                accepted = f"nodes that are verified in mode {group.mode}"
                raise bad_input(str(together[0].instance), "", format_reasons(missing), accepted)
            folder = JobFolder(run, job)
            if folder.submission():
                found = f"{job.id}: may still be in the queue"
                raise bad_input("RUN", "", found, "a run without a submitted job")
            earlier = [len(each.attempts(run)) for each in together]
            for each in together:
                say(f"{each.instance}: about {each.step.seconds:.0f} s")
            jobs = JobMonitor(run, JobSupply([job]), batch_of(run), say, manner=Manner.AGAIN)
            poll_until_done(jobs, lambda: None)
            for each, before in zip(together, earlier, strict=True):
                _report(run, each, before, folder, say)
                if reason:
                    replaced = dict(_replaced(run, each, reason))
                    add_decisions(run.files, Decisions(set_aside=replaced))


def _replaced(run: Run, each: RepeatedStep, reason: str) -> Iterator[tuple[str, SetAside]]:
    """Yield the executions before the newest one, by the folder of the step."""
    for folder in each.folders:
        numbers = [attempt.number for attempt in attempts(run.files.step(folder).folder)]
        if len(numbers) > 1:
            yield folder, SetAside(attempts=sorted(numbers)[-2], reason=reason)


def _jobs(
    run: Run, executions: Sequence[RepeatedStep]
) -> Iterator[tuple[Group, Job, list[RepeatedStep]]]:
    """Yield the group, the job and the executions of each series on the same nodes of one job.

    The job has only the nodes and the steps of these executions.
    """
    group_and_job: dict[str, tuple[Group, Job]] = {}
    for planned_group in run.plan.groups:
        for planned_job in planned_group.jobs:
            for step in planned_job.steps:
                group_and_job[step.id] = planned_group, planned_job

    of_job = groupby(executions, lambda each: (group_and_job[each.step.id][1].id, each.nodes))
    for (_, nodes), series in of_job:
        together = list(series)
        group, job = group_and_job[together[0].step.id]
        steps = [each.step for each in together]
        yield group, job.model_copy(update={"nodes": nodes, "steps": steps}), together


def _report(run: Run, each: RepeatedStep, earlier: int, folder: JobFolder, say: Say) -> None:
    """Report how an execution ended; `earlier` is the number of executions before it.

    Raises:
        BadInput: it has no result.
    """
    finished = each.attempts(run)
    if len(finished) == earlier:
        message = last_words(folder.log) or last_state(folder) or "no message"
        raise bad_input(
            str(each.instance), "", f"no result: {message}", "a result that can be written"
        )
    if each.instance.name or each.step.scope == "job":
        say(f"{each.instance}: exit code {finished[-1].rc}, in {finished[-1].files.folder.name}")
    else:
        say(
            f"{each.instance}: {len(finished) - earlier} of {each.step.measurements} measured again"
        )
