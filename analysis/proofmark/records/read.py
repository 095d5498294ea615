"""Reads the records of a run: one record per value in the raw outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from proofmark.common.grouping import batched
from proofmark.common.message import Message
from proofmark.common.plugins import Plugins
from proofmark.common.processes import parallel_map
from proofmark.plan.plan import Step
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Records
from proofmark.records.disturbance import without_disturbed
from proofmark.records.measured_step import MeasuredStep
from proofmark.records.run_facts import RunFacts, RunParts, run_parts
from proofmark.records.step_records import SharedRecords, StepRecords
from proofmark.runs.attempts import Attempt
from proofmark.runs.run import Run, read_decisions

SLICE = 1000
"""The number of measurements that one process reads at a time."""


def read_run(parts: RunParts, steps: Collection[str] | None = None) -> Records:
    """Return the records of every finished step of a run.

    A step that was not run because its files were not written has INVALID records.

    A large run is read by one process per processor.
    """
    reader = _Reader(RunFacts(parts))
    read = parallel_map(reader.read, batched(reader.measurements(steps), SLICE))
    records = Records.joined(parts.run.id, read)
    return without_disturbed(records, parts.benchmarks.cases)


def read_parts(run: Run, steps: Collection[str] | None = None) -> tuple[RunParts, Records]:
    """Return the parts of a run and its records. `steps` are those of `read_run`.

    Raises:
        BadInput: a file of the run is damaged.
    """
    parts = run_parts(run)
    return parts, read_run(parts, steps)


def not_run(folder: str, reason: Message) -> Attempt:
    """Return an execution that did not take place, for INVALID records with `reason`."""
    return Attempt(1, folder, -1, "", "", "", False, math.nan, b"[]", damage=reason)


Measurement = tuple[str, Step, StepInstance, Sequence[str]]
"""Mode and step of a measurement, and its nodes; none for a step that is one measurement."""


class KindReader:
    """Reads the outputs of the runs of a kind."""

    def __init__(self, run: Run) -> None:
        """Read what the run states about its outputs.

        Raises:
            BadInput: a file of the run is damaged.
        """

    @property
    def sources(self) -> Mapping[str, str]:
        """The path of each output that others produced, by the folder of its step."""
        return {}

    def of_step(self, facts: RunFacts, mode: str, step: Step, shared: SharedRecords) -> StepRecords:
        """Return the reader of a step that is planned in `mode`."""
        return MeasuredStep(facts, mode, step, shared)


KIND_READERS = Plugins(KindReader, "proofmark.records.read", "plan.json", "kind")
"""The readers of kinds of runs; a kind without one is read as the usual run."""


def reader_of(run: Run) -> KindReader:
    """Return the reader of the outputs of `run`.

    Raises:
        BadInput: a file of the run is damaged.
    """
    kind = run.plan.kind
    return KIND_READERS.get(kind)(run) if kind in KIND_READERS.names() else KindReader(run)


def files_of_executions(run: Run) -> Callable[[str, int], str]:
    """Return the file with the values of an execution, as a function of its step and number.

    It is the path that others gave the output if they produced it, else that below the run.
    """
    sources = reader_of(run).sources
    outputs = {step.id: step.output for step in run.plan.steps()}

    def path(step: str, attempt: int) -> str:
        output = outputs.get(StepInstance.parse(step).step, "")
        return sources.get(step, f"workdir/steps/{step}/execution-{attempt}/{output}")

    return path


class _Reader:
    """Reads the steps of a run."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._not_run = read_decisions(facts.run.files).not_run
        self._outputs = reader_of(facts.run)

    def measurements(self, steps: Collection[str] | None) -> Iterator[Measurement]:
        """Yield the measurements to read; a step that was not run is one."""
        for group in self._facts.run.plan.groups:
            for step in group.steps():
                if steps is not None and step.id not in steps:
                    continue
                whole = {StepInstance(step.id): step.nodes}
                every = whole if step.id in self._not_run else step.instances()
                for instance, hosts in every.items():
                    yield group.mode, step, instance, hosts if instance.name else ()

    def read(self, measurements: Sequence[Measurement]) -> Records:
        """Return the records of all executions of `measurements`."""
        shared, steps = SharedRecords(), self._facts.run.files.work.steps
        for (mode, step), of_step in groupby(measurements, itemgetter(0, 1)):
            records = self._outputs.of_step(self._facts, mode, step, shared)
            if why := self._not_run.get(step.id):
                records.take(step.id, [], not_run(f"{steps}/{step.id}", why))
                continue
            for _, _, instance, hosts in of_step:
                name = f"{instance}"
                for attempt in records.executions(f"{steps}/{name}"):
                    records.take(name, hosts, attempt)
        return shared.builder.records()
