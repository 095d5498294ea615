"""The figures for the check of claims: medians of valid records of one origin, and their noise."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import polars as pl

from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import NOTHING, Message
from proofmark.packages.papers.claim import Measured, Point, SweepNeed, Values
from proofmark.packages.papers.repeat_noise import Noise

LIKE = (
    "system",
    "case",
    "benchmark",
    "metric",
    "unit",
    "mode",
    "placement",
    "environment_hash",
    "parameters",
)
"""Columns in which the repeats of one figure agree, on one node or several."""


@dataclass(frozen=True)
class _Figure:
    """The median of the repeats of a figure.

    Attributes:
        traits: the values that a need can ask for.
        repeats: the number of values.
        squares: the sum of the squared deviations of their logarithms from the mean.
    """

    traits: dict[str, Any]
    value: float
    repeats: int
    squares: float


class ClaimFigures:
    """The figures of a table of records, by system, case and unit."""

    def __init__(self, records: pl.DataFrame, origin: str) -> None:
        """Aggregate the valid records of `origin`.

        `records` has the columns of records.parquet. Values that are not positive and finite do not
        count.
        """
        counting = (
            pl.col("valid")
            & (pl.col("origin") == origin)
            & pl.col("value").is_finite()
            & (pl.col("value") > 0)
        )
        logarithm = pl.col("value").log()
        self._figures: dict[tuple[str, str, str], list[_Figure]] = {}
        # Groups of all cases at once would need as much memory as the table.
        for case in records.get_column("case").unique().to_list():
            of_case = records.lazy().filter(counting & (pl.col("case") == case))
            figures = of_case.group_by(LIKE, maintain_order=True).agg(
                pl.col("value").median(),
                pl.len().alias("repeats"),
                (logarithm - logarithm.mean()).pow(2).sum().alias("squares"),
            )
            for row in figures.collect().iter_rows(named=True):
                traits = {
                    **json.loads(row["parameters"]),
                    **{name: row[name] for name in ("benchmark", "metric", "mode", "placement")},
                }
                key = (row["system"], row["case"], row["unit"])
                figure = _Figure(traits, row["value"], row["repeats"], row["squares"])
                self._figures.setdefault(key, []).append(figure)

    def of(self, need: SweepNeed) -> Measured:
        """Return the figures of `need` by point, also at points that it does not name.

        Their noise is pooled over like steps: all figures of the same system, case and metric.
        """
        like = self._figures.get((need.system, need.case, need.unit), [])
        by_point: dict[Point, list[_Figure]] = {}
        for figure in like:
            traits = figure.traits
            if all(traits.get(name) == wanted for name, wanted in need.fixed.items()) and all(
                name in traits for name in need.axes
            ):
                by_point.setdefault(tuple(traits[name] for name in need.axes), []).append(figure)
        if need.best:
            by_point = {
                point: [max(figures, key=lambda figure: figure.value)]
                for point, figures in by_point.items()
            }
        if need.points:
            by_point = {point: by_point[point] for point in need.points if point in by_point}
        values = {point: median(each.value for each in of) for point, of in by_point.items()}
        counts = [sum(figure.repeats for figure in of) for of in by_point.values()]
        metrics = set()
        for of in by_point.values():
            metrics |= {figure.traits["metric"] for figure in of}
        pooled = [figure for figure in like if figure.traits["metric"] in metrics]
        freedom = sum(figure.repeats - 1 for figure in pooled)
        squares = sum(figure.squares for figure in pooled)
        deviation = math.sqrt(squares / freedom) if freedom else 0.0
        return Measured(values, Noise(deviation, min(counts, default=1), freedom))


def origins(records: pl.DataFrame) -> list[str]:
    """Return the origins of the records, in order."""
    return sorted(records.get_column("origin").unique().to_list())


def missing_points(need: SweepNeed, values: Values) -> Message:
    """Return the points of `need` that `values` lack; `NOTHING` if they lack none."""
    wanted = list(_points(need))
    missing = [point for point in wanted if point not in values]
    if not missing:
        return NOTHING
    if len(missing) == len(wanted):
        return Message("claim-all-points", points=len(wanted), sweep=need.text)
    named = "; ".join(_named(need, point) for point in missing[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    sweep = f"{need.text}: {named}{more}"
    return Message("claim-points", missing=len(missing), points=len(wanted), sweep=sweep)


def _points(need: SweepNeed) -> Iterator[Point]:
    if need.points:
        yield from need.points
        return
    points: list[Point] = [()]
    for values in need.axes.values():
        points = [(*point, value) for point in points for value in values]
    yield from points


def _named(need: SweepNeed, point: Point) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(need.axes, point, strict=True))


def curve(values: Values, place: int, *fixed: Scalar) -> list[tuple[float, float]]:
    """Return the points (x, value) over the axis at `place`, sorted by x.

    `fixed` are the values of the other axes, in order.
    """
    line = []
    for point, value in values.items():
        x = point[place]
        if (*point[:place], *point[place + 1 :]) == fixed and not isinstance(x, str):
            line.append((float(x), value))
    return sorted(line)


def ratio_curve(
    over: Sequence[tuple[float, float]], under: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the ratio of two lines at each x that both have."""
    divisors = dict(under)
    return [(x, y / divisors[x]) for x, y in over if x in divisors]
