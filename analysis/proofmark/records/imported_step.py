"""The records of a step whose outputs were imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proofmark.cases.reader.engine import read_output
from proofmark.cases.reader.output_text import output_text
from proofmark.plan.plan import Step
from proofmark.records.imported_output import imported_error, repeats_in_output
from proofmark.records.output_file import read_output_file
from proofmark.records.run_facts import RunFacts
from proofmark.records.step_records import Instance, StepRecords
from proofmark.runs.adopted import AdoptedFile
from proofmark.runs.attempts import Attempt, imported_attempts


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
        text = output_text(content)
        readings = read_output(self._case.reader(), step.case, text, None)
        nodes = hosts or step.nodes
        why = imported_error(self._adopted.get(name), content, nodes, readings, names) or unread
        for number, repeat in enumerate(repeats_in_output(readings)):
            self._add(Instance(name, hosts, nodes, attempt, step.repeat + number), repeat, why)
