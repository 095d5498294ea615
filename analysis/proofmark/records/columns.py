"""Records in columns: the form in which the records of a run are read, judged and stored.

The records of two nodes differ in little more than their values. So each measurand is stored once,
and each record refers to it by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from proofmark.cases.vocabulary import ParameterValues, Scalar
from proofmark.common.message import NOTHING, Message
from proofmark.runs.samples import Shares
from proofmark.site.partition import PREDICTED

EMULATED = "emulated"
"""The origin of records of virtual nodes: the measured speed is that of the machine below them."""
VIRTUAL = (EMULATED, PREDICTED)
"""The origins of records that are no speed of the hardware of their nodes."""
Word = TypeVar("Word")
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Record:
    """One measured value; `attempt` numbers the executions of a step from 1."""

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
    parameters: ParameterValues
    environment_hash: str
    valid: bool
    reason: Message


class Measurand(NamedTuple):
    """The columns of a record that are the same on every node and in every repeat.

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

    Attributes:
        step: id of the step, with the folder of the instance if there is one.
        repeat: number of the planned repeat, from 1.
        steal: the share of its CPU time that a hypervisor withheld; NaN if it is not known.
        others: the share of the CPU time that other processes used; NaN if it is not known.
        disturbed: the reason if the machine was disturbed during the execution, else empty.
        unsteady: the reason if the rate of the machine changed during the execution, else empty.
        start: its start in seconds since 1970; NaN if it is not known.
        ended: when it ended by the clock of its node, in seconds since 1970; NaN if not known.
        seconds: how long it ran; NaN if it is not known.
        disturbers: what took CPU time from its ranks; empty if no sample shows it.
    """

    step: str
    attempt: int
    repeat: int
    steal: float = float("nan")
    others: float = float("nan")
    disturbed: Message = NOTHING
    unsteady: Message = NOTHING
    start: float = float("nan")
    ended: float = float("nan")
    seconds: float = float("nan")
    disturbers: Shares = ()


@dataclass
class RecordBuilder:
    """Collects records while they are read; the lists of numbers have one entry per record.

    `execution`, `measurand`, `node` and `reason` are indexes into `executions`, `measurands`,
    `nodes` and `reasons`. The reason -1 is that of a valid record.
    """

    executions: list[Execution] = field(default_factory=list)
    measurands: dict[Measurand, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    reasons: dict[Message, int] = field(default_factory=dict)
    execution: list[int] = field(default_factory=list)
    measurand: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    reason: list[int] = field(default_factory=list)

    def add(
        self, execution: int, measurand: int, node: str, value: float | None, why: Message | None
    ) -> None:
        """Add a record; `why` it is INVALID is None for a valid one."""
        self.execution.append(execution)
        self.measurand.append(measurand)
        self.node.append(intern(self.nodes, node))
        self.value.append(NO_VALUE if value is None else value)
        self.reason.append(-1 if why is None else intern(self.reasons, why))

    def records(self, run: str = "") -> Records:
        """Return the collected records of a run."""
        return Records(
            run,
            self.executions,
            list(self.measurands),
            list(self.nodes),
            list(self.reasons),
            execution=_numbers(self.execution),
            measurand=_numbers(self.measurand),
            node=_numbers(self.node),
            value=np.asarray(self.value, dtype=np.float64),
            reason=_numbers(self.reason),
        )


NUMBERS = ("execution", "measurand", "node", "value", "reason")
"""The columns of numbers."""
NO_VALUE = float("nan")
"""The value of a record without a value."""


def intern(numbers: dict[Word, int], word: Word) -> int:
    """Return the number of `word` in `numbers`; a new word gets the next number."""
    return numbers.setdefault(word, len(numbers))


@dataclass(frozen=True, eq=False)
class Records(Sequence[Record]):
    """The records of a run: a sequence that makes each `Record` when it is accessed.

    Attributes:
        executions, measurands, nodes, reasons: the entries that the numbers below refer to.
        reason: the number of the reason why a record is INVALID; -1 for a valid record.
    """

    run: str
    executions: Sequence[Execution]
    measurands: Sequence[Measurand]
    nodes: Sequence[str]
    reasons: Sequence[Message]
    execution: Numbers
    measurand: Numbers
    node: Numbers
    value: Floats
    reason: Numbers

    @classmethod
    def joined(cls, run: str, parts: Iterable[Records]) -> Records:
        """Return the records of `parts`, in this order."""
        whole = RecordBuilder()
        numbers = [whole.records().numbers]
        for part in parts:
            # Index -1, the reason of valid records, is the last entry: -1 again.
            reasons = np.append(_merged(whole.reasons, part.reasons), -1)
            renumbered = {
                "execution": part.execution + len(whole.executions),
                "measurand": _merged(whole.measurands, part.measurands)[part.measurand],
                "node": _merged(whole.nodes, part.nodes)[part.node],
                "reason": reasons[part.reason],
            }
            numbers.append({**part.numbers, **renumbered})
            whole.executions += part.executions
        columns: dict[str, Any] = {
            name: np.concatenate([each[name] for each in numbers]) for name in numbers[0]
        }
        return replace(whole.records(run), **columns)

    @property
    def numbers(self) -> dict[str, NDArray[Any]]:
        """The columns of numbers by their names."""
        return {name: getattr(self, name) for name in NUMBERS}

    @classmethod
    def of(cls, records: Sequence[Record], run: str = "") -> Records:
        """Return `records` in columns."""
        builder = RecordBuilder()
        executions: dict[Execution, int] = {}
        for record in records:
            measurand = Measurand(
                **{name: getattr(record, name) for name in Measurand._fields[:-1]},
                parameters=json.dumps(dict(record.parameters), sort_keys=True),
            )
            execution = Execution(record.step, record.attempt, record.repeat)
            numbers = intern(executions, execution), intern(builder.measurands, measurand)
            why = None if record.valid else record.reason
            builder.add(*numbers, record.node, record.value, why)
        builder.executions += executions
        return builder.records(run or (records[0].run if records else ""))

    @cached_property
    def valid(self) -> Mask:
        """Mask of the valid records."""
        return self.reason < 0

    def __len__(self) -> int:
        return len(self.value)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        value, reason = float(self.value[index]), int(self.reason[index])
        execution = self.executions[self.execution[index]]
        return self.record(
            int(self.measurand[index]),
            self.nodes[self.node[index]],
            execution,
            None if value != value else value,
            NOTHING if reason < 0 else self.reasons[reason],
            valid=reason < 0,
        )

    def record(
        self,
        measurand: int,
        node: str,
        execution: Execution,
        value: float | None,
        reason: Message = NOTHING,
        *,
        valid: bool = True,
    ) -> Record:
        """Return a record of the measurand with the number `measurand`."""
        about = self.measurands[measurand]
        return Record(
            self.run,
            execution.step,
            execution.attempt,
            about.system,
            about.partition,
            node,
            about.origin,
            about.case,
            about.benchmark,
            about.metric,
            value,
            about.unit,
            execution.repeat,
            about.mode,
            about.placement,
            self._parameters[measurand],
            about.environment_hash,
            valid,
            reason,
        )

    def of_measurand(self, measurand: int) -> Record:
        """Return a valid record of a measurand without node, step and value."""
        return self.record(measurand, "", Execution("", 1, 1), None)

    @cached_property
    def _parameters(self) -> list[dict[str, Scalar]]:
        return [json.loads(each.parameters) for each in self.measurands]


def _merged(numbers: dict[Word, int], words: Iterable[Word]) -> Numbers:
    return _numbers([intern(numbers, word) for word in words])


def _numbers(values: Sequence[int]) -> Numbers:
    return np.asarray(values, dtype=np.int64)
