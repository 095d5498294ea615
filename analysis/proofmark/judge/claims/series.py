"""The figures that claims are checked on: medians of valid records of one origin."""

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
"""Columns in which records must agree to be repeats of one figure, on one node or many."""


class Figures:
    """The figures of a table of records, found again by what they are."""

    def __init__(self, records: pl.DataFrame, origin: str) -> None:
        """Take the valid records of `origin`; `records` has the columns of records.parquet."""
        sound = records.filter(
            pl.col("valid")
            & (pl.col("origin") == origin)
            & pl.col("value").is_finite()
            & (pl.col("value") > 0)
        )
        medians = sound.group_by(LIKE, maintain_order=True).agg(pl.col("value").median())
        self._figures: dict[tuple[str, str, str], list[tuple[dict[str, Scalar], float]]] = {}
        for row in medians.iter_rows(named=True):
            traits = {
                **json.loads(row["parameters"]),
                **{name: row[name] for name in ("benchmark", "metric", "mode", "placement")},
            }
            key = (row["system"], row["case"], row["unit"])
            self._figures.setdefault(key, []).append((traits, row["value"]))

    def of(self, need: Need) -> Values:
        """Return what there is of `need`, at the points it names and at all others."""
        found: dict[Point, list[float]] = {}
        for traits, value in self._figures.get((need.system, need.case, need.unit), []):
            if all(traits.get(name) == wanted for name, wanted in need.fixed.items()) and all(
                name in traits for name in need.axes
            ):
                found.setdefault(tuple(traits[name] for name in need.axes), []).append(value)
        one = max if need.best else median
        return {point: one(values) for point, values in found.items()}


def origins(records: pl.DataFrame) -> list[str]:
    """Return the origins of the records, in order."""
    return sorted(records.get_column("origin").unique().to_list())


def lacking(need: Need, values: Values) -> str:
    """Return what `values` lack of `need` in words; an empty string if nothing."""
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
    """Return a line over the axis at `place`, by x; the other axes are `fixed`, in order."""
    line = []
    for point, value in values.items():
        x = point[place]
        if (*point[:place], *point[place + 1 :]) == fixed and not isinstance(x, str):
            line.append((float(x), value))
    return sorted(line)


def ratio_curve(
    over: Sequence[tuple[float, float]], under: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return one line divided by another where both have a figure."""
    below = dict(under)
    return [(x, y / below[x]) for x, y in over if x in below]
