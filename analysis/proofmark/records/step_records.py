"""The records of the executions of one step, each compared with its physical bound.

A value beyond the bound of its metric was not measured, so it is INVALID.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from proofmark.cases.case import (
    LARGEST,
    LARGEST_OTHER,
    MESSAGE,
    MESSAGE_S,
    TIME_LIMIT,
    Case,
    metrics_of,
)
from proofmark.cases.reader.engine import Reading
from proofmark.cases.reference import UNIVERSAL, Metric
from proofmark.cases.vocabulary import ParameterValues, Scalar
from proofmark.common.errors import BadInput
from proofmark.common.expressions import render
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import folded, is_name
from proofmark.common.text import measure
from proofmark.plan.plan import Step
from proofmark.records.columns import Execution, Measurand, RecordBuilder, intern
from proofmark.records.run_facts import RunFacts
from proofmark.runs.attempts import Attempt, damage
from proofmark.runs.samples import Shares
from proofmark.site.ceilings import Ceilings
from proofmark.site.partition import PREDICTED

SECONDS = "s"


class Bound(NamedTuple):
    """A bound of a value, in the unit of the value.

    `explain` returns what it was computed from. It computes the bound once for each name, and few
    values are beyond their bound.
    """

    value: float
    explain: Callable[[], str]


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
                return Message(f"{side}-bound", source=bound.explain(), **fields)
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
            lambda: f"no {'node has' if nodes == 1 else f'{nodes} nodes have'} more {base}",
        )
        if base == SECONDS and (limit := self._step.timeout):
            universal = Bound(limit / size, lambda: f"the time limit of the step is {limit} s")
        given = self._given(metric, reading, ceilings, nodes, size) if metric else None
        if metric is None or given is None:
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


def read_output_file(attempt: Attempt, name: str) -> tuple[bytes, Message]:
    """Return the content of the output `name`, and why it cannot be read, or `NOTHING`.

    A missing output is empty. The reader reports it.
    """
    try:
        return attempt.contents.read(name), NOTHING
    except FileNotFoundError:
        return b"", NOTHING
    except OSError as error:
        return b"", damage(name, error)


class Disturbance(NamedTuple):
    """Why an execution was disturbed, or `NOTHING`; and what took CPU time from its ranks."""

    reason: Message = NOTHING
    shares: Shares = ()


UNDISTURBED = Disturbance()


class Instance(NamedTuple):
    """An execution, and where it measured.

    Attributes:
        name: its folder, below ``steps/``.
        hosts: the nodes of the instance; empty for a step without instances.
    """

    name: str
    hosts: Sequence[str]
    nodes: Sequence[str]
    attempt: Attempt
    repeat: int


class LikeNodes(NamedTuple):
    """Nodes of one kind: their number, their ceilings, and the bounds of each measurand there."""

    nodes: int
    ceilings: Ceilings
    bounds: dict[int, ValueBounds]


@dataclass(frozen=True)
class SharedRecords:
    """The records of several steps, and what figures have in common.

    Attributes:
        measurands: kind of step and figure → the number of the measurand, and how it contradicts
            the plan.
        machines: kind of step, number and ceilings of nodes → these nodes.
    """

    builder: RecordBuilder = field(default_factory=RecordBuilder)
    measurands: dict[tuple[object, ...], tuple[int, Message]] = field(default_factory=dict)
    machines: dict[tuple[object, ...], LikeNodes] = field(default_factory=dict)


class StepRecords(ABC):
    """Makes the records of one step; the measurands are the same for all of its nodes."""

    def __init__(self, facts: RunFacts, mode: str, step: Step, shared: SharedRecords) -> None:
        self.builder, self._shared = shared.builder, shared
        self._facts, self._mode, self._step = facts, mode, step
        self._case = facts.benchmarks.case(step.case)
        self._planned = step.planned
        # Ranks and threads are proven by the binding, also if the program prints neither.
        self._stated = self._case.reader().stated & {*step.parameters, *step.derived}
        self._stated -= step.counts.keys()
        between = step.nodes_each > 1 and not facts.emulated
        self._step_bounds = StepBounds(step, self._case, between_nodes=between)
        named = (mode, step.case, step.package, step.placement, step.timeout, between)
        # Steps of one kind differ in nodes, repeat and folder only. 1 and 1.0 are written apart.
        self._kind = (*named, repr(step.recorded), repr(self._planned))

    @abstractmethod
    def executions(self, folder: str) -> Iterable[Attempt]:
        """Return the finished executions in `folder`."""

    @abstractmethod
    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one execution.

        Args:
            name: the folder of the execution, below ``steps/``.
            hosts: the nodes of the instance; empty for a step without instances.
        """

    def _add(
        self,
        instance: Instance,
        readings: Sequence[Reading],
        invalid: Message,
        disturbed: Disturbance = UNDISTURBED,
    ) -> None:
        """Add an execution and its readings."""
        step, builder = self._step, self.builder
        nodes, attempt = instance.nodes, instance.attempt
        predicted = self._facts.origin == PREDICTED  # by a machine that is none of its nodes
        several = _node_set(tuple(nodes)) if len(nodes) > 1 or (predicted and nodes) else ""
        builder.executions.append(
            Execution(
                *(instance.name, attempt.number, instance.repeat),
                *(attempt.steal, attempt.others, disturbed.reason),
                start=attempt.start_s,
                ended=attempt.ended,
                seconds=attempt.seconds,
                disturbers=disturbed.shares,
            )
        )
        unstated = _unstated(self._stated, readings)
        measured_on = instance.hosts or step.nodes
        machine = self._machine(measured_on)
        for reading in readings:
            measurand, contradiction = self._measurand(reading)
            if reading.metric in unstated and not contradiction:
                contradiction = self._lacking(unstated[reading.metric], reading)
            reason = None
            if invalid or contradiction or not reading.valid or reading.node:
                reason = _reason(reading, invalid, contradiction, attempt)
            if reason is None and reading.value is not None:
                bounds = self._bounds_of(measurand, reading, machine)
                reason = bounds.error(reading.metric, reading.value, reading.unit) or None
            node = several or self._node(reading, attempt, measured_on)
            builder.add(len(builder.executions) - 1, measurand, node, reading.value, reason)

    def _node(self, reading: Reading, attempt: Attempt, planned: Sequence[str]) -> str:
        """Return the node of a reading: that in the output, of the execution, or else as planned.

        It has the name of the inventory, whatever name it reports.
        """
        named = reading.node if reading.node and is_name(reading.node) else attempt.host
        return self._facts.names.node(planned, named) if named else _node_set(tuple(planned))

    def _machine(self, hosts: Sequence[str]) -> LikeNodes:
        ceilings = self._facts.ceilings(hosts)
        key = (self._kind, len(hosts), ceilings)
        return self._shared.machines.setdefault(key, LikeNodes(len(hosts), ceilings, {}))

    def _bounds_of(self, measurand: int, reading: Reading, machine: LikeNodes) -> ValueBounds:
        if measurand not in machine.bounds:
            found = self._step_bounds.of(reading, machine.ceilings, machine.nodes)
            machine.bounds[measurand] = found
        return machine.bounds[measurand]

    def _measurand(self, reading: Reading) -> tuple[int, Message]:
        """Return the number of the measurand, and how the output contradicts the plan."""
        figure = (reading.benchmark, reading.metric, reading.unit)
        key = (self._kind, *figure, *reading.parameters.items())
        known = self._shared.measurands.get(key)
        if known is None:
            step, plan = self._step, self._facts.run.plan
            package = self._facts.software.packages.get(step.package)
            measurand = Measurand(
                system=plan.system,
                partition=plan.partition,
                origin=self._facts.origin,
                case=step.case,
                benchmark=reading.benchmark,
                metric=reading.metric,
                unit=reading.unit,
                mode=self._mode,
                placement=step.placement,
                environment_hash=package.environment_hash if package else "",
                parameters=json.dumps({**step.recorded, **reading.parameters}, sort_keys=True),
            )
            place = intern(self.builder.measurands, measurand)
            known = self._shared.measurands[key] = place, _contradiction(self._planned, reading)
        return known

    def _lacking(self, stated: Collection[str], reading: Reading) -> Message:
        """Return the first of the planned parameters `stated` that a reading lacks."""
        for name in sorted(stated):
            if name not in reading.parameters:
                return Message("output-lacks", name=name, planned=self._planned[name])
        return NOTHING


def _unstated(stated: Set[str], readings: Sequence[Reading]) -> dict[str, set[str]]:
    """Return by metric the parameters that an output must state for it, and does not everywhere.

    A metric may lack a parameter that the output states only for other metrics: hpcc prints the
    grid of HPL.
    """
    if all(stated <= reading.parameters.keys() for reading in readings):
        return {}
    having = set()
    for each in readings:
        having |= {(name, each.metric) for name in each.parameters}
    anywhere = {name for name, _ in having}
    return {
        metric: {name for name in stated if (name, metric) in having or name not in anywhere}
        for metric in {each.metric for each in readings}
    }


@lru_cache(maxsize=1 << 16)
def _node_set(hosts: tuple[str, ...]) -> str:
    return folded(hosts)


def _reason(
    reading: Reading, invalid: Message, contradiction: Message, attempt: Attempt
) -> Message | None:
    """Return why a reading is INVALID; None for a valid one."""
    if not reading.valid:
        return joined((invalid, reading.reason))
    if invalid or contradiction:
        return invalid or contradiction
    if not reading.node or reading.node == attempt.host:
        return None
    hosts = {*attempt.binding_report.hosts, attempt.host}
    if reading.node in hosts:
        return None
    fields = {"node": repr(reading.node[:80]), "nodes": ", ".join(sorted(hosts))}
    return Message("output-of-node", **fields)


def _contradiction(planned: ParameterValues, reading: Reading) -> Message:
    """Return the first parameter that the output has other than planned, or `NOTHING`."""
    for name, printed in reading.parameters.items():
        if name in planned and not _same(planned[name], printed):
            return Message("output-of-plan", name=name, planned=planned[name], printed=printed)
    return NOTHING


def _same(planned: Scalar, printed: Scalar) -> bool:
    if isinstance(planned, (int, float)) and isinstance(printed, (int, float)):
        return planned == printed
    return str(planned) == str(printed)
