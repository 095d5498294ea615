"""The parts of an explanation: sections of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.plan.step import StepInstance


@dataclass(frozen=True)
class ExplainedRow:
    """One fact about a step.

    Attributes:
        name: what the fact is about.
        value: the fact.
        source: where it comes from; may be empty.
    """

    name: str
    value: str
    source: str = ""


@dataclass(frozen=True)
class ExplanationSection:
    """Rows with a common title. `key` is the name of the section in JSON."""

    key: str
    title: str
    rows: Sequence[ExplainedRow]


@dataclass(frozen=True)
class Explanation:
    """All sections about one step, or one measurement of it.

    Attributes:
        run: the id of the run.
        instance: the nodes that measure together, or the whole step.
    """

    run: str
    instance: StepInstance
    sections: Sequence[ExplanationSection]

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``explain --json``."""
        sections: Mapping[str, list[dict[str, str]]] = {
            each.key: [
                {"name": row.name, "value": row.value, "source": row.source} for row in each.rows
            ]
            for each in self.sections
        }
        return {
            "run": self.run,
            "step": self.instance.step,
            "instance": self.instance.name,
            **sections,
        }
