"""What a command with the rights of root takes from a run: names and numbers.

A `NamedRun` has no site, no case, no command, no address and no path of the run. Its names select
among what the inventory and the kit have; `proofmark.cli.command_inputs` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from proofmark.cases.vocabulary import Slug
from proofmark.common.nodesets import HostName
from proofmark.common.strict_model import StrictModel
from proofmark.plan.resets import nodes_to_reset
from proofmark.runs.answer import answer
from proofmark.runs.job_folder import JobFolder
from proofmark.runs.progress import waiting_nodes
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_files import RunFiles

Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=255)]
Text = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A text that is only compared and printed."""
Count = Annotated[int, Field(ge=0)]


class GroupNames(StrictModel):
    """The steps of one mode, which has a name: `waiting` are the nodes with a step to do."""

    mode: Word
    waiting: list[HostName]


class RunNames(StrictModel):
    """The names and numbers of a run.

    Attributes:
        site, partition, suite: of the plan.
        imported: whether others produced the outputs.
        rolling: whether its jobs start when their nodes are available.
        nodes: the nodes of the plan.
        groups: the steps by mode, in the order of the plan.
        programs: the programs of the steps, by package.
        bound_memory: whether a step binds memory.
        resets: the number of nodes of each mode but the current one.
        inventory: the folder of the site with which the run was planned; it is only compared.
        scratch: the scratch directory with which the run was planned; it is only compared.
        file_systems: the further file systems to which steps write.
        scratch_peak_bytes: the most data in scratch at one time.
        wall_s: the planned duration in seconds.
        submitted: the first job that may still be in the queue; empty if there is none.
    """

    site: Word
    partition: Word
    suite: Word
    imported: bool
    rolling: bool
    nodes: list[HostName]
    groups: list[GroupNames]
    programs: dict[Slug, list[Word]]
    bound_memory: bool
    resets: list[Count]
    inventory: Text
    scratch: Text
    file_systems: list[Text]
    scratch_peak_bytes: Count
    wall_s: Annotated[float, Field(ge=0)]
    submitted: Text

    def due(self) -> list[str]:
        """Return the nodes of a stage; of a rolling run, those with waiting steps of any mode."""
        if not self.rolling:
            return self.nodes
        found = []
        for group in self.groups:
            found += group.waiting
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class NamedRun:
    """The folder of a run that another user may own, and the names and numbers of the run."""

    folder: Path
    names: RunNames

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def imported(self) -> bool:
        """Whether others produced the outputs."""
        return self.names.imported

    @property
    def files(self) -> RunFiles:
        """The files in the folder. They are read and written with the rights of the owner."""
        return RunFiles(self.folder)

    def waiting(self, mode: str) -> list[str]:
        """Return the nodes with a step of `mode` that has no result."""
        groups = [group for group in self.names.groups if group.mode == mode]
        found = []
        for group in groups:
            found += group.waiting
        return list(dict.fromkeys(found))


def open_names(folder: Path) -> NamedRun:
    """Return the names and numbers of the run in `folder` (a link is followed).

    Raises:
        BadInput: `folder` is not a run, or the names of the run are not accepted.
    """
    resolved = folder.resolve()
    return NamedRun(resolved, answer(folder, names_of, RunNames))


def names_of(run: Run) -> RunNames:
    """Return the names and numbers of `run`."""
    plan, site = run.plan, site_of(run)
    jobs = []
    for group in plan.groups:
        jobs += group.jobs
    return RunNames(
        site=plan.site,
        partition=plan.partition,
        suite=plan.suite,
        imported=plan.imported,
        rolling=bool(plan.rolling),
        nodes=plan.nodes(),
        groups=[
            GroupNames(
                mode=group.mode,
                waiting=waiting_nodes(run, group.mode),
            )
            for group in plan.groups
            if group.mode
        ],
        programs=plan.packages(),
        bound_memory=plan.binds_memory(),
        resets=nodes_to_reset(plan),
        inventory=f"{site.inventory}",
        scratch=site.partition.scratch.path,
        file_systems=sorted({step.file_system for step in plan.steps()} - {""}),
        scratch_peak_bytes=plan.totals.scratch_peak_bytes,
        wall_s=plan.totals.wall_s,
        submitted=next((job.id for job in jobs if JobFolder(run, job).submission()), ""),
    )
