"""Runs finished steps once more; their new output stands beside the first, and both count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from proofmark.common.errors import bad_input, nearest
from proofmark.jobs.execute import format_reasons, poll_until_done, unverified_nodes
from proofmark.jobs.watch import JobMonitor
from proofmark.plan.plan import Group, Job, Step
from proofmark.runs.attempts import Attempt, attempts, last_words
from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.lock import lock
from proofmark.runs.run import Run, site_of


@dataclass(frozen=True)
class Execution:
    """What is run again: a step, and of one that nodes measure by themselves maybe one instance."""

    step: Step
    instance: str = ""

    @property
    def folder(self) -> str:
        """Where it is, below ``steps/``."""
        return f"{self.step.id}/{self.instance}" if self.instance else self.step.id

    @property
    def nodes(self) -> list[str]:
        """All that it needs."""
        return self.step.instances()[self.instance] if self.instance else self.step.nodes

    def attempts(self, run: Run) -> list[Attempt]:
        """Return all that has been measured of it."""
        folders = [self.folder] if self.instance else self.step.folders()
        return [each for name in folders for each in attempts(run.files.step(name).folder)]


def pick(run: Run, wanted: Sequence[str]) -> list[Execution]:
    """Return what is called `wanted`: steps by id or by number, ``<step>/<node>`` for one node's.

    A node that a finished step has not measured, because it was down, is measured then.

    Raises:
        BadInput: there is no such step or node, or it has not been measured yet.
    """
    steps = {step.id: step for step in run.plan.steps()}
    numbers = {name.split("-", 1)[0].lstrip("0"): name for name in steps}
    found = []
    for word in wanted:
        step, _, instance = word.partition("/")
        name = step if step in steps else numbers.get(step.lstrip("0"), "")
        if not name:
            hint = nearest(step, steps)
            raise bad_input("STEP", "", f"{word!r}{hint}", f"a step of {run.id}: proofmark status")
        there = steps[name].instances()
        if instance and instance not in there:
            hint = nearest(instance, there)
            raise bad_input("STEP", "", f"{word!r}{hint}", "a node that measures it by itself")
        execution = Execution(steps[name], instance)
        over = (run.files.step(folder).exit_code for folder in (name, execution.folder))
        if not any(path.exists() for path in over):
            raise bad_input("STEP", "", f"{execution.folder}: not finished yet", "a finished step")
        found.append(execution)
    return found


def rerun(run: Run, executions: Sequence[Execution], say: Callable[[str], None]) -> None:
    """Run each of `executions` again, in order, through the scheduler and on the nodes of the plan.

    Those that follow each other and need the same nodes of one job are one job; it is a further
    attempt of the plan's, so that its nodes say what they are before and after it.

    Raises:
        BadInput: somebody is running this run, a job of it is still in the queue, a node is not
            in the mode, or there is no result; the message says why.
        Stopped: SIGINT or SIGTERM came; the job has been stopped in order.
    """
    partition = site_of(run).partition
    with lock(run):
        for group, job, together in _jobs(run, executions):
            if missing := unverified_nodes(run, job.nodes, group.mode):
                accepted = f"nodes that are proven to be in mode {group.mode}"
                raise bad_input(together[0].folder, "", format_reasons(missing), accepted)
            folder = JobFolder(run, job)
            if folder.ticket():
                found = f"{job.id}: may still be in the queue"
                raise bad_input("RUN", "", found, "a run that has been gone on with to its end")
            earlier = [len(each.attempts(run)) for each in together]
            for each in together:
                say(f"{each.folder}: about {each.step.seconds:.0f} s")
            jobs = JobMonitor(run, [job], partition.scheduler, partition.queue, say, again=True)
            poll_until_done(jobs, lambda: None)
            for each, before in zip(together, earlier, strict=True):
                _tell(run, each, before, folder, say)


def _jobs(
    run: Run, executions: Sequence[Execution]
) -> Iterator[tuple[Group, Job, list[Execution]]]:
    """Yield for executions that follow each other what of which job of the plan they are."""
    where = {
        step.id: (group, job)
        for group in run.plan.groups
        for job in group.jobs
        for step in job.steps
    }

    def alike(each: Execution) -> tuple[str, list[str]]:
        return where[each.step.id][1].id, each.nodes

    for (_, nodes), group_of in groupby(executions, alike):
        together = list(group_of)
        group, job = where[together[0].step.id]
        steps = [each.step for each in together]
        yield group, job.model_copy(update={"nodes": nodes, "steps": steps}), together


def _tell(
    run: Run, each: Execution, earlier: int, folder: JobFolder, say: Callable[[str], None]
) -> None:
    """Say how an execution ended.

    Raises:
        BadInput: it left nothing.
    """
    found = each.attempts(run)
    if len(found) == earlier:
        said = last_words(folder.log) or last_state(folder) or "no message"
        raise bad_input(each.folder, "", f"no result: {said}", "a result that can be written")
    if each.instance or each.step.scope == "job":
        say(f"{each.folder}: exit code {found[-1].rc}, in {found[-1].files.folder.name}")
    else:
        say(f"{each.folder}: {len(found) - earlier} of {each.step.measurements} measured again")
