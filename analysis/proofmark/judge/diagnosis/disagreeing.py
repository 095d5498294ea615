"""Figures whose repeats disagree: the median of two states of a machine describes neither."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from statistics import median

import numpy as np

from proofmark.cases.vocabulary import DATE
from proofmark.common.grouping import gathered
from proofmark.judge.aggregate import Aggregates, Measured
from proofmark.judge.fleet.critical_values import MAD_TO_SIGMA
from proofmark.records.columns import Mask, Measurand, Numbers

MIN_DIFFERENCE = 0.2
"""The least difference of two repeats that is an issue if the spread of like nodes is not known."""
MIN_DIFFERENCE_BESIDE_PEERS = 0.1
"""The least difference of two repeats that is an issue if the spread of like nodes is known."""
SPREADS = 5
"""The difference is also at least this number of spreads."""
LEAST_PEERS = 3
"""The least number of like nodes of which a spread is computed."""

Values = Mapping[str, float]
"""The value of each execution of a figure, by the name of the execution."""


@dataclass(frozen=True)
class LikeExecutions:
    """Executions of a figure with like values.

    Attributes:
        executions: the parts of the paths that differ if others produced the outputs, else
            ``<step>#<attempt>``.
        least, greatest: the range of their values, in the unit of the figure.
    """

    executions: tuple[str, ...]
    least: float
    greatest: float


@dataclass(frozen=True)
class Disagreement:
    """The figures of one case whose repeats disagree.

    Attributes:
        figure: the place in `Aggregates` of the figure with the largest difference.
        difference: between its repeats, as a share of the largest value.
        spread: the standard deviation of like nodes in one repeat, as a share of their median; None
            if it is not known.
        states: its two states, the one with the lower values first.
    """

    figure: int
    difference: float
    spread: float | None
    states: tuple[LikeExecutions, LikeExecutions]
    figures: int
    compared: int
    dates: bool = False

    def as_json(self, figures: Aggregates) -> dict[str, object]:
        """Return the form of ``verdict.json``."""
        record = figures.record(self.figure)
        return {
            "case": record.case,
            "benchmark": record.benchmark,
            "metric": record.metric,
            "unit": record.unit,
            "mode": record.mode,
            "placement": record.placement,
            "parameters": dict(record.parameters),
            "node": record.node,
            "difference": self.difference,
            "spread": self.spread,
            "states": [asdict(each) for each in self.states],
            "figures": self.figures,
            "compared": self.compared,
            "dates": self.dates,
        }


def disagreements(
    figures: Aggregates, like: Numbers, sources: Mapping[str, str]
) -> tuple[Disagreement, ...]:
    """Return the cases with figures whose repeats or dates disagree, the largest difference first.

    The spread of like nodes is that of one repeat. Two states would widen the spread of medians.

    Args:
        like: figures with the same number from 0 are of like nodes; shape (figures,).
        sources: the paths of outputs that others produced, by step. Empty for an own run.
    """
    several = figures.valid & (figures.count > 1) & (figures.ranges[1] > 0)
    dated = list(_dates(figures))
    return (
        *_worst(figures, _repeats(figures, like, sources, several), np.flatnonzero(several)),
        *_worst(figures, dated, [each.figure for each in dated]),
    )


@dataclass(frozen=True)
class _Compared:
    """A figure with several values, which have the same names for like nodes."""

    figure: int
    values: Values
    spread: float | None
    dates: bool = False


def _worst(
    figures: Aggregates, candidates: Iterable[_Compared], compared: Numbers | Sequence[int]
) -> Iterator[Disagreement]:
    """Yield the figure of each case with the largest difference, if it is large."""

    def case(figure: int) -> str:
        return figures.measurand_of(figure).case

    found: dict[str, list[tuple[float, int, _Compared]]] = {}
    for each in candidates:
        largest = max(each.values.values())
        difference = (largest - min(each.values.values())) / largest
        large = (
            MIN_DIFFERENCE
            if each.spread is None
            else max(MIN_DIFFERENCE_BESIDE_PEERS, SPREADS * each.spread)
        )
        if difference > large:
            found.setdefault(case(each.figure), []).append((difference, each.figure, each))
    several = Counter(map(case, compared))
    for name, of_case in sorted(found.items(), key=lambda item: -max(item[1])[0]):
        difference, figure, each = max(of_case)
        ordered = sorted(each.values.items(), key=lambda item: item[1])
        gaps = [after[1] - before[1] for before, after in pairwise(ordered)]
        cut = gaps.index(max(gaps)) + 1
        low, high = (
            LikeExecutions(tuple(sorted(name for name, _ in part)), part[0][1], part[-1][1])
            for part in (ordered[:cut], ordered[cut:])
        )
        states = (low, high)
        yield Disagreement(
            figure=figure,
            difference=difference,
            spread=each.spread,
            states=states,
            figures=len(of_case),
            compared=several[name],
            dates=each.dates,
        )


def _repeats(
    figures: Aggregates, like: Numbers, sources: Mapping[str, str], several: Mask
) -> Iterator[_Compared]:
    least, greatest = figures.ranges
    with np.errstate(divide="ignore", invalid="ignore"):
        candidates = several & ((greatest - least) / greatest > MIN_DIFFERENCE_BESIDE_PEERS)

    @cache
    def spread(peers: int) -> float | None:
        if peers < 0:
            return None
        nodes = np.flatnonzero(several & (like == peers)).tolist()
        return _spread([_by_repeat(figures.by_execution(node), sources) for node in nodes])

    for figure in np.flatnonzero(candidates).tolist():
        values = _named(figures.by_execution(figure), sources)
        yield _Compared(figure, values, spread(int(like[figure])))


def _dates(figures: Aggregates) -> Iterator[_Compared]:
    """Yield the last figure of each node of which a label states several dates."""
    parts = [_without_date(each) for each in figures.records.measurands]
    dated = np.array([bool(date) for _, date in parts], dtype=bool)[figures.measurand]
    groups: dict[Measurand, dict[int, dict[str, int]]] = {}
    for figure in np.flatnonzero(figures.valid & dated & (figures.median > 0)).tolist():
        measurand, date = parts[int(figures.measurand[figure])]
        groups.setdefault(measurand, {}).setdefault(int(figures.node[figure]), {})[date] = figure
    for nodes in groups.values():
        values = [
            {date: float(figures.median[figure]) for date, figure in each.items()}
            for each in nodes.values()
        ]
        spread = _spread(values)
        for each, of_node in zip(nodes.values(), values, strict=True):
            if len(of_node) > 1:
                yield _Compared(each[max(each)], of_node, spread, dates=True)


def _without_date(measurand: Measurand) -> tuple[Measurand, str]:
    parameters = json.loads(measurand.parameters)
    date = str(parameters.pop(DATE, ""))
    return measurand._replace(parameters=json.dumps(parameters, sort_keys=True)), date


def _named(measured: Measured, sources: Mapping[str, str]) -> Values:
    if not sources:
        return {f"{each.step}#{each.attempt}": value for each, value in measured}
    unlike = _unlike([sources[each.step] for each, _ in measured])
    runs = Counter(unlike)
    seen: Counter[str] = Counter()
    values = {}
    for name, (_, value) in zip(unlike, measured, strict=True):
        seen[name] += 1
        # One file may have the outputs of several runs.
        values[f"{name}#{seen[name]}" if runs[name] > 1 else name] = value
    return values


def _unlike(paths: Sequence[str]) -> list[str]:
    """Return each path without the first and the last parts that all of them have."""
    parts = [PurePosixPath(path).parts for path in paths]
    first = _shared(parts)
    rest = [each[first:] for each in parts]
    last = _shared([each[::-1] for each in rest])
    names = ["/".join(each[: len(each) - last]) for each in rest]
    return [name or path for name, path in zip(names, paths, strict=True)]


def _shared(parts: Sequence[Sequence[str]]) -> int:
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*parts, strict=False)))


def _by_repeat(measured: Measured, sources: Mapping[str, str]) -> Values:
    """Return the median of each repeat; like nodes have the same names of repeats."""
    names = (
        _unlike([sources[each.step] for each, _ in measured])
        if sources
        else [f"{each.repeat}" for each, _ in measured]
    )
    found = gathered((name, value) for name, (_, value) in zip(names, measured, strict=True))
    return {name: median(values) for name, values in found.items()}


def _spread(nodes: Sequence[Values]) -> float | None:
    """Return the median over the repeats of the relative standard deviation of like nodes."""
    repeats: dict[str, list[float]] = {}
    for node in nodes:
        for name, value in node.items():
            repeats.setdefault(name, []).append(value)
    spreads = []
    for values in repeats.values():
        middle = median(values)
        if len(values) >= LEAST_PEERS and middle > 0:
            deviations = [abs(value - middle) for value in values]
            spreads.append(MAD_TO_SIGMA * median(deviations) / middle)
    return median(spreads) if spreads else None
