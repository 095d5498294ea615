"""Records in columns: what a run of thousands of nodes is read into, judged from and kept as.

A node's figures differ from its fellows' in hardly more than their values. So what is measured is
noted once, and each record refers to it by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

EMULATED = "emulated"
"""The origin of records of virtual nodes: their speed is that of the machine below them."""
Scalar = str | int | float
Word = TypeVar("Word")
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Record:
    """One number (contract, "Record"); `attempt` counts the times its step was run, from 1."""

    run: str
    step: str
    attempt: int
    system: str
    partition: str
    node: str
    origin: str
    case: str
    benchmark: str
    metric: str
    value: float | None
    unit: str
    repeat: int
    mode: str
    placement: str
    parameters: Mapping[str, Scalar]
    environment_hash: str
    valid: bool
    reason: str


class Measurand(NamedTuple):
    """What is measured: all of a record that is the same on every node and in every repeat.

    `parameters` is JSON with sorted keys.
    """

    system: str
    partition: str
    origin: str
    case: str
    benchmark: str
    metric: str
    unit: str
    mode: str
    placement: str
    environment_hash: str
    parameters: str


class Execution(NamedTuple):
    """One execution of a step.

    `steal` is the share of its CPU time that a hypervisor withheld, `others` the share that other
    processes used; NaN where that is not known.
    `disturbed` is the reason if the machine was disturbed during the execution, else empty.
    """

    step: str
    attempt: int
    repeat: int
    steal: float = float("nan")
    others: float = float("nan")
    disturbed: str = ""


@dataclass
class RecordBuilder:
    """Records while they are being read; the lists of numbers are as long as there are records.

    `execution` counts `executions`; a `reason` of -1 is none: the record is valid.
    """

    executions: list[Execution] = field(default_factory=list)
    measurands: dict[Measurand, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    execution: list[int] = field(default_factory=list)
    measurand: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    reason: list[int] = field(default_factory=list)

    def part(self) -> RecordBatch:
        """Return them as columns."""
        return RecordBatch(
            [list(column) for column in zip(*self.executions, strict=True)],
            list(self.measurands),
            list(self.nodes),
            list(self.reasons),
            _numbers(self.execution),
            _numbers(self.measurand),
            _numbers(self.node),
            np.asarray(self.value, dtype=np.float64),
            _numbers(self.reason),
        )


class RecordBatch(NamedTuple):
    """Some of a run's records, as one process hands them to another; as `Records` has them.

    `executions` are columns, one for each field of `Execution`; none where there is no execution.
    """

    executions: list[list[Any]]
    measurands: list[Measurand]
    nodes: list[str]
    reasons: list[str]
    execution: Numbers
    measurand: Numbers
    node: Numbers
    value: Floats
    reason: Numbers


NOTHING = float("nan")
"""Stands where there is no value."""


def intern(known: dict[Word, int], each: Word) -> int:
    """Return the number of `each` in `known`, where a new one gets the next."""
    return known.setdefault(each, len(known))


@dataclass(frozen=True, eq=False)
class Records(Sequence[Record]):
    """The records of a run; as a sequence they are made one by one when they are asked for.

    Attributes:
        run: its id.
        executions, measurands, nodes, reasons: what the numbers below refer to.
        execution, measurand, node: of each record.
        value: NaN where there is none.
        reason: why it is INVALID; -1 of a valid record.
    """

    run: str
    executions: Sequence[Execution]
    measurands: Sequence[Measurand]
    nodes: Sequence[str]
    reasons: Sequence[str]
    execution: Numbers
    measurand: Numbers
    node: Numbers
    value: Floats
    reason: Numbers

    @classmethod
    def joined(cls, run: str, parts: Iterable[RecordBatch]) -> Records:
        """Return what several readers read, one part behind the other."""
        executions: list[Execution] = []
        measurands: dict[Measurand, int] = {}
        nodes: dict[str, int] = {}
        reasons: dict[str, int] = {}
        placed: list[RecordBatch] = [RecordBuilder().part()]
        for part in parts:
            why = np.append(_merged(reasons, part.reasons), -1)  # the last: of valid records
            placed.append(
                part._replace(
                    execution=part.execution + len(executions),
                    measurand=_merged(measurands, part.measurands)[part.measurand],
                    node=_merged(nodes, part.nodes)[part.node],
                    reason=why[part.reason],
                )
            )
            executions += map(Execution, *part.executions) if part.executions else ()
        return cls(
            run,
            executions,
            list(measurands),
            list(nodes),
            list(reasons),
            np.concatenate([part.execution for part in placed]),
            np.concatenate([part.measurand for part in placed]),
            np.concatenate([part.node for part in placed]),
            np.concatenate([part.value for part in placed]),
            np.concatenate([part.reason for part in placed]),
        )

    @classmethod
    def of(cls, records: Sequence[Record], run: str = "") -> Records:
        """Return `records` in columns."""
        draft = RecordBuilder()
        executions: dict[Execution, int] = {}
        for record in records:
            measurand = Measurand(
                **{name: getattr(record, name) for name in Measurand._fields[:-1]},
                parameters=json.dumps(dict(record.parameters), sort_keys=True),
            )
            execution = Execution(record.step, record.attempt, record.repeat)
            draft.execution.append(intern(executions, execution))
            draft.measurand.append(intern(draft.measurands, measurand))
            draft.node.append(intern(draft.nodes, record.node))
            draft.value.append(NOTHING if record.value is None else record.value)
            draft.reason.append(-1 if record.valid else intern(draft.reasons, record.reason))
        draft.executions += executions
        return cls.joined(run or (records[0].run if records else ""), [draft.part()])

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Tell of each record whether it is."""
        return self.reason < 0

    def __len__(self) -> int:
        return len(self.value)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[intern] for intern in range(*index.indices(len(self)))]
        value, reason = float(self.value[index]), int(self.reason[index])
        execution = self.executions[self.execution[index]]
        return self.record(
            int(self.measurand[index]),
            self.nodes[self.node[index]],
            execution,
            None if value != value else value,
            "" if reason < 0 else self.reasons[reason],
            valid=reason < 0,
        )

    def record(
        self,
        measurand: int,
        node: str,
        execution: Execution,
        value: float | None,
        reason: str = "",
        *,
        valid: bool = True,
    ) -> Record:
        """Make a record of one measurand."""
        what = self.measurands[measurand]
        return Record(
            self.run,
            execution.step,
            execution.attempt,
            what.system,
            what.partition,
            node,
            what.origin,
            what.case,
            what.benchmark,
            what.metric,
            value,
            what.unit,
            execution.repeat,
            what.mode,
            what.placement,
            self._parameters[measurand],
            what.environment_hash,
            valid,
            reason,
        )

    @cached_property
    def _parameters(self) -> list[dict[str, Scalar]]:
        return [json.loads(each.parameters) for each in self.measurands]


def _merged(every: dict[Word, int], own: Iterable[Word]) -> Numbers:
    """Return what number each of `own` has in `every`, which grows by those that are new."""
    return _numbers([intern(every, each) for each in own])


def _numbers(own: Sequence[int]) -> Numbers:
    return np.asarray(own, dtype=np.int64)
