"""The records of a run that count, grouped by figure, in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nextafter
from statistics import median

import numpy as np

from proofmark.common.grouping import gathered
from proofmark.common.nodesets import hosts_of
from proofmark.records.columns import Execution, Floats, Mask, Numbers, Record, Records
from proofmark.records.disturbance import DISTURBED, RATE_CHANGED

HALF = 0.5
"""Disturbed repeats are left out up to this share of the repeats. More are a property of the node:
the figure is INVALID, as if all were disturbed (docs/design/validity.md)."""
AUTOMATIC = 3
"""The number of executions that a job gives a disturbed step. More are added by a site."""
UNSTEADY = 2 / 3
"""A figure is INVALID if this share of its repeats is unsteady (docs/design/validity.md)."""


Measured = Sequence[tuple[Execution, float]]
"""Executions of a figure, each with its value."""


@dataclass(frozen=True, eq=False)
class Aggregates:
    """The records that count, grouped by figure.

    Records of one figure agree in everything except step, repeat and attempt. All arrays but
    `order` have the shape (figures,), in the order of the first measurement.

    Attributes:
        identity: the number of the measured quantity on any node.
        invalid: the place in `order` of the first invalid record; -1 if all are valid.
        duplicates: the number of figures that one execution gave twice.
    """

    records: Records
    order: Numbers
    first: Numbers
    count: Numbers
    identity: Numbers
    node: Numbers
    invalid: Numbers
    median: Floats
    duplicates: int
    disturbed: Numbers

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def valid(self) -> Mask:
        """Mask of the figures of which all records are valid."""
        return self.invalid < 0

    @cached_property
    def single_run(self) -> Mask:
        """Mask of the valid figures with one measurement: their noise is not known."""
        mask: Mask = self.valid & (self.count == 1)
        return mask

    def members(self, figure: int) -> Numbers:
        """Return the numbers of the records of a figure."""
        first = int(self.first[figure])
        return self.order[first : first + int(self.count[figure])]

    def sound_steps(self) -> set[str]:
        """Return the steps of the records that count and are valid."""
        valid = self.order[self.records.valid[self.order]]
        executions = self.records.executions
        return {executions[number].step for number in np.unique(self.records.execution[valid])}

    def executions(self, figure: int) -> list[Execution]:
        """Return the executions that measured a figure."""
        executions = self.records.executions
        return [executions[number] for number in self.records.execution[self.members(figure)]]

    def steps(self, figure: int) -> tuple[str, ...]:
        """Return the steps that measured a figure, without repetition."""
        return tuple(dict.fromkeys(each.step for each in self.executions(figure)))

    def by_execution(self, figure: int) -> list[tuple[Execution, float]]:
        """Return the executions that measured a figure, each with the median of its values."""
        found: dict[int, list[float]] = {}
        for member in self.members(figure).tolist():
            value = float(self.records.value[member])
            if self.records.valid[member] and not np.isnan(value):
                found.setdefault(int(self.records.execution[member]), []).append(value)
        executions = self.records.executions
        return [(executions[number], median(values)) for number, values in found.items()]

    def undisturbed(self, figure: int) -> dict[str, float]:
        """Return the values of the undisturbed executions of a figure, by ``<step>#<attempt>``."""
        return of_undisturbed(self.by_execution(figure))

    def node_of(self, figure: int) -> str:
        """Return the node, or set of nodes, of a figure."""
        return self.records.nodes[int(self.node[figure])]

    def alone(self, figure: int) -> bool:
        """Return whether one node measured a figure, without another."""
        return len(hosts_of(self.node_of(figure))) == 1

    def values(self, figure: int) -> tuple[float, ...]:
        """Return the values of the valid records of a figure."""
        members = self.members(figure)
        if self.invalid[figure] >= 0:
            members = members[self.records.valid[members]]
        return tuple(value for value in self.records.value[members].tolist() if value == value)

    @cached_property
    def run_again(self) -> Mask:
        """Mask of the figures of steps that were executed more than once."""
        executions = self.records.executions
        times = Counter(each.step for each in executions)
        again = np.array([times[each.step] > 1 for each in executions], dtype=bool)
        return self.having(again[self.records.execution[self.order]])

    def having(self, wanted: Mask) -> Mask:
        """Return the mask of the figures with a wanted record; `wanted` is a mask of `order`."""
        return np.logical_or.reduceat(wanted, self.first) if len(self) else wanted

    def repeats(self, figure: int) -> dict[int, float]:
        """Return the value of each repeat of a figure: the median of its attempts."""
        return by_repeat(self.records[int(number)] for number in self.members(figure))

    @cached_property
    def measurand(self) -> Numbers:
        """The number of the measurand of each figure's first record."""
        return self.records.measurand[self.order[self.first]]

    def about(self, wanted: Callable[[Record], bool]) -> Mask:
        """Return the mask of the figures for which `wanted` is true.

        `wanted` gets a record without node, execution and value.
        """
        numbers = range(len(self.records.measurands))
        chosen = [wanted(self.records.of_measurand(number)) for number in numbers]
        mask: Mask = np.array(chosen, dtype=bool)[self.measurand]
        return mask

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each figure; NaN if a value is missing."""
        values = self.records.value[self.order]
        if not len(self):
            return values, values
        return np.minimum.reduceat(values, self.first), np.maximum.reduceat(values, self.first)

    def measuring(self, case: str, metric: str) -> Iterator[Record]:
        """Yield the records of a metric that count."""
        chosen = [
            number
            for number, measurand in enumerate(self.records.measurands)
            if (measurand.case, measurand.metric) == (case, metric)
        ]
        for place in np.flatnonzero(np.isin(self.records.measurand[self.order], chosen)):
            yield self.records[int(self.order[place])]

    def record(self, figure: int) -> Record:
        """Return the first invalid record of a figure, else the first with the median as value."""
        if self.invalid[figure] >= 0:
            return self.records[int(self.order[self.invalid[figure]])]
        first = int(self.order[self.first[figure]])
        return self.records.record(
            int(self.records.measurand[first]),
            self.records.nodes[self.records.node[first]],
            self.records.executions[self.records.execution[first]],
            float(self.median[figure]),
        )


def aggregate(records: Records) -> Aggregates:
    """Return the records that count, grouped by figure.

    All executions of a step without an invalid record count: a repetition cannot replace a bad
    value. If there is none, only the last execution counts. Disturbed repeats of a figure do not
    count unless they are most of its repeats. If the rate of the machine changed in some of these
    repeats, they do not count if more than a third of the repeats are steady.
    """
    names = ("case", "benchmark", "metric", "origin", "mode", "placement", "environment_hash")
    known: dict[tuple[str, ...], int] = {}
    numbers = [
        known.setdefault((*(getattr(one, name) for name in names), one.parameters), len(known))
        for one in records.measurands
    ]
    identity = np.asarray(numbers, dtype=np.int64)
    figure = identity[records.measurand] * len(records.nodes) + records.node
    by_execution = np.sort(figure * max(1, len(records.executions)) + records.execution)
    executions = records.executions
    by_name = sorted(range(len(executions)), key=lambda number: executions[number][:2])
    rank = np.empty(len(executions), dtype=np.int64)
    rank[by_name] = np.arange(len(executions))
    order = np.argsort(rank[records.execution], kind="stable")
    order = order[counting(records)[records.execution[order]]]
    order, disturbed = _undisturbed(records, order, figure, DISTURBED, nextafter(HALF, 1))
    order, unsteady = _undisturbed(records, order, figure, RATE_CHANGED, UNSTEADY)
    left_out = disturbed + unsteady
    _, begins, group = np.unique(figure[order], return_index=True, return_inverse=True)
    rank = np.empty(len(begins), dtype=np.int64)
    rank[np.argsort(begins)] = np.arange(len(begins))
    by_figure = np.argsort(rank[group], kind="stable")
    order, group = order[by_figure], rank[group][by_figure]
    count = np.bincount(group, minlength=len(begins)).astype(np.int64)
    first = np.cumsum(count) - count
    invalid = np.full(len(first), -1, dtype=np.int64)
    invalid_places = np.flatnonzero(~records.valid[order])[::-1]
    invalid[group[invalid_places]] = invalid_places
    values = records.value[order]
    by_value = np.argsort(values)
    ordered = values[by_value[np.argsort(group[by_value], kind="stable")]]
    low, high = first + (count - 1) // 2, first + count // 2
    with np.errstate(over="ignore"):  # a value may be as large as a float can be
        middle: Floats = (ordered[low] + ordered[high]) / 2
    middle = np.where(low == high, ordered[low], middle)
    return Aggregates(
        records=records,
        order=order,
        first=first,
        count=count,
        identity=identity[records.measurand[order[first]]],
        node=records.node[order[first]],
        invalid=invalid,
        median=np.where(invalid < 0, middle, np.nan),
        duplicates=int((np.diff(by_execution) == 0).sum()),
        disturbed=left_out[order[first]],
    )


def of_undisturbed(executions: Iterable[tuple[Execution, float]]) -> dict[str, float]:
    """Return the values of the undisturbed executions, by ``<step>#<attempt>``."""
    return {
        f"{about.step}#{about.attempt}": value
        for about, value in executions
        if not about.disturbed and not about.unsteady
    }


def by_repeat(records: Iterable[Record]) -> dict[int, float]:
    """Return the median of the valid values of each repeat."""
    by_number = gathered(
        (record.repeat, record.value)
        for record in records
        if record.valid and record.value is not None
    )
    return {repeat: median(values) for repeat, values in by_number.items()}


def _undisturbed(
    records: Records, order: Numbers, figure: Numbers, code: str, below: float
) -> tuple[Numbers, Numbers]:
    """Leave out the disturbed records of figures of which enough records are undisturbed.

    Args:
        figure: the number of the figure of each record; shape (records,).

    Returns:
        The rest of `order`, and for each record the number of records of its figure that were left
        out.
    """
    counts = np.zeros(len(figure), dtype=np.int64)
    reasons = [number for number, each in enumerate(records.reasons) if each.code == code]
    if not reasons:
        return order, counts
    bad = np.isin(records.reason[order], reasons)
    _, group = np.unique(figure[order], return_inverse=True)
    all_of, bad_of = np.bincount(group), np.bincount(group, weights=bad)
    left_out = np.where(bad_of < below * all_of, bad_of, 0)[group]
    counts[order] = left_out
    return order[~(bad & (left_out > 0))], counts


def counting(records: Records) -> Mask:
    """Return the mask of the executions that count."""
    dirty, broken = np.zeros((2, len(records.executions)), dtype=bool)
    dirty[records.execution[~records.valid]] = True
    broken[records.execution[~records.valid & ~disturbed_records(records)]] = True
    counts = np.ones(len(records.executions), dtype=bool)
    if len({execution.step for execution in records.executions}) == len(records.executions):
        return counts  # no step was run again
    by_step: dict[str, dict[int, list[int]]] = {}
    for number, execution in enumerate(records.executions):
        by_step.setdefault(execution.step, {}).setdefault(execution.attempt, []).append(number)
    for attempts in by_step.values():
        if len(attempts) < 2:
            continue
        clean = [attempt for attempt, numbers in attempts.items() if not dirty[numbers].any()]
        kept = clean or [max(attempts)]
        left_out = [
            attempt
            for attempt, numbers in attempts.items()
            if dirty[numbers].any() and not broken[numbers].any()
        ]
        if len(left_out) >= AUTOMATIC and len(left_out) > HALF * len(attempts):
            kept = [*clean, *left_out]
        for attempt, numbers in attempts.items():
            counts[numbers] = attempt in kept
    return counts


def disturbed_records(records: Records) -> Mask:
    """Return the mask of the records that are INVALID because something disturbed them."""
    reasons = [number for number, each in enumerate(records.reasons) if each.code == DISTURBED]
    mask: Mask = np.isin(records.reason, reasons)
    return mask
