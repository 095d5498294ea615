"""What a figure is drawn from: the valid results of a run, sorted into lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from proofmark.common.nodesets import folded
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.verdict import Results
from proofmark.records.columns import Record
from proofmark.report.text import visible

Scalar = str | int | float


@dataclass(frozen=True)
class Sample:
    """One figure of the run: the median of its repeats (in `record`), its least and greatest."""

    record: Record
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PlotPoint:
    """One place of a line: the median over nodes at `x`, and the range over nodes and repeats."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """Spots in the order of x; `label` says only what tells the line from its fellows."""

    label: str
    spots: tuple[PlotPoint, ...]


MANY = 64
"""Nodes of which each is a point of its own; more of them are one point with their range."""


def samples_of(results: Results, wanted: Callable[[Record], bool] = lambda _: True) -> list[Sample]:
    """Return what can be drawn: INVALID measures something else than it claims."""
    return list(_samples(results.standing, wanted))


def _samples(standing: Aggregates, wanted: Callable[[Record], bool]) -> Iterator[Sample]:
    """Yield the points of the figures that are wanted; many like nodes are one."""
    chosen = np.flatnonzero(standing.about(wanted) & standing.valid)
    alike: dict[int, list[int]] = {}
    for figure, what in zip(chosen.tolist(), standing.measurand[chosen].tolist(), strict=True):
        alike.setdefault(what, []).append(figure)
    low, high = standing.ranges
    names: dict[bytes, str] = {}
    for figures in alike.values():
        if len(figures) <= MANY:
            for figure in figures:
                record = standing.record(figure)
                yield Sample(
                    record, float(standing.median[figure]), float(low[figure]), float(high[figure])
                )
            continue
        values = standing.median[figures]
        nodes = standing.node[figures]
        if nodes.tobytes() not in names:  # hardly any two metrics are of other nodes
            names[nodes.tobytes()] = folded(standing.records.nodes[node] for node in nodes)
        middle = float(np.median(values))
        name = names[nodes.tobytes()]
        merged = replace(standing.record(figures[0]), node=name, value=middle)
        yield Sample(merged, middle, float(low[figures].min()), float(high[figures].max()))


def parameter(record: Record, name: str) -> float | None:
    """Return a parameter as a number; None where there is none."""
    value = record.parameters.get(name)
    return None if value is None or isinstance(value, str) else float(value)


Measure = Callable[[Record], float | None]


def lines_of(
    points: Sequence[Sample], x: Measure, besides: Collection[str], factor: Measure
) -> list[Series]:
    """Sort points into lines over `x`, one for each setting of everything not in `besides`.

    `factor` brings each record's printed unit to that of the axis. Nodes do not part lines: like
    nodes are one line with its range.
    """
    settings: dict[tuple[tuple[str, Scalar], ...], list[Sample]] = {}
    for point in points:
        known = {key: value for key, value in _setting(point.record).items() if key not in besides}
        settings.setdefault(tuple(known.items()), []).append(point)
    labels = _labels([dict(setting) for setting in settings])
    return [
        Series(label, plot_points_of(members, x, factor))
        for label, members in zip(labels, settings.values(), strict=True)
    ]


def _setting(record: Record) -> dict[str, Scalar]:
    return {
        "case": record.case,
        "benchmark": record.benchmark,
        "mode": record.mode,
        "placement": record.placement,
        "build": record.environment_hash[:8],
        **record.parameters,
    }


def _labels(settings: Sequence[Mapping[str, Scalar]]) -> list[str]:
    names = dict.fromkeys(name for setting in settings for name in setting)
    varying = [name for name in names if len({str(setting.get(name)) for setting in settings}) > 1]
    return [_label({name: each[name] for name in varying if name in each}) for each in settings]


def _label(setting: Mapping[str, Scalar]) -> str:
    words = (
        value if isinstance(value, str) else f"{name} {value}" for name, value in setting.items()
    )
    label = visible(", ".join(filter(None, words)))
    return label if len(label) <= 60 else f"{label[:59]}…"


def lines_by(
    points: Sequence[Sample], label: Callable[[Record], str], x: Measure, factor: Measure
) -> list[Series]:
    """Sort points into lines over `x` by their label, in the order in which labels first come."""
    alike: dict[str, list[Sample]] = {}
    for point in points:
        alike.setdefault(label(point.record), []).append(point)
    return [Series(visible(name), plot_points_of(each, x, factor)) for name, each in alike.items()]


def plot_points_of(points: Iterable[Sample], x: Measure, factor: Measure) -> tuple[PlotPoint, ...]:
    """Return a spot for each place of `x`: the median over what is alike there."""
    places: dict[float, list[tuple[float, float, float]]] = {}
    for point in points:
        place, scale = x(point.record), factor(point.record)
        if place is not None and scale is not None:
            triple = (point.value * scale, point.low * scale, point.high * scale)
            places.setdefault(place, []).append(triple)
    return tuple(
        PlotPoint(
            place,
            median(value for value, _, _ in alike),
            min(low for _, low, _ in alike),
            max(high for _, _, high in alike),
        )
        for place, alike in sorted(places.items())
    )
