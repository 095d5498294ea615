"""What a report is made of: everything that a run's folder tells, read once."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from proofmark.cases.models import Benchmarks
from proofmark.common.files import read_json
from proofmark.judge.claims.model import Answer
from proofmark.judge.claims.of_runs import answers_of
from proofmark.judge.verdict import Verdict
from proofmark.runs.files import StepFiles
from proofmark.runs.lock import is_locked
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.progress import StepState, progress
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.site.inventory import Site
from proofmark.site.node.facts import NodeFacts
from proofmark.software.blas import reported_kernels
from proofmark.software.software import BLAS_KERNEL, Software

MOST_COMMANDS = 500
"""Steps whose command a report shows; the others it links to."""

_LAUNCH = re.compile(r"^launch\(\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class RunData:
    """The contents of a run.

    Attributes:
        states: of each step, in the order of the plan.
        commands: what starts the program, by step, as its ``run.sh`` has it.
        claims: what its figures say to the papers' claims.
        kernels: those that the BLAS named in the outputs, by choice of the variant.
        started: of the first step that ran, in UTC; None where none did.
        ended: of the last step, its end in UTC.
        written: when the report is written, or what SOURCE_DATE_EPOCH says.
    """

    run: Run
    verdict: Verdict
    site: Site
    benchmarks: Benchmarks
    software: Software | None
    nodes: Sequence[Node]
    states: Sequence[StepState]
    commands: Mapping[str, str]
    kernels: Mapping[str, tuple[str, ...]]
    started: datetime | None
    ended: datetime | None
    written: datetime
    claims: Sequence[Answer]

    @property
    def facts(self) -> list[NodeFacts]:
        """Return what each node was at the begin of its newest job."""
        return [facts_of(node) for node in self.nodes]


def facts_of(node: Node) -> NodeFacts:
    """Return what `node` was at the begin of its newest job."""
    return node.jobs[-1].provenance.facts


def gather(run: Run, verdict: Verdict) -> RunData:
    """Read the folder of `run`.

    Raises:
        BadInput: one of the run's own files is damaged.
    """
    states = progress(run, active=is_locked(run)).steps
    times = [each for state in states for each in _times(run.files.step(state.step.id))]
    provided = run.files.software
    software = read_json(provided, Software) if provided.exists() else None
    return RunData(
        run=run,
        verdict=verdict,
        site=site_of(run),
        benchmarks=benchmarks_of(run),
        software=software,
        nodes=[node for node in nodes_of(run).values() if node.jobs],
        states=states,
        commands=_commands(run, states),
        kernels=_kernels(run, states, software),
        started=min(times, default=None),
        ended=max(times, default=None),
        written=_now(),
        claims=answers_of([(run, verdict)]),
    )


def _now() -> datetime:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch) if epoch else int(time.time()), UTC)


def _times(files: StepFiles) -> list[datetime]:
    """Return start and end of a step; none of one that did not end or whose file is damaged."""
    try:
        when = json.loads(files.when.read_text())
        return [datetime.fromisoformat(when[key]) for key in ("start", "end")]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _commands(run: Run, states: Sequence[StepState]) -> dict[str, str]:
    commands = {}
    for state in states[:MOST_COMMANDS]:
        script = run.files.step(state.step.id).script
        text = script.read_text(errors="replace") if script.exists() else ""
        launch = _LAUNCH.search(text)
        if launch:
            commands[state.step.id] = launch[1].rstrip()
    return commands


def _kernels(
    run: Run, states: Sequence[StepState], software: Software | None
) -> dict[str, tuple[str, ...]]:
    """Ask the outputs which kernel the BLAS took: what it said there is what was measured."""
    said: dict[str, set[str]] = {}
    for state in states:
        step = state.step
        package = software.packages.get(step.package) if software else None
        program = package.programs.get(step.program) if package else None
        if BLAS_KERNEL not in step.variants or program is None or program.blas is None:
            continue
        files = run.files.step(step.id)
        for path in (files.stdout, files.stderr):
            output = path.read_text(errors="replace") if path.exists() else ""
            found = reported_kernels(program.blas.family, output)
            said.setdefault(step.variants[BLAS_KERNEL], set()).update(found)
    return {choice: tuple(sorted(names)) for choice, names in said.items()}
