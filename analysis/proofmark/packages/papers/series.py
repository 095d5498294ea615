"""The data of plots: samples from the valid results of a run, grouped into lines.

Ticks of axes, and the sizes of messages and files, are the same in all plots.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from proofmark.cases.vocabulary import Scalar
from proofmark.common.nodesets import folded
from proofmark.common.text import factor
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.verdict import Results
from proofmark.records.columns import Record
from proofmark.report.sections.main_figures import Nominal
from proofmark.report.words import number, size_4_digits, visible

Limit = tuple[str, float]
"""The kind of a limit, or `NOMINAL`, and its value."""
NOMINAL = "nominal"
"""The kind of the peak of the hardware."""


@dataclass(frozen=True)
class Sample:
    """One figure of the run: the median, the least and the greatest of its repeats.

    The value of `record` is the median too. `limits` are in its unit, each with its kind.
    """

    record: Record
    value: float
    low: float
    high: float
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class PlotPoint:
    """A point of a line: the median over nodes at `x`, and the range over nodes and repeats."""

    x: float
    y: float
    low: float
    high: float
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Series:
    """A line of a plot: its points, sorted by x; `label` distinguishes it from the other lines."""

    label: str
    points: tuple[PlotPoint, ...]


MAX_NODES_WITH_SAMPLES = 64
"""The largest number of nodes with a sample each; more nodes share one sample with a range."""


def samples_of(
    results: Results,
    wanted: Callable[[Record], bool] = lambda _: True,
    nominal: Nominal = lambda _: None,
) -> list[Sample]:
    """Return a sample of each valid result whose record is `wanted`; INVALID is not drawn."""
    return list(_samples(results, wanted, nominal))


def _limits(results: Results, figure: int, record: Record, nominal: Nominal) -> tuple[Limit, ...]:
    """Return the limits that judge a figure, and the peak of its hardware."""
    peak = nominal(record)
    answers = results.answers.get(figure, ())
    found: list[Limit] = []
    for each in answers:
        found += [(each.kind, bound) for bound in each.bounds.times(each.value or 0) if bound]
    return (*found, *([(NOMINAL, peak)] if peak else []))


def _samples(
    results: Results, wanted: Callable[[Record], bool], nominal: Nominal
) -> Iterator[Sample]:
    """Yield the samples of `wanted` figures.

    More than `MAX_NODES_WITH_SAMPLES` like nodes share one sample.
    """
    standing: Aggregates = results.aggregates
    chosen = np.flatnonzero(standing.about(wanted) & standing.valid)
    alike: dict[int, list[int]] = {}
    measurands = standing.measurand[chosen].tolist()
    for figure, measurand in zip(chosen.tolist(), measurands, strict=True):
        alike.setdefault(measurand, []).append(figure)
    low, high = standing.ranges
    names: dict[bytes, str] = {}
    for figures in alike.values():
        if len(figures) <= MAX_NODES_WITH_SAMPLES:
            for figure in figures:
                record = standing.record(figure)
                bounds = _limits(results, figure, record, nominal)
                yield Sample(
                    record,
                    float(standing.median[figure]),
                    float(low[figure]),
                    float(high[figure]),
                    bounds,
                )
            continue
        values = standing.median[figures]
        nodes = standing.node[figures]
        if nodes.tobytes() not in names:  # most metrics have the same nodes
            names[nodes.tobytes()] = folded(standing.records.nodes[node] for node in nodes)
        middle = float(np.median(values))
        name = names[nodes.tobytes()]
        first = standing.record(figures[0])
        bounds = _limits(results, figures[0], first, nominal)
        ends = float(low[figures].min()), float(high[figures].max())
        yield Sample(replace(first, node=name, value=middle), middle, *ends, bounds)


def parameter(record: Record, name: str) -> float | None:
    """Return the parameter `name` as a number; None if it is missing or a text."""
    value = record.parameters.get(name)
    return None if value is None or isinstance(value, str) else float(value)


Measure = Callable[[Record], float | None]


def lines_by_settings(
    samples: Sequence[Sample], x: Measure, ignored: Collection[str], factor: Measure
) -> list[Series]:
    """Return lines over `x`, one for each combination of settings.

    Nodes do not separate lines: like nodes are one line with a range. Each label contains only the
    settings in which the lines differ.

    Args:
        x: returns the x of a record.
        ignored: settings that do not separate lines.
        factor: returns the factor from the unit of a record to that of the axis.
    """
    settings: dict[tuple[tuple[str, Scalar], ...], list[Sample]] = {}
    for sample in samples:
        setting = [item for item in _setting(sample.record).items() if item[0] not in ignored]
        settings.setdefault(tuple(setting), []).append(sample)
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
    every_name: list[str] = []
    for setting in settings:
        every_name += setting
    names = dict.fromkeys(every_name)
    varying = [name for name in names if len({str(setting.get(name)) for setting in settings}) > 1]
    return [
        _label({name: setting[name] for name in varying if name in setting}) for setting in settings
    ]


def _label(setting: Mapping[str, Scalar]) -> str:
    words = (
        value if isinstance(value, str) else f"{name} {value}" for name, value in setting.items()
    )
    label = visible(", ".join(filter(None, words)))
    return label if len(label) <= 60 else f"{label[:59]}…"


def plot_points_of(samples: Iterable[Sample], x: Measure, factor: Measure) -> tuple[PlotPoint, ...]:
    """Return a point for each value of `x`: the median and the range of its samples."""
    groups: dict[float, list[tuple[float, float, float]]] = {}
    limits: dict[float, list[Limit]] = {}
    for sample in samples:
        position, scale = x(sample.record), factor(sample.record)
        if position is not None and scale is not None:
            triple = (sample.value * scale, sample.low * scale, sample.high * scale)
            groups.setdefault(position, []).append(triple)
            drawn = limits.setdefault(position, [])
            kinds = {kind for kind, _ in drawn}  # of a kind, the limits of one sample are drawn
            drawn += [(kind, bound * scale) for kind, bound in sample.limits if kind not in kinds]
    return tuple(
        PlotPoint(
            position,
            median(value for value, _, _ in triples),
            min(low for _, low, _ in triples),
            max(high for _, _, high in triples),
            tuple(limits[position]),
        )
        for position, triples in sorted(groups.items())
    )


def megabytes_per_second(record: Record) -> float | None:
    """Return the factor from a record's bandwidth to MB/s (10⁶ bytes); None for other units."""
    return factor(record.unit, "MB/s")


def microseconds(record: Record) -> float | None:
    """Return the factor from a record's time to µs; None for other units."""
    return factor(record.unit, "us")


def gigaflops(record: Record) -> float | None:
    """Return the factor from a record's rate to GFlop/s; None for other units."""
    return factor(record.unit, "GFlop/s")


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks that enclose `low` … `high` (both > 0): powers of ten, with 2 and 5 if few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1,) if last - first > 3 else (1, 2, 5)
    ticks = []
    for power in range(first, last + 1):
        ticks += [step * 10.0**power for step in steps]
    start = max((index for index, tick in enumerate(ticks) if tick <= low), default=0)
    end = min((index for index, tick in enumerate(ticks) if tick >= high), default=len(ticks) - 1)
    return ticks[start : max(end, start + 1) + 1]


def byte_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return at most `most` evenly spaced powers of two in `low` … `high`; 0 too if `low` is 0."""
    least = max(low, 1)
    first, last = math.ceil(math.log2(least)), math.floor(math.log2(max(high, 1)))
    fitting = [step for step in range(1, 64) if (last - first) // step + 1 <= most]
    # A stride that ends at the last power is better, unless it gives fewer than 4 ticks.
    even = [step for step in fitting if (last - first) % step == 0 and (last - first) // step > 2]
    stride = min(even or fitting)
    powers = [2.0**power for power in range(first, last + 1, stride)]
    return [0.0, *powers] if low == 0 else powers


def byte_label(value: float, _: int = 0) -> str:
    """Return the label of a tick of `byte_ticks`."""
    return "0" if value == 0 else size_4_digits(round(value))


def number_label(value: float, _: int = 0) -> str:
    """Return the label of a tick without a unit."""
    return number(value, 1) if value >= 1 or value == 0 else f"{value:g}"


_COLLECTIVE = re.compile(
    r"bcast|broadcast|reduce|gather|scatter|all-?to-?all|scan|barrier", re.IGNORECASE
)
_LOCAL = re.compile(r"local", re.IGNORECASE)
_PAIRS = re.compile(
    r"PingPong|PingPing|Uniband|Biband|Sendrecv|Exchange|(Uni|Bi|Co)random|Bandwidth|Latency"
)


def is_collective(benchmark: str) -> bool:
    """Return whether the benchmark is a collective operation."""
    collective = _COLLECTIVE.search(benchmark) is not None
    return collective and _LOCAL.search(benchmark) is None


def is_point_to_point(benchmark: str) -> bool:
    """Return whether the benchmark exchanges messages in pairs or with neighbours."""
    return _PAIRS.search(benchmark) is not None and _COLLECTIVE.search(benchmark) is None


def message_bytes(record: Record) -> float | None:
    """Return the message size in bytes; None if the parameters lack it."""
    return parameter(record, "bytes")


def is_time(record: Record) -> bool:
    """Return whether `record` is the average time of a message or operation."""
    return record.metric in ("t_avg", "latency") and microseconds(record) is not None


def is_bandwidth(record: Record) -> bool:
    """Return whether `record` is a bandwidth of messages of at least one byte."""
    bandwidth = record.metric == "bandwidth" and megabytes_per_second(record) is not None
    return bandwidth and bool(message_bytes(record))
