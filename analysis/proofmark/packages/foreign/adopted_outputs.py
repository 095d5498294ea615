"""Reads the records of an adopted run from the copies of its outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from proofmark.cases.reader.engine import Reading, read_output
from proofmark.cases.reader.output_text import output_text
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.packages.foreign.adopted import AdoptedFile, adopted_files, lines_of
from proofmark.plan.step import Step
from proofmark.records.binding import HostNames
from proofmark.records.read import KindReader
from proofmark.records.run_facts import RunFacts
from proofmark.records.step_records import Instance, StepRecords, read_output_file
from proofmark.runs.attempts import Attempt, finished_executions
from proofmark.runs.run import Run
from proofmark.runs.run_files import StepFiles


def adoption_error(
    file: AdoptedFile | None,
    content: bytes,
    nodes: Sequence[str],
    readings: Sequence[Reading],
    names: HostNames,
) -> Message:
    """Return why an adopted output is INVALID as a whole, or `NOTHING`.

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


def with_settings(readings: Iterable[Reading]) -> list[Reading]:
    """Return `readings` with their settings as parameters: nothing planned how they were measured.

    Args:
        readings: of an output that others produced.
    """
    return [
        each._replace(parameters={**each.settings, **each.parameters}, settings={})
        for each in readings
    ]


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


class AdoptedStep(StepRecords):
    """Reads adopted outputs. Each repeat of a program in a file is an execution.

    Args:
        facts: the run.
        mode: the mode in which the step is planned.
        step: the step.
        adopted: the files, by the folder of their step.
    """

    def __init__(
        self, facts: RunFacts, mode: str, step: Step, adopted: Mapping[str, AdoptedFile]
    ) -> None:
        super().__init__(facts, mode, step)
        self._adopted = adopted

    def executions(self, folder: str) -> Iterable[Attempt]:
        """Return the copy of the file in `folder` as one execution.

        Its exit code, node and times are not known; no rule reads the exit code here.
        """
        for number, files in enumerate(finished_executions(StepFiles(Path(folder))), start=1):
            path = f"{files.folder}"
            yield Attempt(
                number, path, 0, "", "", "", timed_out=False, seconds=math.nan, binding=b"[]"
            )

    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one file; see the base class."""
        step, names = self._step, self._facts.names
        content, unread = read_output_file(attempt, step.output)
        file = self._adopted.get(name)
        text = lines_of(output_text(content), file.lines if file else ())
        readings = with_settings(read_output(self._case.reader(), step.case, text, None))
        nodes = hosts or step.nodes
        why = adoption_error(file, content, nodes, readings, names) or unread
        for number, repeat in enumerate(repeats_in_output(readings)):
            self._add(Instance(name, hosts, nodes, attempt, step.repeat + number), repeat, why)


class AdoptedOutputs(KindReader):
    """Reads the outputs of an adopted run."""

    def __init__(self, run: Run) -> None:
        """Read ``adopted.json`` of `run`.

        Raises:
            BadInput: it is missing or damaged.
        """
        super().__init__(run)
        self._files = adopted_files(run.files)

    @property
    def sources(self) -> Mapping[str, str]:
        """The path of each output below the adopted folder, by the folder of its step."""
        return {step: file.source for step, file in self._files.items()}

    def of_step(self, facts: RunFacts, mode: str, step: Step) -> StepRecords:
        """Return the reader of a step of one or several files."""
        return AdoptedStep(facts, mode, step, self._files)
