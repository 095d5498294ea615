"""What counts of a run's records, figure by figure, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np
import polars as pl
from numpy.typing import NDArray

from proofmark.records.columns import Execution, Floats, Measurand, Numbers, Record, Records
from proofmark.records.table import table


@dataclass(frozen=True, eq=False)
class Aggregates:
    """The records that count, those of one figure beside each other.

    A figure is what agrees in all but step, repeat and attempt. All arrays but `order` are as long
    as there are figures, in the order in which they were measured first.

    Attributes:
        records: all of them.
        order: numbers of the records that count, figure by figure.
        first, count: where a figure begins in `order`, and how many records it has.
        identity: what is measured, whatever the node: a number below `identities`.
        identities: how many there are.
        node: which one it is of, as the records have it.
        invalid: the place in `order` of its first invalid record; -1 where all are valid.
        median: of its records; NaN of an invalid figure.
        duplicates: figures that one execution gave twice.
        disturbed: how many disturbed repeats of it do not count.
    """

    records: Records
    order: Numbers
    first: Numbers
    count: Numbers
    identity: Numbers
    identities: int
    node: Numbers
    invalid: Numbers
    median: Floats
    duplicates: int
    disturbed: Numbers

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Tell of each figure whether all its records are."""
        return self.invalid < 0

    def members(self, figure: int) -> Numbers:
        """Return the numbers of the records of a figure."""
        first = int(self.first[figure])
        return self.order[first : first + int(self.count[figure])]

    def sound_steps(self) -> set[str]:
        """Return the steps of the records that count and are valid."""
        sound = self.order[self.records.valid[self.order]]
        every = self.records.executions
        return {every[number].step for number in np.unique(self.records.execution[sound])}

    def executions(self, figure: int) -> list[Execution]:
        """Return where a figure was measured."""
        every = self.records.executions
        return [every[number] for number in self.records.execution[self.members(figure)]]

    def values(self, figure: int) -> tuple[float, ...]:
        """Return what counts of a figure: the values of its valid records."""
        members = self.members(figure)
        values = self.records.value[members]
        return tuple(values[self.records.valid[members] & ~np.isnan(values)].tolist())

    def repeats(self, figure: int) -> dict[int, float]:
        """Return the value of each repeat of a figure; of several attempts their median."""
        return by_repeat(self.records[int(each)] for each in self.members(figure))

    @cached_property
    def measurand(self) -> Numbers:
        """The number of each figure's measurand: that of its first record."""
        return self.records.measurand[self.order[self.first]]

    def about(self, wanted: Callable[[Record], bool]) -> NDArray[np.bool_]:
        """Tell of each figure whether it is wanted, by what it is: not by its node or value."""
        execution = Execution("", 1, 1)
        every = range(len(self.records.measurands))
        chosen = [wanted(self.records.record(each, "", execution, None)) for each in every]
        found: NDArray[np.bool_] = np.array(chosen, dtype=bool)[self.measurand]
        return found

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each figure; NaN where one is missing."""
        values = self.records.value[self.order]
        if not len(self):
            return values, values
        return np.minimum.reduceat(values, self.first), np.maximum.reduceat(values, self.first)

    def measuring(self, case: str, metric: str) -> Iterator[Record]:
        """Yield the records of a metric that count."""
        every = self.records.measurands
        chosen = [
            number
            for number, each in enumerate(every)
            if (each.case, each.metric) == (case, metric)
        ]
        for place in np.flatnonzero(np.isin(self.records.measurand[self.order], chosen)):
            yield self.records[int(self.order[place])]

    def table(self) -> pl.DataFrame:
        """Return the valid figures as one tidy table, each with its median."""
        sound = np.flatnonzero(self.valid)
        first = self.order[self.first[sound]]
        return table(
            replace(
                self.records,
                execution=self.records.execution[first],
                measurand=self.records.measurand[first],
                node=self.records.node[first],
                value=self.median[sound],
                reason=self.records.reason[first],
            )
        )

    def record(self, figure: int) -> Record:
        """Return a figure's first record with the median, or its first invalid one."""
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
    """Sort out what counts.

    Executions without anything invalid all count, so that repeating until it fits is of no use;
    where there is none, the last one stands. Of a figure whose repeats are undisturbed in their
    majority, the disturbed ones do not count.
    """
    identity, identities = _identities(records.measurands)
    figure = identity[records.measurand] * len(records.nodes) + records.node
    each = np.sort(figure * max(1, len(records.executions)) + records.execution)
    order = _ordered(records)
    order = order[_counting(records)[records.execution[order]]]
    order, left_out = _undisturbed(records, order, figure)
    own = figure[order]
    _, begins, group = np.unique(own, return_index=True, return_inverse=True)
    rank = np.empty(len(begins), dtype=np.int64)
    rank[np.argsort(begins)] = np.arange(len(begins))
    by_figure = np.argsort(rank[group], kind="stable")
    order, group = order[by_figure], rank[group][by_figure]
    count = np.bincount(group, minlength=len(begins)).astype(np.int64)
    first = np.cumsum(count) - count
    invalid = np.full(len(first), -1, dtype=np.int64)
    wrong = np.flatnonzero(~records.valid[order])[::-1]
    invalid[group[wrong]] = wrong
    return Aggregates(
        records=records,
        order=order,
        first=first,
        count=count,
        identity=identity[records.measurand[order[first]]],
        identities=identities,
        node=records.node[order[first]],
        invalid=invalid,
        median=_medians(records.value[order], group, first, count, invalid),
        duplicates=int((np.diff(each) == 0).sum()),
        disturbed=left_out[order[first]],
    )


def by_repeat(records: Iterable[Record]) -> dict[int, float]:
    """Return the median of the valid values of each repeat."""
    values: dict[int, list[float]] = {}
    for record in records:
        if record.valid and record.value is not None:
            values.setdefault(record.repeat, []).append(record.value)
    return {repeat: median(found) for repeat, found in values.items()}


def _undisturbed(records: Records, order: Numbers, figure: Numbers) -> tuple[Numbers, Numbers]:
    """Leave out disturbed records where most of their figure's are undisturbed.

    Args:
        records: all of them.
        order: numbers of the records that count.
        figure: what each record is of, by its number in `records`.

    Returns:
        The rest of `order`, and of each record how many of its figure were left out.
    """
    counts = np.zeros(len(figure), dtype=np.int64)
    texts = {each.disturbed for each in records.executions} - {""}
    reasons = [number for number, text in enumerate(records.reasons) if text in texts]
    if not reasons:
        return order, counts
    bad = np.isin(records.reason[order], reasons)
    _, group = np.unique(figure[order], return_inverse=True)
    every, lost = np.bincount(group), np.bincount(group, weights=bad)
    left_out = np.where(2 * lost < every, lost, 0)[group]
    counts[order] = left_out
    return order[~(bad & (left_out > 0))], counts


def _identities(measurands: Sequence[Measurand]) -> tuple[Numbers, int]:
    """Number what is measured; the unit, the system and its partition tell no figures apart."""
    names = ("case", "benchmark", "metric", "origin", "mode", "placement", "environment_hash")
    known: dict[tuple[str, ...], int] = {}
    numbers = [
        known.setdefault((*(getattr(each, name) for name in names), each.parameters), len(known))
        for each in measurands
    ]
    return np.asarray(numbers, dtype=np.int64), len(known)


def _ordered(records: Records) -> Numbers:
    """Return the numbers of the records by step and attempt, else in their order."""
    executions = records.executions
    by_name = sorted(range(len(executions)), key=lambda each: executions[each][:2])
    rank = np.empty(len(executions), dtype=np.int64)
    rank[by_name] = np.arange(len(executions))
    return np.argsort(rank[records.execution], kind="stable")


def _counting(records: Records) -> NDArray[np.bool_]:
    """Tell of each execution whether it counts."""
    dirty = np.zeros(len(records.executions), dtype=bool)
    dirty[records.execution[~records.valid]] = True
    counts = np.ones(len(records.executions), dtype=bool)
    if len({each.step for each in records.executions}) == len(records.executions):
        return counts  # no step was run again
    by_step: dict[str, dict[int, list[int]]] = {}
    for number, execution in enumerate(records.executions):
        by_step.setdefault(execution.step, {}).setdefault(execution.attempt, []).append(number)
    for attempts in by_step.values():
        if len(attempts) < 2:
            continue
        clean = [key for key, own in attempts.items() if not dirty[own].any()]
        kept = clean or [max(attempts)]
        for attempt, own in attempts.items():
            counts[own] = attempt in kept
    return counts


def _medians(
    values: Floats, group: Numbers, first: Numbers, count: Numbers, invalid: Numbers
) -> Floats:
    by_value = np.argsort(values)
    ordered = values[by_value[np.argsort(group[by_value], kind="stable")]]
    last = len(ordered) - 1 if len(ordered) else 0
    low, high = first + (count - 1) // 2, first + count // 2
    middle: Floats = (ordered[low] + ordered[np.minimum(high, last)]) / 2
    middle = np.where(low == high, ordered[low], middle)
    return np.where(invalid < 0, middle, np.nan)
