"""The data of a report: the contents of a run's folder, read once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import BLAS_KERNEL
from proofmark.common.files import (
    exists,
    moment_of,
    parse_json,
    read_bytes,
    read_json,
    text_or_empty,
)
from proofmark.common.input_limits import MAX_SMALL_BYTES
from proofmark.judge.verdict import Verdict
from proofmark.plan.file_layout import writes_by_mpi_io
from proofmark.plan.step import Step
from proofmark.report.additions import RunAddition, additions_of
from proofmark.runs.attempts import UNREADABLE, finished_executions
from proofmark.runs.nodes import Node, ProbedNodes, nodes_of
from proofmark.runs.progress import progress
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.runs.run_files import StepFiles, launch_command
from proofmark.runs.state import is_locked
from proofmark.runs.step_state import StepState
from proofmark.site.inventory import Site
from proofmark.site.node.facts import NodeFacts
from proofmark.software.mpi import reported_drivers, writing_drivers
from proofmark.software.program import Program, reported_kernels
from proofmark.software.software import Software

MOST_COMMANDS = 500
"""The largest number of commands that a report shows; for further steps it has only links."""


@dataclass(frozen=True)
class RunData:
    """The contents of a run.

    Attributes:
        commands: command that starts the program, by step, from its ``run.sh``.
        kernels: names of kernels that the BLAS printed, by choice of the variant ``blas_kernel``.
        drivers: the drivers of MPI-IO that wrote, by case; an empty tuple: unknown.
        started: start of the first step, UTC; None if no step has ended.
        ended: end of the last step, UTC; None if no step has ended.
        written: time of the report, UTC, or SOURCE_DATE_EPOCH.
        additions: what other packages add to the page.
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
    drivers: Mapping[str, tuple[str, ...]]
    started: datetime | None
    ended: datetime | None
    written: datetime
    additions: Sequence[RunAddition]

    @property
    def facts(self) -> list[NodeFacts]:
        """Return the facts of each node at the start of its newest job."""
        return [facts_of(node) for node in self.nodes]


def facts_of(node: Node) -> NodeFacts:
    """Return the facts of `node` at the start of its newest job."""
    return node.jobs[-1].provenance.facts


def gather(
    run: Run,
    verdict: Verdict,
    written: datetime | None = None,
    nodes: ProbedNodes | None = None,
) -> RunData:
    """Return the contents of the folder of `run`, for a report.

    Args:
        written: the time of the report; None: now.
        nodes: of the run, by host; None: they are read.

    Raises:
        BadInput: a file of the run is damaged.
    """
    states = progress(run, active=is_locked(run.folder)).steps
    times = []
    for state in states if run.executed else ():
        for execution in finished_executions(run.files.step(state.step.id)):
            times += _times(execution)
    path = run.files.software
    software = read_json(path, Software) if exists(path) else None
    site, benchmarks = site_of(run), benchmarks_of(run)
    commands = {}
    for state in states[:MOST_COMMANDS]:
        script = run.files.scripts.step(state.step.id).program_script
        if launch := launch_command(text_or_empty(script)):
            commands[state.step.id] = launch
    reported: dict[str, set[str]] = {}
    for state in states:
        step = state.step
        program = _program(software, step)
        if BLAS_KERNEL not in step.variants or program is None or program.blas is None:
            continue
        for text in _printed(run, step):
            names = reported_kernels(program.blas.family, text)
            reported.setdefault(step.variants[BLAS_KERNEL], set()).update(names)
    return RunData(
        run=run,
        verdict=verdict,
        site=site,
        benchmarks=benchmarks,
        software=software,
        nodes=[node for node in (nodes_of(run) if nodes is None else nodes).values() if node.jobs],
        states=states,
        commands=commands,
        kernels={choice: tuple(sorted(names)) for choice, names in reported.items()},
        drivers=drivers_that_wrote(run, states, software),
        started=min(times, default=None),
        ended=max(times, default=None),
        written=written or _now(),
        additions=additions_of(run, verdict),
    )


def _program(software: Software | None, step: Step) -> Program | None:
    package = software.packages.get(step.package) if software else None
    return package.programs.get(step.program) if package else None


def _printed(run: Run, step: Step) -> list[str]:
    """Return what each finished execution of a step printed."""
    texts: list[str] = []
    for each in finished_executions(run.files.step(step.id)):
        texts += map(text_or_empty, (each.stdout, each.stderr))
    return texts


def _now() -> datetime:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch) if epoch else int(time.time()), UTC)


def _times(files: StepFiles) -> list[datetime]:
    """Return start and end of an execution; nothing if its file is damaged."""
    try:
        when = parse_json(read_bytes(files.when, MAX_SMALL_BYTES))
        return [moment_of(when[key]) for key in ("start", "end")]
    except (OSError, *UNREADABLE):
        return []


def drivers_that_wrote(
    run: Run, states: Sequence[StepState], software: Software | None
) -> dict[str, tuple[str, ...]]:
    """Return the drivers by which the programs of each case wrote with MPI-IO."""
    drivers: dict[str, set[str]] = {}
    for state in states:
        step = state.step
        program = _program(software, step)
        writes = writes_by_mpi_io(step.environment, step.parameters)
        if not writes or program is None or program.mpi is None:
            continue
        if not (texts := _printed(run, step)):
            continue
        printed = set[str]().union(*map(reported_drivers, texts))
        wrote = writing_drivers(sorted(printed), program.mpi.drivers)
        drivers.setdefault(step.case, set()).update(wrote)
    return {case: tuple(sorted(names)) for case, names in drivers.items()}
