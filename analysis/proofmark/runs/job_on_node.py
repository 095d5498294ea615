"""The attempts of jobs on one node, with the reports of its probes."""

from __future__ import annotations

from typing import Literal

from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.runs.attempts import Attempt
from proofmark.site.node.provenance import NodeProvenance

Problem = Literal["missing", "empty", "cut", "damaged"]
"""Why a probe proves nothing. ``cut``: it has no end."""


class AttemptOnNode(StrictModel):
    """One attempt of a job on one node.

    Attributes:
        job: the id of the job; empty for a file of all jobs.
        attempt: the number of the attempt; 0 for a file of all jobs.
        steps: the ids of the steps of the job.
    """

    job: str
    attempt: int
    steps: tuple[str, ...]

    @property
    def name(self) -> str:
        """The attempt as in ``when.json``."""
        return f"{self.job}/attempt-{self.attempt}"


class JobOnNode(AttemptOnNode):
    """An attempt with the reports of its probes."""

    provenance: NodeProvenance

    @property
    def boots(self) -> set[str]:
        """The boot ids that the probes before and after the attempt report."""
        readings = self.provenance.before, self.provenance.after
        return {each.boot_id for each in readings if each is not None and each.boot_id}

    def covers(self, step: str, execution: Attempt) -> bool:
        """Return whether `step` was executed during this attempt.

        The clocks of nodes differ. They are only used for executions that recorded no attempt. An
        execution that was started by hand has the conditions of all attempts in the same boot.
        """
        if execution.job_attempt:
            return execution.job_attempt == self.name
        if execution.boot_id is not None:
            return execution.boot_id in self.boots
        # UTC in ISO 8601, so that the times compare as text.
        before, after = self.provenance.before, self.provenance.after
        began = step in self.steps and before.date <= execution.end
        return began and (after is None or execution.start <= after.date)


class DamagedProbe(AttemptOnNode):
    """A probe or a file of a node that proves nothing.

    Attributes:
        code: why.
        file: the file, below the folder of the run.
        node: the node, as the name of the file has it.
        section: the section, or ``section.key``, with the problem; empty if it is the whole file.
        problem: what is wrong in it; empty if it is missing.
        awaited: whether it is a missing probe of the end of an attempt, which may still run.
    """

    code: Problem
    file: str
    node: str = ""
    section: str = ""
    problem: str = ""
    awaited: bool = False

    @property
    def reason(self) -> Message:
        """Why the state of the node is not proven."""
        if self.code == "missing":
            return Message("probe-missing", file=self.file)
        damaged = Message("probe-damaged", file=self.file, problem=self.problem)
        if not self.section:
            return damaged
        return Message("probe-section", text=damaged, node=self.node, section=self.section)
