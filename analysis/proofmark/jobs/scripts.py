"""Writes the scripts and inputs of all steps and jobs of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from proofmark.cases.case import Stability
from proofmark.cases.suite import Benchmarks
from proofmark.common.files import write_private, write_whole
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.job_script import write_job
from proofmark.jobs.step_programs import processor_needs
from proofmark.jobs.step_script import FOLDER, LaunchSite, each_script, shell_parts, step_script
from proofmark.plan.plan import SCRATCH, Plan, Step
from proofmark.runs.run_files import RunFiles
from proofmark.site.partition import Partition

PROBE = files("proofmark.site.node") / "probe.sh"


def stability_of(partition: Partition, benchmarks: Benchmarks) -> dict[str, Stability]:
    """Return the thresholds of each case; none for nodes that are not measured."""
    if partition.origin != "measured":
        return {}
    return {name: case.stability for name, case in benchmarks.cases.items()}


@dataclass(frozen=True)
class ScratchFolders:
    """The scratch folders of a partition.

    Attributes:
        path: the folder of steps that name no file system.
        file_systems: the folders of the others, by the name of their file system.
    """

    path: Path
    file_systems: Mapping[str, Path] = field(default_factory=dict)

    def of(self, step: Step) -> Path:
        """Return the folder on the file system of `step`."""
        return self.file_systems.get(step.file_system, self.path)


def write_scripts(
    run: Path,
    plan: Plan,
    site: LaunchSite,
    scratch: ScratchFolders,
    batch: BatchQueue,
    stability: Mapping[str, Stability] | None = None,
) -> None:
    """Write ``steps/*/run.sh`` with inputs, and ``jobs/*/job.sh``.

    The script of a step is written once: its output belongs to exactly this command.

    Args:
        run: the folder of the run.
        plan: the plan.
        site: the programs, and how they are started.
        scratch: the scratch folders.
        batch: where the jobs are submitted.
        stability: the thresholds of a disturbance, by case. A step of another case is not repeated.

    Raises:
        BadInput: a package or program of the plan is missing.
    """
    run_files = RunFiles(run)
    write_whole(run_files.probe_script, PROBE.read_text())
    write_whole(run_files.network_script, shell_parts("network.sh"))
    write_whole(run_files.processor_check, shell_parts("fit.awk"))
    groups = plan.needed()
    for step in (step for group in groups for job in group.jobs for step in job.steps):
        step_files = run_files.step(step.id)
        folder = step_files.folder
        if step_files.script.exists():
            continue
        base = scratch.of(step)
        instance = f"/{FOLDER}" if step.scope != "job" else ""
        step_scratch = f"{base / run.name / (step.reads or step.id)}{instance}"
        # A second execution would read the files from the page cache: it repeats nothing.
        limits = None if step.reads else (stability or {}).get(step.case)
        text = step_script(step, site, step_scratch, limits)
        _write_inputs(folder, step, step_scratch)
        if step.load:
            load = step.load.step.model_copy(update={"id": f"{step.id}-load"})
            load_scratch = f"{base / run.name / load.id}{instance}"
            of_load = step_script(load, site, load_scratch)
            name = "run.sh" if step.scope == "job" else "node.sh"
            _write_inputs(step_files.load, load, load_scratch)
            write_private(step_files.load / name, of_load)
        if step.scope != "job":
            lines = (f"{name} {' '.join(nodes)}\n" for name, nodes in step.instances().items())
            write_whole(step_files.instances, "".join(lines))
            write_private(step_files.node_script, text)
            text = each_script(step)
        write_private(step_files.script, text)
    for group in groups:
        for job in group.jobs:
            needs = run_files.job(job.id).needs
            needs.parent.mkdir(parents=True, exist_ok=True)
            write_whole(needs, processor_needs(job, site.software))
            write_job(run, job, batch)


def _write_inputs(folder: Path, step: Step, scratch: str) -> None:
    """Write the inputs of `step` into `folder`; `scratch` is its scratch folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in step.inputs.items():
        write_whole(folder / name, content.replace(SCRATCH, scratch))
