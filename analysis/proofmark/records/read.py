"""Reads the records of a run: one record per value in the raw outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from proofmark.common.parallel import parallel_map
from proofmark.plan.plan import Step
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Record as Record
from proofmark.records.columns import RecordBatch, Records
from proofmark.records.disturbance import without_disturbed
from proofmark.records.imported_step import ImportedStep
from proofmark.records.measured_step import MeasuredStep
from proofmark.records.parquet_table import SCHEMA as SCHEMA
from proofmark.records.parquet_table import table as table
from proofmark.records.requirements import not_run
from proofmark.records.run_facts import RunFacts, RunParts, run_parts
from proofmark.records.step_records import StepRecords
from proofmark.runs.adopted import adopted_files
from proofmark.runs.decisions import read_decisions
from proofmark.runs.run import Run

SLICE = 1000
"""The number of measurements of a step that one process reads at a time."""
ONE_PROCESS = 2000
"""One process reads a run with at most this number of measurements: a second costs more time."""

Instances = Sequence[tuple[StepInstance, Sequence[str]]]
"""Measurements of a step with their nodes; without nodes for a step that is one measurement."""


def read_run(parts: RunParts, steps: Collection[str] | None = None) -> Records:
    """Return the records of every finished step of a run.

    A step that was not run because its files were not written has INVALID records.

    A large run is read by one process per processor.

    Args:
        parts: the run, and what it is read with.
        steps: the ids of the steps to read; None: all steps.
    """
    reader = _Reader(RunFacts(parts))
    tasks = [task for task in _tasks(parts.run) if steps is None or task[1].id in steps]
    large = sum(len(instances) for _, _, instances in tasks) > ONE_PROCESS
    records = Records.joined(parts.run.id, parallel_map(reader.read, tasks, large=large))
    return without_disturbed(records, parts.benchmarks.cases)


def read_parts(run: Run, steps: Collection[str] | None = None) -> tuple[RunParts, Records]:
    """Return the parts of a run and its records. `steps` are those of `read_run`.

    Raises:
        BadInput: a file of the run is damaged.
    """
    parts = run_parts(run)
    return parts, read_run(parts, steps)


Task = tuple[str, Step, Instances]
"""A mode, a step that is planned in it, and the measurements of the step to read."""


def _tasks(run: Run) -> Iterator[Task]:
    for group in run.plan.groups:
        for step in group.steps():
            instances = [(each, on if each.name else []) for each, on in step.instances().items()]
            for first in range(0, len(instances), SLICE):
                yield group.mode, step, instances[first : first + SLICE]


class _Reader:
    """Reads the steps of a run."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts, files = facts, facts.run.files
        self._not_run = read_decisions(files).not_run
        self._adopted = adopted_files(files) if facts.run.plan.imported else None

    def read(self, task: Task) -> RecordBatch:
        """Return the records of all executions of a step in the folders of `task`."""
        mode, step, instances = task
        records = self._records_of(mode, step)
        files = self._facts.run.files
        if why := self._not_run.get(step.id):
            records.take(step.id, [], not_run(str(files.step(step.id).folder), why))
            return records.builder.batch()
        for instance, hosts in instances:
            for attempt in records.executions(str(files.step(str(instance)).folder)):
                records.take(str(instance), hosts, attempt)
        return records.builder.batch()

    def _records_of(self, mode: str, step: Step) -> StepRecords:
        if self._adopted is None:
            return MeasuredStep(self._facts, mode, step)
        return ImportedStep(self._facts, mode, step, self._adopted)
