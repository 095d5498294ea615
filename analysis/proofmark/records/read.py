"""Records: one row per number, read from the raw outputs of a run and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from proofmark.cases.models import Benchmarks
from proofmark.cases.reader.engine import Reading, read_output
from proofmark.common.files import read_bytes
from proofmark.common.nodesets import folded, short_name
from proofmark.common.parallel import parallel_map
from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.records.columns import (
    NOTHING,
    Execution,
    Measurand,
    RecordBatch,
    RecordBuilder,
    Records,
    Scalar,
    intern,
)
from proofmark.records.columns import Record as Record
from proofmark.records.concurrency import concurrency_error, spread
from proofmark.records.conditions import Conditions
from proofmark.records.disturbance import without_disturbed
from proofmark.records.table import SCHEMA as SCHEMA
from proofmark.records.table import table as table
from proofmark.records.validity import end_invalid_reason
from proofmark.runs.attempts import Attempt, attempts
from proofmark.runs.nodes import Node
from proofmark.runs.run import Run
from proofmark.site.inventory import Site
from proofmark.software.software import Software

SLICE = 1000
"""Measurements of a step that one process reads at a time."""
ALONE = 2000
"""Measurements of a run up to which a second process is not worth its start."""

Instances = Sequence[tuple[str, Sequence[str]]]
"""Folders of a step's measurements below its own, each with its nodes."""


def read_run(
    run: Run, benchmarks: Benchmarks, site: Site, software: Software, nodes: Mapping[str, Node]
) -> Records:
    """Read every finished step of `run`; `nodes` are those collected so far.

    A large run is read by as many processes as there are processors.
    """
    reader = _Reader(run, benchmarks, site, software, nodes)
    tasks = list(_tasks(run))
    large = sum(len(instances) for _, _, instances in tasks) > ALONE
    records = Records.joined(run.id, parallel_map(reader.read, tasks, large=large))
    return without_disturbed(records, benchmarks.cases)


Task = tuple[str, Step, Instances]
"""A mode, a step planned in it, and those of its measurements that are to be read."""


def _tasks(run: Run) -> Iterator[Task]:
    for group in run.plan.groups:
        for job in group.jobs:
            for step in job.steps:
                every = list(step.instances().items()) or [("", [])]
                for first in range(0, len(every), SLICE):
                    yield group.mode, step, every[first : first + SLICE]


class _Reader:
    """Reads steps; what is the same for all the nodes of a step is worked out once."""

    def __init__(
        self,
        run: Run,
        benchmarks: Benchmarks,
        site: Site,
        software: Software,
        nodes: Mapping[str, Node],
    ) -> None:
        self.run, self.benchmarks, self.software = run, benchmarks, software
        self.partition = site.partition
        self.conditions = Conditions(run, site, nodes)

    def read(self, task: Task) -> RecordBatch:
        """Return what all executions of a step give in these folders."""
        mode, step, instances = task
        reader = _StepReader(self, mode, step)
        where = str(self.run.files.step(step.id).folder)
        for folder, hosts in instances:
            name = f"{step.id}/{folder}" if folder else step.id
            for attempt in attempts(f"{where}/{folder}" if folder else where):
                reader.take(name, hosts, attempt)
        return reader.draft.part()


class _StepReader:
    """Reads executions of one step into a draft."""

    def __init__(self, about: _Reader, mode: str, step: Step) -> None:
        self.draft = RecordBuilder()
        self._about, self._mode, self._step = about, mode, step
        self._case = about.benchmarks.case(step.case)
        self._asked = {
            **step.parameters,
            **step.derived,
            "ranks": step.ranks,
            "threads": step.threads,
        }
        self._binding_check = BindingCheck(step, about.partition.host_cpus)
        self._known: dict[tuple[object, ...], tuple[int, str]] = {}

    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add what one execution gave, in the folder `name`, for `hosts`."""
        step, case, draft = self._step, self._case, self.draft
        try:
            content = read_bytes(f"{attempt.path}/{step.output}")
        except FileNotFoundError:
            content = b""
        readings = read_output(case.reader(), step.case, content.decode("utf-8", "replace"))
        there = hosts or sorted(attempt.binding_report.hosts)
        trouble = self._trouble(hosts, there, attempt)
        if case.concurrent and step.copies > 1:
            file = f"{self._about.benchmarks.folder / step.case}.yml"
            trouble = trouble or concurrency_error(
                step, case.concurrent, attempt.files.folder, readings, file
            )
            readings = [*readings, *spread(case.concurrent, readings)]
        several = _named(tuple(there)) if len(there) > 1 else ""
        draft.executions.append(
            Execution(name, attempt.number, step.repeat, attempt.steal, attempt.others)
        )
        for reading in readings:
            measurand, elsewhere = self._measurand(reading)
            draft.measurand.append(measurand)
            draft.value.append(NOTHING if reading.value is None else reading.value)
            reason = None
            if trouble or elsewhere or not reading.valid or reading.node:
                reason = _reason(reading, trouble, elsewhere, attempt)
            draft.reason.append(-1 if reason is None else intern(draft.reasons, reason))
            draft.node.append(intern(draft.nodes, several or reading.node or attempt.host))
        draft.execution += [len(draft.executions) - 1] * len(readings)

    def _trouble(self, hosts: Sequence[str], there: Sequence[str], attempt: Attempt) -> str:
        conditions, when = self._about.conditions, (attempt.start, attempt.end)
        nodes = dict.fromkeys([attempt.host, *there])
        return (
            end_invalid_reason(self._step, attempt)
            or self._binding_check.invalid_reason(hosts or self._step.nodes, attempt.binding)
            or conditions.trouble(self._step, self._mode, nodes, *when)
            or _misplaced(hosts, attempt)
        )

    def _measurand(self, reading: Reading) -> tuple[int, str]:
        """Return the number of what was measured, and where it is not what was asked for."""
        key = (reading.benchmark, reading.metric, reading.unit, *reading.parameters.items())
        found = self._known.get(key)
        if found is None:
            step, plan = self._step, self._about.run.plan
            made = Measurand(
                system=plan.system,
                partition=plan.partition,
                origin=self._about.partition.origin,
                case=step.case,
                benchmark=reading.benchmark,
                metric=reading.metric,
                unit=reading.unit,
                mode=self._mode,
                placement=step.placement,
                environment_hash=self._about.software.packages[step.package].environment_hash,
                parameters=json.dumps(_parameters(step, reading), sort_keys=True),
            )
            place = intern(self.draft.measurands, made)
            found = self._known[key] = place, _elsewhere(self._asked, reading)
        return found


@lru_cache(maxsize=1 << 16)
def _named(hosts: tuple[str, ...]) -> str:
    return folded(hosts)


def _misplaced(hosts: Sequence[str], attempt: Attempt) -> str:
    """Return why the output in the folder of `hosts` is not theirs, or an empty string.

    Whose it is says the node itself; a folder's name is only where it should be found.
    """
    if not hosts or short_name(attempt.host) == short_name(hosts[0]):
        return ""
    return f"measured on {attempt.host}, in the folder of {hosts[0]}"


def _reason(reading: Reading, trouble: str, elsewhere: str, attempt: Attempt) -> str | None:
    """Return why a reading is INVALID; None of a valid one.

    To a reading's own validity comes what the step and the question tell.
    """
    if not reading.valid:
        return f"{trouble}; {reading.reason}" if trouble else reading.reason
    if trouble or elsewhere:
        return trouble or elsewhere
    if not reading.node or reading.node == attempt.host:
        return None
    hosts = {*attempt.binding_report.hosts, attempt.host}
    if reading.node in hosts:
        return None
    return f"the output names node {reading.node}, the step ran on {', '.join(sorted(hosts))}"


def _elsewhere(asked: Mapping[str, Scalar], reading: Reading) -> str:
    """Return in what the output contradicts the question, or an empty string."""
    for name, printed in reading.parameters.items():
        if name in asked and not _same(asked[name], printed):
            return f"asked for {name} {asked[name]}, the output says {printed}"
    return ""


def _same(asked: Scalar, printed: Scalar) -> bool:
    if isinstance(asked, (int, float)) and isinstance(printed, (int, float)):
        return asked == printed
    return str(asked) == str(printed)


def _parameters(step: Step, reading: Reading) -> dict[str, Scalar]:
    own: dict[str, Scalar] = dict(step.parameters)
    if step.launch == "mpi":
        own["ranks"] = step.ranks
    if step.threads > 1 or step.launch == "threads":
        own["threads"] = step.threads
    return own | dict(reading.parameters)
