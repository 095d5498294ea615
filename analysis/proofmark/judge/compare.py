"""Runs held against each other: over time, and across sites. Only like is compared with like."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from proofmark.common.errors import bad_input
from proofmark.judge.intervals import Interval
from proofmark.judge.shift import ratio, ratio_interval
from proofmark.judge.verdict import Result

Key = tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """The change of one figure between two runs.

    Attributes:
        first, later: the medians of the runs, in `unit`.
        change: the ratio later / first, estimated from all pairs of values (`judge.shift`), minus
            1. If a value is not positive: the ratio of the medians minus 1.
        interval: of the change, with its confidence. None if a run has a single value, or a value
            is not positive.
        counts: the number of values of each run.
    """

    key: Key
    first: float
    later: float
    unit: str
    change: float
    interval: Interval | None
    counts: tuple[int, int]

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0; False for single measurements."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


@dataclass(frozen=True)
class Comparison:
    """A later run held against the first; `alone` are figures without a partner, by run."""

    first: str
    later: str
    differences: tuple[Difference, ...]
    alone: Mapping[str, tuple[Key, ...]]


def compare(runs: Mapping[str, Sequence[Result]], *, nodes: bool = False) -> list[Comparison]:
    """Hold every later run against the first.

    Like figures have the same case, benchmark, metric, mode, placement, parameters and environment.
    The nodes of a run are taken together, unless `nodes` asks for the same node.

    Args:
        runs: results by run, the first is the measure.
        nodes: whether figures of different nodes are different figures.

    Raises:
        BadInput: the runs have different origins: what was emulated is no measure of a machine.
    """
    origins = {run: {result.record.origin for result in results} for run, results in runs.items()}
    every = sorted(set().union(*origins.values()))
    if len(every) > 1:
        found = "; ".join(f"{run}: {', '.join(sorted(own))}" for run, own in origins.items())
        raise bad_input("RUN", "origin", found, "runs of one origin")
    (first, base), *others = ((run, _figures(results, nodes)) for run, results in runs.items())
    return [_against(first, base, later, own) for later, own in others]


@dataclass(frozen=True)
class _Figure:
    values: tuple[float, ...]
    unit: str


def _figures(results: Iterable[Result], nodes: bool) -> dict[Key, _Figure]:
    found: dict[Key, list[Result]] = {}
    for result in results:
        if result.verdict != "INVALID":
            found.setdefault(_key(result, nodes), []).append(result)
    return {
        key: _Figure(tuple(v for each in alike for v in each.values), alike[0].record.unit)
        for key, alike in found.items()
    }


def _key(result: Result, nodes: bool) -> Key:
    record = result.record
    return (
        record.case,
        record.benchmark,
        record.metric,
        record.mode,
        record.placement,
        json.dumps(dict(record.parameters), sort_keys=True),
        record.environment_hash,
        record.unit,
        record.node if nodes else "",
    )


def _against(
    first: str, base: Mapping[Key, _Figure], later: str, own: Mapping[Key, _Figure]
) -> Comparison:
    differences = tuple(
        _difference(key, base[key], own[key])
        for key in sorted(base.keys() & own.keys())
        if median(base[key].values)
    )
    alone = {
        first: tuple(sorted(base.keys() - own.keys())),
        later: tuple(sorted(own.keys() - base.keys())),
    }
    return Comparison(first, later, differences, alone)


def _difference(key: Key, base: _Figure, own: _Figure) -> Difference:
    before, after = median(base.values), median(own.values)
    counts = (len(base.values), len(own.values))
    if min(*base.values, *own.values) > 0:
        change, interval = ratio(base.values, own.values) - 1, _interval(base, own)
    else:
        change, interval = after / before - 1, None
    return Difference(key, before, after, base.unit, change, interval, counts)


def _interval(base: _Figure, own: _Figure) -> Interval | None:
    """Return the interval of the change of positive values."""
    ratios = ratio_interval(base.values, own.values)
    return ratios and Interval(ratios.low - 1, ratios.high - 1, ratios.confidence)
