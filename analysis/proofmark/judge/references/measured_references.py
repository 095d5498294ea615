"""The figures of a run that are the references of other figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from proofmark.cases.reference import Against
from proofmark.cases.vocabulary import Scalar
from proofmark.common.units import factor
from proofmark.judge.aggregate import Aggregates, by_repeat
from proofmark.judge.references.judgement import fits, traits
from proofmark.records.columns import Record


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The measured reference of a figure: the median of all values, and one value per repeat."""

    value: float
    repeats: Mapping[int, float]


class Figures:
    """The valid figures of a run, by case, metric, node and mode."""

    def __init__(self, figures: Aggregates) -> None:
        self._figures = figures
        self._by_metric: dict[tuple[str, str], dict[tuple[str, str], list[Record]]] = {}

    def _of(self, case: str, metric: str) -> dict[tuple[str, str], list[Record]]:
        """Return the valid records of a metric by node and mode; cached."""
        key = (case, metric)
        if key not in self._by_metric:
            by_node: dict[tuple[str, str], list[Record]] = {}
            for record in self._figures.measuring(case, metric):
                if record.valid:
                    by_node.setdefault((record.node, record.mode), []).append(record)
            self._by_metric[key] = by_node
        return self._by_metric[key]

    def counterpart(self, of: Record, against: Against) -> Counterpart | None:
        """Return the figure that `against` names, on the node and in the mode of `of`.

        It is in the unit of `of`. Within the same case, all traits that ``where`` does not change
        must be equal. None if it was not measured.
        """
        case = against.case or of.case
        candidates = self._of(case, against.metric).get((of.node, of.mode), [])
        wanted: Mapping[str, Scalar] = against.where
        if case == of.case:
            wanted = {**traits(of), **against.where}
        fitting = [
            (record, record.value * times)
            for record in candidates
            if fits(traits(record), wanted)
            and record.value is not None
            and (times := factor(record.unit, of.unit)) is not None
        ]
        if not fitting:
            return None
        return Counterpart(
            median(value for _, value in fitting),
            by_repeat(replace(record, value=value) for record, value in fitting),
        )
