"""Writes the scripts and inputs of all steps and jobs of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Self

from proofmark.cases.case import Stability
from proofmark.cases.suite import Benchmarks
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.job_script import write_job
from proofmark.jobs.step_programs import processor_needs
from proofmark.jobs.step_script import FOLDER, LaunchSite, each_script, shell_parts, step_script
from proofmark.machine.scheduler import scheduler
from proofmark.plan.plan import SCRATCH, Plan, Step
from proofmark.runs.run_files import RunFiles, WorkFiles
from proofmark.runs.work_folder import write_scripts_of
from proofmark.site.partition import Partition
from proofmark.software.software import Software

PROBE = files("proofmark.site.node") / "probe.sh"


def stability_of(partition: Partition, benchmarks: Benchmarks) -> dict[str, Stability]:
    """Return the thresholds of each case; none for nodes that are not measured."""
    if partition.origin != "measured":
        return {}
    return {name: case.stability for name, case in benchmarks.cases.items()}


@dataclass(frozen=True)
class Scripts:
    """What the scripts of a run are made from.

    Attributes:
        site: the programs, and how they are started.
        scratch: the scratch folder of steps that name no file system.
        batch: where the jobs are submitted.
        stability: the thresholds of a disturbance, by case. A step of another case is not repeated.
        file_systems: the scratch folders of the other steps, by the name of their file system.
    """

    site: LaunchSite
    scratch: Path
    batch: BatchQueue
    stability: Mapping[str, Stability] = field(default_factory=dict)
    file_systems: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        partition: Partition,
        software: Software,
        aliases: Mapping[str, Sequence[str]],
        benchmarks: Benchmarks,
        measured: Mapping[str, float],
    ) -> Self:
        """Return those of a run on `partition`; `aliases` and `measured` as in their classes."""
        return cls(
            LaunchSite(
                software,
                partition.launch,
                partition.host_cpus,
                aliases,
                scheduler(partition.scheduler).replaced_launchers,
            ),
            Path(partition.scratch.path),
            BatchQueue(partition.scheduler, partition.queue, measured),
            stability_of(partition, benchmarks),
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
        limits = None if step.reads else self.stability.get(step.case)
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
