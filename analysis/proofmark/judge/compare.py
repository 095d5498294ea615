"""Runs held against each other: over time, and across sites. Only like is compared with like."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from proofmark.common.errors import bad_input
from proofmark.judge.intervals import CONFIDENCE, Range
from proofmark.judge.verdict import Result

_DRAWS, _SEED = 2000, 50100

Key = tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """One figure of two runs: later ÷ first − 1 of the medians, with its 95 % interval."""

    key: Key
    first: float
    later: float
    unit: str
    change: float
    interval: Range | None
    counts: tuple[int, int]

    @property
    def clear(self) -> bool:
        """Return whether the interval leaves out no change; never of single measurements."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


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
    return Difference(
        key, before, after, base.unit, after / before - 1, _interval(base, own), counts
    )


def _interval(base: _Figure, own: _Figure) -> Range | None:
    """Return the percentile-bootstrap interval of the change; both sides are drawn, with a seed."""
    if min(len(base.values), len(own.values)) < 2:
        return None
    dice = np.random.default_rng(_SEED)
    below, above = (
        np.median(dice.choice(np.asarray(each.values), (_DRAWS, len(each.values))), axis=1)
        for each in (base, own)
    )
    if (below == 0).any():
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(above / below - 1, [tail, 1 - tail])
    return float(low), float(high)
