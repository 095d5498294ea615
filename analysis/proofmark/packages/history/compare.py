"""Comparison of runs over time and across sites; only like figures are compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median

from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import bad_input
from proofmark.common.message import NOTHING, Message
from proofmark.judge.confidence import (
    CONFIDENCE,
    Interval,
    MaterialOf,
    change_seen,
    material_of,
    ratio,
    ratio_interval,
    too_noisy,
)
from proofmark.judge.shared_traits import build_traits, differences
from proofmark.judge.verdict import Result
from proofmark.software.software import Software

Key = tuple[str, ...]


@dataclass(frozen=True)
class ProgramDifference:
    """A difference of the programs of two runs.

    Attributes:
        what: the trait that differs.
        first, later: its values; empty if the run has none.
    """

    package: str
    what: Message
    first: str
    later: str


def program_differences(first: Software, later: Software) -> tuple[ProgramDifference, ...]:
    """Return each difference of the programs of two runs, package by package.

    Of a package: release, variants, compiler, flags, BLAS, MPI, variables, then the hashes of its
    programs, of its build and of its libraries.
    """
    found: list[ProgramDifference] = []
    for name in dict.fromkeys((*first.packages, *later.packages)):
        before, after = first.packages.get(name), later.packages.get(name)
        if before is None or after is None:
            versions = (each.version if each else "" for each in (before, after))
            found.append(ProgramDifference(name, Message("trait-only"), *versions))
            continue
        for trait, old, new in differences(build_traits(before), build_traits(after)):
            found.append(ProgramDifference(name, trait, old, new))
    return tuple(found)


@dataclass(frozen=True)
class Difference:
    """The change of one figure between two runs.

    Attributes:
        first, later: the medians of the runs, in `unit`.
        change: the ratio later / first minus 1, estimated from all pairs of values
            (`judge.confidence`). If a value is not positive: the ratio of the medians minus 1. None
            if the median of the first run is 0.
        interval: of the change, with its confidence. None if a run has a single value, or a value
            is not positive.
        counts: the number of values of each run.
        visible: the change that would be seen, as a part of the value: with a power of 95 % its
            interval excludes 0. NaN without an interval.
        noise: why a material change would not be seen; `NOTHING` if it would be, or if it is not
            known.
        least: the least change that matters, as a part of the value; NaN without an interval.
        other_programs: whether the runs measured it with other programs.
    """

    key: Key
    first: float
    later: float
    unit: str
    change: float | None
    interval: Interval | None
    counts: tuple[int, int]
    visible: float = math.nan
    noise: Message = NOTHING
    least: float = math.nan
    other_programs: bool = False

    @property
    def material(self) -> bool:
        """Whether the change is no noise, and at least the least one that matters."""
        return self.clear and self.change is not None and abs(self.change) >= self.least

    @property
    def clear(self) -> bool:
        """Whether an interval with a confidence of 95 % or more excludes 0."""
        if self.interval is None or self.interval.confidence < CONFIDENCE:
            return False
        return not self.interval.low <= 0 <= self.interval.high


@dataclass(frozen=True)
class RunComparison:
    """A later run compared with the first; `alone`: the figures of each run without a partner."""

    first: str
    later: str
    differences: tuple[Difference, ...]
    alone: Mapping[str, tuple[Key, ...]]


def compare(
    runs: Mapping[str, Sequence[Result]],
    *,
    nodes: bool = False,
    benchmarks: Benchmarks | None = None,
) -> list[RunComparison]:
    """Compare every later run with the first.

    Like figures have the same case, benchmark, metric, mode, placement, parameters and unit. A
    figure of other programs is compared if each run has it with one set of programs. Values of all
    nodes of a run are put together, unless `nodes` is true.

    Args:
        runs: results by run; the others are compared with the first.
        nodes: whether each node is compared only with itself.
        benchmarks: the cases, with the least change of each metric that matters.

    Raises:
        BadInput: the runs have different origins. Emulated and measured runs are not comparable.
    """
    origins = {run: {result.record.origin for result in results} for run, results in runs.items()}
    if len(set().union(*origins.values())) > 1:
        by_run = "; ".join(f"{run}: {', '.join(sorted(of))}" for run, of in origins.items())
        raise bad_input("RUN", "origin", by_run, "runs of one origin")
    material = material_of(benchmarks)
    (first, before), *others = (
        (run, _figures(results, nodes, material)) for run, results in runs.items()
    )
    return [_compare_two(first, before, later, after) for later, after in others]


@dataclass(frozen=True)
class _Figure:
    values: tuple[float, ...]
    unit: str
    material: float


def _figures(results: Iterable[Result], nodes: bool, material: MaterialOf) -> dict[Key, _Figure]:
    by_key: dict[Key, list[Result]] = {}
    for result in results:
        if result.verdict != "INVALID":
            by_key.setdefault(_key(result, nodes), []).append(result)
    return {
        key: _Figure(
            tuple(chain.from_iterable(result.values for result in alike)),
            alike[0].record.unit,
            material(alike[0].record),
        )
        for key, alike in by_key.items()
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


def _compare_two(
    first: str, before: Mapping[Key, _Figure], later: str, after: Mapping[Key, _Figure]
) -> RunComparison:
    pairs = {key: key for key in before.keys() & after.keys()}
    pairs |= _of_other_programs(before.keys() - pairs.keys(), after.keys() - pairs.keys())
    found = tuple(
        replace(_difference(key, before[key], after[pairs[key]]), other_programs=key != pairs[key])
        for key in sorted(pairs)
    )
    alone = {
        first: tuple(sorted(before.keys() - pairs.keys())),
        later: tuple(sorted(after.keys() - {*pairs.values()})),
    }
    return RunComparison(first, later, found, alone)


_PROGRAMS = 6
"""The place of the digest of the programs in a key."""


def _of_other_programs(before: Set[Key], after: Set[Key]) -> dict[Key, Key]:
    """Return the keys that differ only in the programs, by that of the first run.

    A figure that a run has with several programs has no partner.
    """
    sides: list[dict[Key, list[Key]]] = [{}, {}]
    for keys, side in zip((before, after), sides, strict=True):
        for key in keys:
            side.setdefault((*key[:_PROGRAMS], *key[_PROGRAMS + 1 :]), []).append(key)
    first, later = sides
    return {
        keys[0]: later[rest][0]
        for rest, keys in first.items()
        if len(keys) == 1 and len(later.get(rest, ())) == 1
    }


def _difference(key: Key, before: _Figure, after: _Figure) -> Difference:
    first, later = median(before.values), median(after.values)
    counts = (len(before.values), len(after.values))
    change: float | None
    if min(*before.values, *after.values) > 0:
        change = ratio(before.values, after.values) - 1
        interval = _interval(before, after)
    else:
        change, interval = later / first - 1 if first else None, None
    found = Difference(key, first, later, before.unit, change, interval, counts)
    if interval is None:
        return found
    visible, repeats = change_seen(before.values, after.values, before.material)
    noise = NOTHING if found.clear else too_noisy(visible, before.material, repeats)
    return replace(found, visible=visible, noise=noise, least=before.material)


def _interval(before: _Figure, after: _Figure) -> Interval | None:
    """Return the interval of the change of positive values."""
    ratios = ratio_interval(before.values, after.values)
    return ratios and Interval(ratios.low - 1, ratios.high - 1, ratios.confidence)
