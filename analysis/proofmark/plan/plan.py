"""The plan: modes x cases x placements of one suite on one partition, expanded, ordered, costed.

Pure: facts and models in, a `Plan` out. The plan names programs by package, not by path: it
stands before anything is installed, and its digest does not depend on where that will be.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from proofmark.common.nodesets import Nodes
from proofmark.common.strict_model import StrictModel
from proofmark.plan.step import SCRATCH as SCRATCH
from proofmark.plan.step import Step as Step
from proofmark.site.hardware import CURRENT


class Job(StrictModel):
    """What the scheduler sees: steps that share a set of nodes."""

    id: str
    nodes: Nodes
    steps: list[Step]


class Group(StrictModel):
    """Jobs that need the same mode of the machine and the same build."""

    mode: str
    environment: str
    jobs: list[Job]


class Totals(StrictModel):
    """Cost of a plan. ``scratch_peak_bytes`` is the most that stands in scratch at one time."""

    jobs: int
    steps: int
    node_hours: float
    bytes: int
    scratch_peak_bytes: int
    wall_s: float


class Plan(StrictModel):
    """Everything one acceptance will do.

    The machine stands in `current_mode`; groups of other modes wait for a reboot that is confirmed.
    `entered` are modes that a run was allowed to enter: the run's folder knows them, not the plan.
    `left_out` are points that the machine lacks something for, `assumed` facts that nobody told.
    `not_needed` are steps that repeat the command of another step, each with the reason: that
    follows from the programs, so the run's folder has it too.
    """

    digest: str
    site: str
    partition: str
    suite: str
    system: str
    groups: list[Group]
    totals: Totals
    cases: dict[str, str]
    current_mode: str = CURRENT
    left_out: list[str] = []
    assumed: dict[str, str] = {}
    entered: list[str] = Field(default=[], exclude=True)
    not_needed: dict[str, str] = Field(default={}, exclude=True)

    def nodes(self) -> list[str]:
        """Return the nodes of all jobs, each once."""
        named = (node for group in self.groups for job in group.jobs for node in job.nodes)
        return list(dict.fromkeys(named))

    def steps(self) -> Iterator[Step]:
        """Yield every step in the order of execution."""
        for group in self.groups:
            for job in group.jobs:
                yield from job.steps

    def to_run(self) -> list[Group]:
        """Return what runs in the mode of the machine, and in the modes that are entered."""
        modes = {self.current_mode, *self.entered}
        return [group for group in self.needed() if group.mode in modes]

    def needed(self) -> list[Group]:
        """Return all groups without the steps that are not needed."""
        if not self.not_needed:
            return self.groups
        return [
            group.model_copy(
                update={
                    "jobs": [
                        job.model_copy(update={"steps": steps})
                        for job in group.jobs
                        if (steps := [each for each in job.steps if each.id not in self.not_needed])
                    ]
                }
            )
            for group in self.groups
        ]

    def steps_to_run(self) -> Iterator[Step]:
        """Yield every step of these groups in the order of execution."""
        for group in self.to_run():
            for job in group.jobs:
                yield from job.steps
