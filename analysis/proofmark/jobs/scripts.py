"""Writes the scripts and inputs of all steps and jobs of a run, or of a plan.

The script of a job runs its steps one after the other. The scripts of a plan are made by the same
functions before its programs are installed. ``$PREFIX`` and ``$RUN_ID`` stand for what is not known
yet: folders of programs, and the name of the run. A run has six digits of a digest in the name of a
job, where a preview has ``$RUN_ID``.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Self

from proofmark.cases.case import Undisturbed
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput
from proofmark.common.files import write_atomic
from proofmark.common.plugins import Plugins
from proofmark.common.progress_lines import Say
from proofmark.jobs.job_request import BatchQueue, job_names, request, request_of
from proofmark.jobs.step_script import (
    FOLDER,
    GRACE_S,
    LaunchSite,
    each_script,
    processor_needs,
    shell_parts,
    step_script,
)
from proofmark.machine.scheduler import Request, scheduler
from proofmark.plan.plan import SCRATCH, Job, Plan, Step
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles, WorkFiles, work_files, write_scripts_of
from proofmark.runs.step_state import EXECUTIONS, LOST_S, LOST_STEPS
from proofmark.site.partition import Partition
from proofmark.software.provision import PREFIX
from proofmark.software.software import Software


class Manner(Enum):
    """Which steps a job runs, and when it stops."""

    UNFINISHED = 1
    """Steps without a result, and steps that were disturbed in all executions."""
    AGAIN = 2
    """All steps, also those that have a result."""
    FAIL_FAST = 3
    """As `UNFINISHED`, until the first step that failed or stays disturbed."""


def write_job(
    run: Path, job: Job, batch: BatchQueue, manner: Manner = Manner.UNFINISHED
) -> Request:
    """Write the script ``jobs/<id>/job.sh``, which runs the steps of `job` one after the other.

    Some schedulers read the nodes from ``jobs/<id>/hosts`` beside it.

    Args:
        job: the job; a pair is not measured if one of its nodes is not in the job.

    Returns:
        The request of the job to the scheduler.

    Raises:
        BadInput: the scheduler cannot run such a job.
    """
    request, work = request_of(run, job, batch), work_files(run)
    write_scripts_of(run, job_texts(work.folder, job, request, batch.scheduler, manner))
    return request


def job_texts(
    work: Path, job: Job, request: Request, scheduler_name: str, manner: Manner = Manner.UNFINISHED
) -> dict[str, str]:
    """Return the texts of the files of `job` with its `request`, by path in the work folder."""
    chosen = scheduler(scheduler_name)
    hosts = chosen.host_list(request)
    head = [
        "#!/bin/sh",
        *chosen.header(request),
        f"RUN={shlex.quote(str(work))}",
        f"JOB={shlex.quote(job.id)}",
        f"NODES={len(job.nodes)}",
        f"AGAIN={'yes' if manner is Manner.AGAIN else ''}",
        f"FAIL_FAST={'yes' if manner is Manner.FAIL_FAST else ''}",
        f"STAY={'yes' if len(job.nodes) > 1 and not chosen.starts_when_stopped else ''}",
        f"EXECUTIONS={EXECUTIONS} # of a disturbed step, at most",
        f"LOST_STEPS={LOST_STEPS} LOST_S={LOST_S} # after so many disturbed steps the job ends",
        f"WITHOUT={shlex.quote(','.join(_absent(job))) if manner is not Manner.AGAIN else ''}",
        *(chosen.fan_out(request) if len(job.nodes) > 1 else ()),
        "COUNTED='",
        *(step.id for step in job.steps if step.network_bytes),
        "'",
        "STEPS='",
        *(  # behind a colon the time limit in seconds of a step on each node
            step.id if step.scope == "job" else f"{step.id}:{step.timeout + step.stagger + GRACE_S}"
            for step in job.steps
        ),
        "'",
        "",
    ]
    text = "\n".join(head) + shell_parts("repeats.sh", "job.sh")
    texts = {request.host_file: hosts} if hosts else {}
    texts[WorkFiles(work).job(job.id).script] = text
    return {f"{path.relative_to(work)}": each for path, each in texts.items()}


def _absent(job: Job) -> list[str]:
    """Return the planned nodes of the pairs of `job` that are not in the job."""
    pairs = (step.nodes for step in job.steps if step.scope == "each-pair")
    planned = set[str]().union(*pairs)
    return sorted(planned - set(job.nodes))


PROBE = files("proofmark.site.node") / "probe.sh"


def undisturbed_of(partition: Partition, benchmarks: Benchmarks) -> dict[str, Undisturbed]:
    """Return the thresholds of each case; none for nodes that are not measured."""
    if partition.origin != "measured":
        return {}
    return {name: case.undisturbed for name, case in benchmarks.cases.items()}


@dataclass(frozen=True)
class Scripts:
    """What the scripts of a run are made from.

    Attributes:
        scratch: the scratch folder of steps that name no file system.
        undisturbed: the thresholds of a disturbance, by case. A step of another case never
            runs again.
        file_systems: the scratch folders of the other steps, by the name of their file system.
    """

    site: LaunchSite
    scratch: Path
    batch: BatchQueue
    undisturbed: Mapping[str, Undisturbed] = field(default_factory=dict)
    file_systems: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        partition: Partition,
        software: Software,
        aliases: Mapping[str, Sequence[str]],
        benchmarks: Benchmarks,
    ) -> Self:
        """Return those of a run on `partition`; `aliases` as in its class."""
        return cls(
            LaunchSite(
                software,
                partition.launch,
                partition.host_cpus,
                aliases,
                scheduler(partition.scheduler).replaced_launchers,
            ),
            Path(partition.scratch.path),
            BatchQueue(partition.scheduler, partition.queue),
            undisturbed_of(partition, benchmarks),
            {name: Path(each.path) for name, each in partition.scratches.items()},
        )

    def of_step(self, run: str, step: Step) -> dict[str, str]:
        """Return the texts of the scripts and inputs of `step`, ``run.sh`` at the end.

        The key of each is its path in the work folder; `run` is the id of the run.

        Raises:
            BadInput: a package or program of the step is missing.
        """
        files = WorkFiles(Path()).step(step.id)
        base = self.file_systems.get(step.file_system, self.scratch) / run
        instance = f"/{FOLDER}" if step.scope != "job" else ""
        scratch = f"{base / (step.reads or step.id)}{instance}"
        # A second execution would read the files from the page cache: it repeats nothing.
        limits = None if step.reads else self.undisturbed.get(step.case)
        text = step_script(step, self.site, scratch, limits)
        texts = _inputs(files.folder, step, scratch)
        if step.load:
            load = step.load.step.model_copy(update={"id": f"{step.id}-load"})
            load_scratch = f"{base / load.id}{instance}"
            name = "run.sh" if step.scope == "job" else "node.sh"
            texts |= _inputs(files.load, load, load_scratch)
            texts[files.load / name] = step_script(load, self.site, load_scratch)
        if step.scope != "job":
            parts = step.instances().items()
            lines = (f"{instance.name} {' '.join(nodes)}\n" for instance, nodes in parts)
            texts |= {files.instances: "".join(lines), files.node_script: text}
            text = each_script(step)
        return {f"{path}": each for path, each in {**texts, files.script: text}.items()}

    def of_run(self) -> dict[str, str]:
        """Return the texts of the files that all jobs of a run use, by path in the work folder."""
        return {
            WorkFiles.probe_script.path: PROBE.read_text(),
            WorkFiles.network_script.path: shell_parts("network.sh"),
            WorkFiles.processor_check.path: shell_parts("fit.awk"),
        }


def write_scripts(run: Path, plan: Plan, scripts: Scripts) -> None:
    """Write the scripts and inputs of all steps and jobs of the run in the folder `run`.

    The script of a step is written once: its output belongs to exactly this command.

    Raises:
        BadInput: a package or program of the plan is missing.
    """
    written = RunFiles(run).scripts
    texts = scripts.of_run()
    groups = plan.needed()
    for group in groups:
        for step in group.steps():
            if not written.step(step.id).script.exists():
                texts |= scripts.of_step(run.name, step)
    for group in groups:
        for job in group.jobs:
            needs = WorkFiles(Path()).job(job.id).needs
            texts[f"{needs}"] = processor_needs(job, scripts.site.software)
    write_scripts_of(run, texts)
    for group in groups:
        for job in group.jobs:
            write_job(run, job, scripts.batch)


def _inputs(folder: Path, step: Step, scratch: str) -> dict[Path, str]:
    """Return the inputs of `step` in `folder`; `scratch` is its scratch folder."""
    return {folder / name: text.replace(SCRATCH, scratch) for name, text in step.inputs.items()}


RUN_ID = "@RUN_ID@"
"""The name of the folder of a run that does not exist yet."""


@dataclass(frozen=True)
class Preview:
    """What a run of `plan` writes; its work folder would be `work`."""

    plan: Plan
    scripts: Scripts
    work: Path

    @property
    def jobs(self) -> list[Job]:
        """All jobs in the order of execution."""
        return list(self.plan.jobs())

    @cached_property
    def requests(self) -> dict[str, Request]:
        """The request of each job to the scheduler, by id of the job."""
        batch, begin, files = self.scripts.batch, job_names(self.work), WorkFiles(self.work)
        return {
            job.id: request(job, f"{begin}{job.id}", files.job(job.id).messages, batch)
            for job in self.jobs
        }

    @cached_property
    def refused(self) -> dict[str, str]:
        """Why the scheduler refuses jobs, by id of the job."""
        found = {}
        for job in self.jobs:
            try:
                self._job_texts(job)
            except BadInput as error:
                found[job.id] = f"{error}"
        return found

    def _job_texts(self, job: Job) -> dict[str, str]:
        name = self.scripts.batch.scheduler
        return job_texts(self.work, job, self.requests[job.id], name)

    def job(self, job: Job) -> dict[str, str]:
        """Return the texts of the script of `job`, and of its list of hosts.

        The key of each is its path in the work folder.

        A refused job has none.
        """
        return {} if job.id in self.refused else self._shown(self._job_texts(job))

    def step(self, step: Step) -> dict[str, str]:
        """Return the texts of the scripts and inputs of `step`, by path in the work folder."""
        return self._shown(self.scripts.of_step(RUN_ID, step))

    def write(self, folder: Path) -> None:
        """Write scripts and inputs into `folder`, as a run does; a refused job has no script."""
        steps = (self.step(step) for step in self.plan.steps())
        parts = chain([self._shown(self.scripts.of_run())], map(self.job, self.jobs), steps)
        for name, text in chain.from_iterable(part.items() for part in parts):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text)

    def _shown(self, texts: Mapping[str, str]) -> dict[str, str]:
        begin = job_names(self.work)
        return {path: shown(text.replace(begin, f"p{RUN_ID}-")) for path, text in texts.items()}


def shown(text: str) -> str:
    """Return a text with the placeholders of a preview as a reader sees them."""
    return text.replace(PREFIX, "$PREFIX").replace(RUN_ID, "$RUN_ID")


@dataclass(frozen=True)
class Execution:
    """One call that executes the jobs of a run.

    Attributes:
        say: called with one line when the state of a job, or a count, changed.
        manner: which steps run, and when the jobs stop.
    """

    run: Run
    scheduler: str
    say: Say
    prepare: Callable[[Run], object]
    manner: Manner = Manner.UNFINISHED


class KindJobs(ABC):
    """Executes the jobs of a kind of runs."""

    @abstractmethod
    def execute(self, asked: Execution) -> str:
        """Run the jobs; continue the run if it was interrupted.

        Returns, raises: see `proofmark.jobs.execute.execute`.
        """


KIND_JOBS = Plugins(KindJobs, "proofmark.jobs.scripts", "plan.json", "kind")


def jobs_of(kind: str) -> KindJobs | None:
    """Return what executes the runs of `kind`; None: each of their jobs runs once."""
    return KIND_JOBS.get(kind)() if kind in KIND_JOBS.names() else None
