"""The figures for the check of claims: medians of valid records of one origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import median

import polars as pl

from proofmark.judge.claims.model import Need, Point, Scalar, Values

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


class Figures:
    """The figures of a table of records, by system, case and unit."""

    def __init__(self, records: pl.DataFrame, origin: str) -> None:
        """Aggregate the valid records of `origin`.

        `records` has the columns of records.parquet. Values that are not positive and finite do not
        count.
        """
        valid = records.filter(
            pl.col("valid")
            & (pl.col("origin") == origin)
            & pl.col("value").is_finite()
            & (pl.col("value") > 0)
        )
        medians = valid.group_by(LIKE, maintain_order=True).agg(pl.col("value").median())
        self._figures: dict[tuple[str, str, str], list[tuple[dict[str, Scalar], float]]] = {}
        for row in medians.iter_rows(named=True):
            traits = {
                **json.loads(row["parameters"]),
                **{name: row[name] for name in ("benchmark", "metric", "mode", "placement")},
            }
            key = (row["system"], row["case"], row["unit"])
            self._figures.setdefault(key, []).append((traits, row["value"]))

    def of(self, need: Need) -> Values:
        """Return the figures of `need` by point, also at points that it does not name."""
        by_point: dict[Point, list[float]] = {}
        for traits, value in self._figures.get((need.system, need.case, need.unit), []):
            if all(traits.get(name) == wanted for name, wanted in need.fixed.items()) and all(
                name in traits for name in need.axes
            ):
                by_point.setdefault(tuple(traits[name] for name in need.axes), []).append(value)
        combine = max if need.best else median
        return {point: combine(values) for point, values in by_point.items()}


def origins(records: pl.DataFrame) -> list[str]:
    """Return the origins of the records, in order."""
    return sorted(records.get_column("origin").unique().to_list())


def missing_points(need: Need, values: Values) -> str:
    """Return the points of `need` that `values` lack, as text; an empty string if none."""
    wanted = list(_points(need))
    missing = [point for point in wanted if point not in values]
    if not missing:
        return ""
    if len(missing) == len(wanted):
        return f"all {len(wanted)} points of {need.text}"
    named = "; ".join(_named(need, point) for point in missing[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return f"{len(missing)} of {len(wanted)} points of {need.text}: {named}{more}"


def _points(need: Need) -> Iterator[Point]:
    points: list[Point] = [()]
    for values in need.axes.values():
        points = [(*point, value) for point in points for value in values]
    yield from points


def _named(need: Need, point: Point) -> str:
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
