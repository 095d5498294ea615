"""Repeats of one figure that disagree: they are states of the machine, and their median is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath
from statistics import median

import numpy as np

from proofmark.judge.aggregate import Aggregates
from proofmark.records.columns import Execution, Record

LARGE = 0.2
"""The difference of two repeats, as a share of the larger, that is an issue by itself."""
LARGE_BESIDE_PEERS = 0.1
"""The same, if the spread of like nodes is known and the difference is many times as large."""
SPREADS = 5
"""How many times the spread of like nodes a difference must be."""
LEAST_PEERS = 3
"""The least number of like nodes that have a spread."""
MAD_TO_SIGMA = 1.4826
"""The standard deviation of a normal distribution, by its median absolute deviation."""


@dataclass(frozen=True)
class State:
    """Repeats of a figure that agree.

    Attributes:
        repeats: their folders and files if others produced the outputs, else their numbers.
        least, greatest: the range of their values, in the unit of the figure.
    """

    repeats: tuple[str, ...]
    least: float
    greatest: float


@dataclass(frozen=True)
class Disagreement:
    """The figures of one metric whose repeats disagree.

    Attributes:
        record: of the figure that differs most.
        difference: between its repeats, as a share of the largest.
        spread: the standard deviation of like nodes in one repeat, as a share of their median; None
            if fewer than `LEAST_PEERS` were measured.
        states: its two states, the one with the lower values first.
        figures: the number of figures of the metric that differ.
        compared: the number of figures of the metric with several repeats.
    """

    record: Record
    difference: float
    spread: float | None
    states: tuple[State, State]
    figures: int
    compared: int

    def as_json(self) -> dict[str, object]:
        """Return the form of ``verdict.json``."""
        record = self.record
        return {
            "case": record.case,
            "benchmark": record.benchmark,
            "metric": record.metric,
            "parameters": dict(record.parameters),
            "node": record.node,
            "unit": record.unit,
            "difference": self.difference,
            "spread": self.spread,
            "states": [
                {"repeats": list(each.repeats), "least": each.least, "greatest": each.greatest}
                for each in self.states
            ],
            "figures": self.figures,
            "compared": self.compared,
        }


def disagreements(figures: Aggregates, sources: Mapping[str, str]) -> tuple[Disagreement, ...]:
    """Return the metrics with figures whose repeats disagree, those that differ most first.

    Args:
        figures: of a run.
        sources: the paths of imported outputs, by step. Empty for an own run.
    """
    least, greatest = figures.ranges
    several = figures.valid & (figures.count > 1) & (greatest > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        differing = several & ((greatest - least) / greatest > LARGE_BESIDE_PEERS)
    values: dict[int, dict[str, float]] = {}

    def labelled(figure: int) -> dict[str, float]:
        if figure not in values:
            values[figure] = _labelled(figures.by_execution(figure), sources)
        return values[figure]

    spreads: dict[int, float | None] = {}
    found: dict[tuple[str, str, str], list[tuple[float, int]]] = {}
    for figure in np.flatnonzero(differing).tolist():
        identity = int(figures.identity[figure])
        if identity not in spreads:
            like = np.flatnonzero(several & (figures.identity == identity)).tolist()
            spreads[identity] = _spread([labelled(each) for each in like])
        difference = _difference(labelled(figure))
        spread = spreads[identity]
        large = LARGE if spread is None else max(LARGE_BESIDE_PEERS, SPREADS * spread)
        if difference > large:
            found.setdefault(_metric(figures.record(figure)), []).append((difference, figure))
    worst = []
    for metric, differences in found.items():
        difference, figure = max(differences)
        about = figures.about(partial(_is_of, metric))
        worst.append(
            Disagreement(
                figures.record(figure),
                difference,
                spreads[int(figures.identity[figure])],
                _states(labelled(figure)),
                len(differences),
                int((several & about).sum()),
            )
        )
    return tuple(sorted(worst, key=lambda each: -each.difference))


def _metric(record: Record) -> tuple[str, str, str]:
    return record.case, record.benchmark, record.metric


def _is_of(metric: tuple[str, str, str], record: Record) -> bool:
    return _metric(record) == metric


def _difference(values: Mapping[str, float]) -> float:
    """Return the difference of the extremes as a share of the larger; 0 for fewer than two."""
    largest = max(values.values(), default=0.0)
    return (largest - min(values.values())) / largest if largest > 0 else 0.0


def _labelled(
    measured: Sequence[tuple[Execution, float]], sources: Mapping[str, str]
) -> dict[str, float]:
    """Return the median of each repeat of a figure, by what distinguishes the repeats."""
    paths = {each.step: PurePosixPath(sources[each.step]).parts for each, _ in measured if sources}
    parts = [set(column) for column in zip(*paths.values(), strict=False)]
    found: dict[str, list[float]] = {}
    for each, value in measured:
        path = paths.get(each.step, ())
        unlike = [part for part, seen in zip(path, parts, strict=False) if len(seen) > 1]
        # Several runs in one file have a number only.
        label = "/".join(unlike) if len(paths) > 1 else str(each.repeat)
        found.setdefault(label, []).append(value)
    return {label: median(values) for label, values in found.items()}


def _spread(like: Sequence[Mapping[str, float]]) -> float | None:
    """Return the median over the repeats of the relative standard deviation of like nodes."""
    by_repeat: dict[str, list[float]] = {}
    for figure in like:
        for label, value in figure.items():
            by_repeat.setdefault(label, []).append(value)
    spreads = []
    for values in by_repeat.values():
        middle = median(values)
        if len(values) >= LEAST_PEERS and middle > 0:
            deviations = [abs(value - middle) for value in values]
            spreads.append(MAD_TO_SIGMA * median(deviations) / middle)
    return median(spreads) if spreads else None


def _states(values: Mapping[str, float]) -> tuple[State, State]:
    """Divide the repeats at the largest gap between two neighbouring values."""
    ordered = sorted(values.items(), key=lambda item: item[1])
    gaps = [after[1] - before[1] for before, after in pairwise(ordered)]
    cut = gaps.index(max(gaps)) + 1
    low, high = (
        State(tuple(sorted(label for label, _ in part)), part[0][1], part[-1][1])
        for part in (ordered[:cut], ordered[cut:])
    )
    return low, high
