"""Writes the scripts and inputs of all steps and jobs of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Self

from proofmark.cases.case import Stability
from proofmark.cases.suite import Benchmarks
from proofmark.common.files import write_private, write_whole
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.job_script import write_job
from proofmark.jobs.step_programs import processor_needs
from proofmark.jobs.step_script import FOLDER, LaunchSite, each_script, shell_parts, step_script
from proofmark.machine.scheduler import scheduler
from proofmark.plan.plan import SCRATCH, Plan, Step
from proofmark.runs.run_files import RunFiles
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

    def of_step(self, run: Path, step: Step) -> dict[Path, str]:
        """Return the texts of the scripts and inputs of `step` by path, ``run.sh`` at the end.

        Raises:
            BadInput: a package or program of the step is missing.
        """
        files = RunFiles(run).step(step.id)
        base = self.file_systems.get(step.file_system, self.scratch) / run.name
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
        return {**texts, files.script: text}

    def of_run(self, run: Path) -> dict[Path, str]:
        """Return the texts of the files that all jobs of a run use, by path."""
        files = RunFiles(run)
        return {
            files.probe_script: PROBE.read_text(),
            files.network_script: shell_parts("network.sh"),
            files.processor_check: shell_parts("fit.awk"),
        }


def write_scripts(run: Path, plan: Plan, scripts: Scripts) -> None:
    """Write ``steps/*/run.sh`` with inputs, and ``jobs/*/job.sh``, into the folder `run`.

    The script of a step is written once: its output belongs to exactly this command.

    Raises:
        BadInput: a package or program of the plan is missing.
    """
    files = RunFiles(run)
    _write(scripts.of_run(run))
    groups = plan.needed()
    for group in groups:
        for step in group.steps():
            if not files.step(step.id).script.exists():
                _write(scripts.of_step(run, step))
    for group in groups:
        for job in group.jobs:
            _write({files.job(job.id).needs: processor_needs(job, scripts.site.software)})
            write_job(run, job, scripts.batch)


def _write(texts: Mapping[Path, str]) -> None:
    """Write texts of a run. The scripts of steps can have secrets."""
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        (write_private if path.name in ("run.sh", "node.sh") else write_whole)(path, text)


def _inputs(folder: Path, step: Step, scratch: str) -> dict[Path, str]:
    """Return the inputs of `step` in `folder`; `scratch` is its scratch folder."""
    return {folder / name: text.replace(SCRATCH, scratch) for name, text in step.inputs.items()}
