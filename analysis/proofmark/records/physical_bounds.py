"""Physical bounds: a value beyond the bound of its metric was not measured, so it is INVALID."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.cases.bounds import LARGEST, LARGEST_OTHER, MESSAGE, TIME_LIMIT
from proofmark.cases.case import Case
from proofmark.cases.reader.engine import Reading
from proofmark.cases.reference import UNIVERSAL, Metric
from proofmark.cases.telemetry import metrics_of
from proofmark.common.errors import BadInput
from proofmark.common.expressions import render
from proofmark.common.message import NOTHING, Message
from proofmark.common.units import measure
from proofmark.plan.plan import Step
from proofmark.site.ceilings import Ceilings

SECONDS = "s"
MESSAGE_S = {False: 2e-9, True: 1e-8}
"""The shortest message inside a node (a few cycles), and between nodes (light in 2 m of cable)."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A bound of a value, in the unit of the value.

    Attributes:
        value: the bound.
        given: what it was computed from, or a function that returns it. The function computes the
            bound once for each name, and few values are beyond their bound.
    """

    value: float
    given: str | Callable[[], str]

    @property
    def source(self) -> str:
        """What the bound was computed from."""
        return self.given if isinstance(self.given, str) else self.given()

    def __eq__(self, other: object) -> bool:
        """Return whether value and source are equal."""
        if not isinstance(other, Bound):
            return NotImplemented
        return self.value == other.value and self.source == other.source


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The least and the greatest possible value of a reading; None is no bound."""

    least: Bound | None
    greatest: Bound | None

    def error(self, metric: str, value: float, unit: str) -> Message:
        """Return why `value` is impossible, or `NOTHING`."""
        for bound, side in ((self.greatest, "above"), (self.least, "below")):
            if bound is None:
                continue
            if value > bound.value if side == "above" else value < bound.value:
                shown = f"{bound.value:.3g} {unit}".strip()
                found = f"{value:.6g} {unit}".strip()
                fields = {"metric": metric, "value": found, "bound": shown}
                return Message(f"{side}-bound", source=bound.source, **fields)
        return NOTHING


class StepBounds:
    """Computes the physical bounds of the values of one step."""

    def __init__(self, step: Step, case: Case, *, between_nodes: bool) -> None:
        self._step, self._metrics = step, metrics_of(case)
        self._message_s = MESSAGE_S[between_nodes]

    def of(self, reading: Reading, ceilings: Ceilings, nodes: int) -> ValueBounds:
        """Return the bounds of a reading that was measured on `nodes` nodes with `ceilings`.

        A bound that cannot be computed is the universal one of its unit.
        """
        metric = self._metrics.get(reading.metric)
        base, size = measure(reading.unit)
        universal = Bound(
            nodes * LARGEST.get(base, LARGEST_OTHER) / size,
            lambda: f"no {_plural(nodes)} {'has' if nodes == 1 else 'have'} more {base}",
        )
        if base == SECONDS and (limit := self._step.timeout):
            universal = Bound(limit / size, lambda: f"the time limit of the step is {limit} s")
        if metric is None:
            return ValueBounds(None, universal)
        given = self._given(metric, reading, ceilings, nodes, size)
        if given is None:
            return ValueBounds(None, universal)
        if metric.better == "lower":
            return ValueBounds(given, universal)
        return ValueBounds(None, given)

    def _given(
        self, metric: Metric, reading: Reading, ceilings: Ceilings, nodes: int, size: float
    ) -> Bound | None:
        """Return the bound of the case in the unit of `reading`; None if it is not computable."""
        if metric.bound == UNIVERSAL:
            return None
        step = self._step
        values: dict[str, Any] = {
            **step.parameters,
            **step.derived,
            **step.counts,
            "placement": step.placement,
            **reading.parameters,
            "benchmark": reading.benchmark,
            **{name: ceiling.value for name, ceiling in _items(ceilings)},
            "nodes": nodes,
            MESSAGE: self._message_s,
        }
        if step.timeout:
            values[TIME_LIMIT] = step.timeout
        value = self._computed(metric.bound, values)
        if value is None:
            return None

        def explain() -> str:
            sources = {name: ceiling.source for name, ceiling in _items(ceilings)}
            used = [
                sources.get(name, f"{name} {given:g}")
                for name, given in values.items()
                if isinstance(given, (int, float))
                and self._computed(metric.bound, {**values, name: 2 * given}) != value
            ]
            return "; ".join(used) or f"by its definition {metric.bound}"

        return Bound(value / size, explain)

    def _computed(self, bound: float | str, values: Mapping[str, Any]) -> float | None:
        try:
            value = render(bound, values, file=self._step.case, key="bound")
        except BadInput:
            return None
        return float(value) if isinstance(value, (int, float)) else None


def _items(ceilings: Ceilings) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(ceilings, name)) for name in type(ceilings).__dataclass_fields__)


def _plural(nodes: int) -> str:
    return "node" if nodes == 1 else f"{nodes} nodes"
