"""What an explanation reads of a run: its plan, cases, site and programs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proofmark.cases.case import Case
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput
from proofmark.common.files import exists, read_json, text_or_empty
from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.plan.plan import Job
from proofmark.plan.step import Step, StepInstance
from proofmark.plan.traits import StepFigures, figures_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.runs.run_files import StepFiles
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.machines import declared
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.software import Software

_SCRATCH = re.compile(r"^SCRATCH=(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Context:
    """A step of a run, with the inputs of the run.

    Attributes:
        instance: the nodes that measure together, or the whole step.
        unwritten: the text that the script will have; empty if it is not known.
    """

    run: Run
    step: Step
    instance: StepInstance
    mode: str
    environment: str
    job: Job
    benchmarks: Benchmarks
    site: Site
    unwritten: str = ""

    @property
    def case(self) -> Case:
        """The case of the step."""
        return self.benchmarks.case(self.step.case)

    @property
    def files(self) -> StepFiles:
        """The folder of the step."""
        return self.run.files.step(self.step.id)

    @property
    def nodes(self) -> list[str]:
        """The nodes that are explained: those of the instance, or all of the step."""
        return self.step.nodes_of(self.instance)

    @property
    def together(self) -> list[str]:
        """The nodes of one measurement."""
        return self.nodes if self.instance.name else next(iter(self.step.instances().values()))

    @cached_property
    def figures(self) -> StepFigures:
        """The figures that the step can give."""
        return figures_of(self.step, self.case, self.run.plan.system, self.mode)

    @cached_property
    def software(self) -> Software | None:
        """The programs of the run; None if they are not installed or their file is damaged."""
        path = self.run.files.software
        try:
            return read_json(path, Software) if exists(path) else None
        except BadInput:
            return None

    @property
    def script(self) -> Path:
        """The script that runs the program on the nodes of a measurement."""
        return self.run.files.scripts.step(self.step.id).program_script

    @cached_property
    def script_text(self) -> str:
        """The text of `script`, or the one that it will have."""
        return text_or_empty(self.script) or self.unwritten

    @cached_property
    def scratch(self) -> str:
        """The scratch folder of the step as its script has it; empty if it has none."""
        found = _SCRATCH.search(self.script_text)
        return next(iter(shlex.split(found[1])), "") if found else ""

    @cached_property
    def facts(self) -> NodeFacts | None:
        """The facts of the machine that planned the run, if its nodes are like it."""
        if self.site.partition.node.topology:
            return None
        text = text_or_empty(self.run.files.facts_probe, MAX_PROBE_BYTES)
        try:
            return parse_probe(text, self.run.files.facts_probe.name)
        except (BadInput, ValueError):
            return None

    @cached_property
    def machine(self) -> Machine | None:
        """A node of the partition in the mode of the step; None if it is not known."""
        node, nodes = self.site.partition.node, len(self.site.hosts)
        copied = self.site.model_copy(update={"inventory": self.run.files.inventory})
        try:
            if node.topology:
                return declared(copied, node, self.mode)
            return Machine.from_facts(self.facts, nodes) if self.facts else None
        except (BadInput, KeyError):
            return None


def context_of(run: Run, step: Step, instance: StepInstance, unwritten: str) -> Context:
    """Return the context of `step`.

    Raises:
        BadInput: a case or the site of the run is damaged.
    """
    group, job = next(
        (group, job) for group in run.plan.groups for job in group.jobs if step in job.steps
    )
    return Context(
        run=run,
        step=step,
        instance=instance,
        mode=group.mode,
        environment=group.environment,
        job=job,
        benchmarks=benchmarks_of(run),
        site=site_of(run),
        unwritten=unwritten,
    )
