"""The records of a step whose outputs were imported, and the checks of such an output.

Nothing but the file proves it. What is missing makes no figure INVALID: the binding, the exit code,
the times, the facts of the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from proofmark.cases.banners import lines_of
from proofmark.cases.reader.engine import Reading, as_imported, read_output
from proofmark.cases.reader.output_text import output_text
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.plan.plan import Step
from proofmark.records.hosts import HostNames
from proofmark.records.run_facts import RunFacts
from proofmark.records.step_records import Instance, StepRecords, read_output_file
from proofmark.runs.adopted import AdoptedFile
from proofmark.runs.attempts import Attempt, imported_attempts


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
        content: the content of its copy.
        nodes: the nodes that it was adopted for.
        readings: its readings.
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
