"""Reads the records of a run: one record per value in the raw outputs.

A search reads the figures of finished steps in the same way, to decide which steps run next.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from statistics import median

from proofmark.cases.reader.engine import Reading, as_imported, read_output
from proofmark.cases.reader.output_text import output_text
from proofmark.common.files import read_json
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.common.processes import parallel_map
from proofmark.plan.plan import Step
from proofmark.plan.search import Figures, Search
from proofmark.plan.step import StepInstance
from proofmark.records.binding import HostNames
from proofmark.records.columns import RecordBatch, Records
from proofmark.records.disturbance import without_disturbed
from proofmark.records.measured_step import MeasuredStep
from proofmark.records.run_facts import RunFacts, RunParts, run_parts
from proofmark.records.step_records import Instance, StepRecords, read_output_file
from proofmark.runs.adopted import AdoptedFile, adopted_files, lines_of
from proofmark.runs.attempts import Attempt, imported_attempts
from proofmark.runs.nodes import probed_nodes
from proofmark.runs.run import Run, benchmarks_of, read_decisions, site_of
from proofmark.software.software import Software


def imported_error(
    file: AdoptedFile | None,
    content: bytes,
    nodes: Sequence[str],
    readings: Sequence[Reading],
    names: HostNames,
) -> Message:
    """Return why an imported output is INVALID as a whole, or `NOTHING`.

    Args:
        file: the adopted file; None if ``adopted.json`` does not list it.
        nodes: the nodes that it was adopted for.
        names: the further names of the nodes.
    """
    if file is None:
        return Message("not-adopted")
    if file.problem:
        return Message("adopted-unread", problem=file.problem)
    if sha256(content).hexdigest() != file.sha256:
        return Message("adopted-changed")
    printed = [reading.node for reading in readings if reading.node]
    if not printed or not names.wrong_host(nodes, printed):
        return NOTHING
    return Message("adopted-for-node", node=repr(printed[0][:80]), nodes=folded(nodes))


def repeats_in_output(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Return the first reading of each figure, then the second ones, as one list for each repeat.

    Others write several runs of a program into one file. Each list has no figure twice.
    """
    seen: dict[tuple[object, ...], int] = {}
    repeats: list[list[Reading]] = []
    for reading in readings:
        parameters: Mapping[str, object] = reading.parameters
        key = (reading.benchmark, reading.metric, reading.unit, *sorted(parameters.items()))
        number = seen[key] = seen.get(key, 0) + 1
        if number > len(repeats):
            repeats.append([])
        repeats[number - 1].append(reading._replace(node=None))
    return repeats


class ImportedStep(StepRecords):
    """Reads imported outputs: each repeat of a program in one file is an execution.

    Args:
        facts: the run.
        mode: the mode in which the step is planned.
        step: the step.
        adopted: the files that were imported, by the folder of their step.
    """

    def __init__(
        self, facts: RunFacts, mode: str, step: Step, adopted: Mapping[str, AdoptedFile]
    ) -> None:
        super().__init__(facts, mode, step)
        self._adopted = adopted

    def executions(self, folder: str) -> Iterable[Attempt]:
        """Return the copy of the file in `folder` as one execution."""
        return imported_attempts(folder)

    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one file; see the base class."""
        step, names = self._step, self._facts.names
        content, unread = read_output_file(attempt, step.output)
        file = self._adopted.get(name)
        text = lines_of(output_text(content), file.lines if file else ())
        readings = as_imported(read_output(self._case.reader(), step.case, text, None))
        nodes = hosts or step.nodes
        why = imported_error(file, content, nodes, readings, names) or unread
        for number, repeat in enumerate(repeats_in_output(readings)):
            self._add(Instance(name, hosts, nodes, attempt, step.repeat + number), repeat, why)


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


def not_run(folder: str, reason: Message) -> Attempt:
    """Return an execution that did not take place, for INVALID records with `reason`."""
    return Attempt(
        number=1,
        path=folder,
        rc=-1,
        host="",
        start="",
        end="",
        timed_out=False,
        seconds=math.nan,
        binding=b"[]",
        damage=reason,
    )


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


def figures_of(run: Run, search: Search, steps: Collection[str]) -> Figures:
    """Return the figure of each of `steps`: of the newest execution without INVALID values.

    A job that still runs has no probe of its end yet.

    Args:
        search: the search; its metric is read.

    Raises:
        BadInput: a file of the run is damaged.
    """
    if not steps:
        return {}
    software = read_json(run.files.software, Software)
    nodes = {host: node.while_running() for host, node in probed_nodes(run).items()}
    records = read_run(RunParts(run, benchmarks_of(run), site_of(run), software, nodes), steps)
    return {step: figure(records, step, search.rule.metric) for step in steps}


def figure(records: Records, step: str, metric: str) -> float | None:
    """Return the median of `metric` in the newest valid execution of `step`; None without one."""
    by_attempt: dict[int, list[float | None]] = {}
    for record in records:
        if record.step == step and record.metric == metric:
            value = record.value if record.valid else None
            by_attempt.setdefault(record.attempt, []).append(value)
    for _, found in sorted(by_attempt.items(), reverse=True):
        valid = [value for value in found if value is not None]
        if valid and len(valid) == len(found):
            return median(valid)
    return None
