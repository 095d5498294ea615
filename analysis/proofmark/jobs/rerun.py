"""Runs finished steps again; the new output is stored beside the first one, and both count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from proofmark.common.errors import bad_input
from proofmark.jobs.execute import format_reasons, poll_until_done, unverified_nodes
from proofmark.jobs.job_parts import JobSupply
from proofmark.jobs.job_request import batch_of
from proofmark.jobs.job_script import Manner
from proofmark.jobs.watch import JobMonitor
from proofmark.plan.plan import Group, Job, Step, instance_named
from proofmark.plan.step import StepInstance
from proofmark.runs.attempts import Attempt, attempts, has_result, last_words
from proofmark.runs.decisions import SetAside, add_decisions
from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.run import Run
from proofmark.runs.run_lock import lock


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
        return self.step.folders_of(self.instance)

    def attempts(self, run: Run) -> list[Attempt]:
        """Return all its finished executions."""
        found = []
        for name in self.folders:
            found += attempts(run.files.step(name).folder)
        return found


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


def rerun(
    run: Run, executions: Sequence[RepeatedStep], say: Callable[[str], None], reason: str = ""
) -> None:
    """Run each of `executions` again, in order, through the scheduler and on the planned nodes.

    Consecutive executions on the same nodes of one job are one job. It is a further attempt of the
    planned job, so that its nodes are probed before and after it.

    Args:
        run: the run.
        executions: the steps or instances to run again.
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
                    add_decisions(run.files, set_aside=dict(_replaced(run, each, reason)))


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

    def job_and_nodes(each: RepeatedStep) -> tuple[str, list[str]]:
        return group_and_job[each.step.id][1].id, each.nodes

    for (_, nodes), series in groupby(executions, job_and_nodes):
        together = list(series)
        group, job = group_and_job[together[0].step.id]
        steps = [each.step for each in together]
        yield group, job.model_copy(update={"nodes": nodes, "steps": steps}), together


def _report(
    run: Run, each: RepeatedStep, earlier: int, folder: JobFolder, say: Callable[[str], None]
) -> None:
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
