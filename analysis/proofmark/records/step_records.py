"""The records of the executions of one step."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from proofmark.cases.reader.engine import Reading
from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import folded, is_name
from proofmark.plan.plan import Step
from proofmark.records.columns import NO_VALUE, Execution, Measurand, RecordBuilder, intern
from proofmark.records.physical_bounds import StepBounds, ValueBounds
from proofmark.records.run_facts import RunFacts
from proofmark.runs.attempts import Attempt
from proofmark.runs.binding_file import damage
from proofmark.runs.noise_file import Shares
from proofmark.site.ceilings import Ceilings
from proofmark.site.partition import PREDICTED


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
        nodes: the nodes that measured, as far as they are known.
        attempt: the execution.
        repeat: the number of the repeat.
    """

    name: str
    hosts: Sequence[str]
    nodes: Sequence[str]
    attempt: Attempt
    repeat: int


class LikeNodes(NamedTuple):
    """Nodes of one kind; like nodes have one `number`."""

    number: int
    nodes: int
    ceilings: Ceilings


class StepRecords(ABC):
    """Makes the records of one step; the measurands are the same for all of its nodes.

    Args:
        facts: the run.
        mode: the mode in which the step is planned.
        step: the step.
    """

    def __init__(self, facts: RunFacts, mode: str, step: Step) -> None:
        self.builder = RecordBuilder()
        self._facts, self._mode, self._step = facts, mode, step
        self._case = facts.benchmarks.case(step.case)
        self._planned = step.planned
        # Ranks and threads are proven by the binding, also if the program prints neither.
        self._stated = self._case.reader().stated & {*step.parameters, *step.derived}
        self._stated -= step.counts.keys()
        self._measurands: dict[tuple[object, ...], tuple[int, Message]] = {}
        between = len(step.nodes) > 1 and step.scope != "each-node" and not facts.emulated
        self._step_bounds = StepBounds(step, self._case, between_nodes=between)
        self._machines: dict[tuple[int, Ceilings], LikeNodes] = {}
        self._bounds: dict[tuple[int, int], ValueBounds] = {}

    @abstractmethod
    def executions(self, folder: str) -> Iterable[Attempt]:
        """Return the finished executions in `folder`."""

    @abstractmethod
    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one execution.

        Args:
            name: the folder of the execution, below ``steps/``.
            hosts: the nodes of the instance; empty for a step without instances.
            attempt: the execution.
        """

    def _add(
        self,
        instance: Instance,
        readings: Sequence[Reading],
        invalid: Message,
        disturbed: Disturbance = UNDISTURBED,
    ) -> None:
        """Add an execution and its readings.

        Args:
            instance: the execution.
            readings: the readings of its output.
            invalid: why the execution is INVALID, or `NOTHING`.
            disturbed: why it was disturbed, and by what.
        """
        step, builder = self._step, self.builder
        nodes, attempt = instance.nodes, instance.attempt
        simulated = self._facts.origin == PREDICTED  # by a machine that is none of its nodes
        several = _node_set(tuple(nodes)) if len(nodes) > 1 or (simulated and nodes) else ""
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
            builder.measurand.append(measurand)
            builder.value.append(NO_VALUE if reading.value is None else reading.value)
            reason = None
            if invalid or contradiction or not reading.valid or reading.node:
                reason = _reason(reading, invalid, contradiction, attempt)
            if reason is None and reading.value is not None:
                bounds = self._bounds_of(measurand, reading, machine)
                reason = bounds.error(reading.metric, reading.value, reading.unit) or None
            builder.reason.append(-1 if reason is None else intern(builder.reasons, reason))
            node = several or self._node(reading, attempt, measured_on)
            builder.node.append(intern(builder.nodes, node))
        builder.execution += [len(builder.executions) - 1] * len(readings)

    def _node(self, reading: Reading, attempt: Attempt, planned: Sequence[str]) -> str:
        """Return the node of a reading: that in the output, of the execution, or else as planned.

        It has the name of the inventory, whatever name it reports.
        """
        named = reading.node if reading.node and is_name(reading.node) else attempt.host
        return self._facts.names.node(planned, named) if named else _node_set(tuple(planned))

    def _machine(self, hosts: Sequence[str]) -> LikeNodes:
        key = len(hosts), self._facts.ceilings(hosts)
        return self._machines.setdefault(key, LikeNodes(len(self._machines), *key))

    def _bounds_of(self, measurand: int, reading: Reading, machine: LikeNodes) -> ValueBounds:
        """Return the bounds of a reading; like nodes share them."""
        key = measurand, machine.number
        if key not in self._bounds:
            self._bounds[key] = self._step_bounds.of(reading, machine.ceilings, machine.nodes)
        return self._bounds[key]

    def _measurand(self, reading: Reading) -> tuple[int, Message]:
        """Return the number of the measurand, and how the output contradicts the plan."""
        key = (reading.benchmark, reading.metric, reading.unit, *reading.parameters.items())
        known = self._measurands.get(key)
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
            known = self._measurands[key] = place, _contradiction(self._planned, reading)
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
    """Return why a reading is INVALID; None for a valid one.

    Args:
        reading: one value of an output.
        invalid: why the execution is INVALID; `NOTHING` if it is valid.
        contradiction: how the output contradicts the plan; `NOTHING` if it does not.
        attempt: the execution.
    """
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


def _contradiction(planned: Mapping[str, Scalar], reading: Reading) -> Message:
    """Return the first parameter that the output has other than planned, or `NOTHING`."""
    for name, printed in reading.parameters.items():
        if name in planned and not _same(planned[name], printed):
            return Message("output-of-plan", name=name, planned=planned[name], printed=printed)
    return NOTHING


def _same(planned: Scalar, printed: Scalar) -> bool:
    if isinstance(planned, (int, float)) and isinstance(printed, (int, float)):
        return planned == printed
    return str(planned) == str(printed)
