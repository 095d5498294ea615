"""The predicted counterpart of each measured figure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.populations import Distance
from proofmark.records.columns import VIRTUAL, Record
from proofmark.runs.adopted import ErrorRow, Predictions

NODES = "nodes"
"""The parameter with the nodes of a step. The nodes of the figure itself are compared instead."""
Key = tuple[str, ...]
Nodes = tuple[int, str]
"""The number of nodes of a figure, and the distance of a pair."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one figure, in the unit of the figure.

    Attributes:
        ratio: measured ÷ `value`; None if `value` is 0.
        low, high: the range of the figure by the error of the model; None if that is not known.
    """

    value: float
    ratio: float | None
    low: float | None
    high: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, eq=False)
class FigurePredictions:
    """The predictions for the valid figures of a run.

    A figure and its prediction have equal case, benchmark, metric, unit, mode, placement and
    parameters, and equally many nodes; pairs of nodes also have the same distance. The prediction
    is that of the same nodes, or the median of those of other nodes.

    Attributes:
        expected: all predictions of the run of the twin.
        distance: of two nodes; None if it is not known.
    """

    expected: Predictions
    figures: Aggregates
    distance: Distance | None = None

    def of(self, figure: int) -> Prediction | None:
        """Return the prediction for a figure; None if there is none."""
        if not self.mask[figure]:
            return None
        about = self.figures.records.measurands[int(self.figures.measurand[figure])]
        value = self._value(figure)
        assert value is not None
        measured = float(self.figures.median[figure])
        error = self._errors.get((about.case, about.metric))
        low, high = error.range_of(value) if error else (None, None)
        return Prediction(value, measured / value if value else None, low, high)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Mask of the figures that have a prediction."""
        found = [self._value(figure) is not None for figure in range(len(self.figures))]
        mask: NDArray[np.bool_] = np.array(found, dtype=bool)
        return mask

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``: the source of the predictions, and their number."""
        expected = self.expected
        return {
            "run": expected.run,
            "selector": expected.selector,
            "figures": int(self.mask.sum()),
            "assumptions": [each.as_json() for each in expected.assumptions],
            "errors": [each.model_dump() for each in expected.errors],
        }

    def _value(self, figure: int) -> float | None:
        if not self.figures.valid[figure]:
            return None
        predicted = self._of_measurand[int(self.figures.measurand[figure])]
        if not predicted:
            return None
        node = self.figures.records.nodes[int(self.figures.node[figure])]
        like = predicted.get(self._nodes(node), {})
        return like[node] if node in like else median(like.values()) if like else None

    @cached_property
    def _of_measurand(self) -> Sequence[Mapping[Nodes, Mapping[str, float]]]:
        """The predictions for each measurand of the run, by number of nodes and by node set."""
        known: dict[Key, dict[Nodes, dict[str, float]]] = {}
        for each in self.expected.figures:
            of_nodes = known.setdefault(_key(each, each.parameters), {})
            of_nodes.setdefault(self._nodes(each.nodes), {})[each.nodes] = each.value
        return [
            {} if each.origin in VIRTUAL else known.get(_key(each, json.loads(each.parameters)), {})
            for each in self.figures.records.measurands
        ]

    @cached_property
    def _nodes(self) -> Callable[[str], Nodes]:
        @cache
        def of(name: str) -> Nodes:
            hosts = hosts_of(name)
            return len(hosts), self.distance(hosts) if self.distance else ""

        return of

    @cached_property
    def _errors(self) -> Mapping[tuple[str, str], ErrorRow]:
        return {(each.case, each.metric): each for each in self.expected.errors}


def _key(about: object, parameters: Mapping[str, object]) -> Key:
    names = ("case", "benchmark", "metric", "unit", "mode", "placement")
    rest = {name: value for name, value in parameters.items() if name != NODES}
    return (*(getattr(about, name) for name in names), json.dumps(rest, sort_keys=True))


def fields_of(record: Record) -> dict[str, Any]:
    """Return the fields of `AnyFigure` for a valid record."""
    names = ("case", "benchmark", "metric", "unit", "mode", "placement", "value")
    fields: dict[str, Any] = {name: getattr(record, name) for name in names}
    return {**fields, "parameters": dict(record.parameters)}
