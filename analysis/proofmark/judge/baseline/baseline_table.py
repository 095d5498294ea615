"""The valid values of a run as a table: what a baseline stores, and what is compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from proofmark.cases.reference import Metric
from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import TELEMETRY
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.like_figures import Kinds
from proofmark.records.columns import Numbers
from proofmark.site.accepted_baseline import COLUMNS
from proofmark.software.software import Software

FIGURE, LOWER, MATERIAL = "figure", "lower", "material"
"""Columns of the table of a run: the number of the figure; whether lower values are better; the
least change that matters, as a part of the value."""


def values_table(
    figures: Aggregates, benchmarks: Benchmarks, kinds: Kinds, programs: Mapping[str, str]
) -> pl.DataFrame:
    """Return the values of the valid figures whose speed can be compared.

    Digits of a result, sensors, metrics without `better`, and figures with a value that is not
    positive are left out.

    Args:
        figures: of the run.
        benchmarks: the cases; their metrics state whether higher or lower is better.
        kinds: the hardware of the nodes.
        programs: the digests of the programs by environment hash; a hash that it lacks stands for
            itself.

    Returns:
        `COLUMNS`, `FIGURE`, `LOWER` and `MATERIAL`, one row per value.
    """
    records = figures.records
    about = [compared_metric(benchmarks, each.case, each.metric) for each in records.measurands]
    comparable = np.array([each is not None for each in about], dtype=bool)
    least, _ = figures.ranges
    chosen = np.flatnonzero(figures.valid & comparable[figures.measurand] & (least > 0))
    members = np.concatenate([figures.members(int(each)) for each in chosen] or [figures.order[:0]])
    number = np.repeat(chosen, figures.count[chosen])
    measurand = records.measurand[members]
    kind, names = kinds.numbers(records.nodes)
    texts = [f"{count} × {hardware}" for hardware, count in names]
    columns: dict[str, Any] = {
        "run": pl.repeat(records.run, len(members), dtype=pl.String, eager=True),
        "program": _gathered(
            [
                programs.get(each.environment_hash, each.environment_hash)
                for each in records.measurands
            ],
            measurand,
        ),
        "node": _gathered(records.nodes, records.node[members]),
        "kind": _gathered(texts, kind[records.node[members]]),
        "value": records.value[members],
        FIGURE: number,
        LOWER: _gathered(
            [each is not None and each.better == "lower" for each in about], measurand, pl.Boolean
        ),
        MATERIAL: _gathered(
            [each.material_change if each else None for each in about], measurand, pl.Float64
        ),
    }
    for name in COLUMNS.keys() - columns.keys():
        columns[name] = _gathered([getattr(each, name) for each in records.measurands], measurand)
    schema = {**COLUMNS, FIGURE: pl.Int64, LOWER: pl.Boolean, MATERIAL: pl.Float64}
    return pl.DataFrame({name: columns[name] for name in schema}, schema=schema)


def programs_of(software: Software) -> dict[str, str]:
    """Return the digest of the programs of each package, by its environment hash."""
    return {each.environment_hash: each.program_hash for each in software.packages.values()}


def _gathered(values: Sequence[Any], numbers: Numbers, kind: Any = pl.String) -> pl.Series:
    return pl.Series(values, dtype=kind).gather(numbers)


def compared_metric(benchmarks: Benchmarks, case: str, metric: str) -> Metric | None:
    """Return a metric; None if its values are not compared."""
    found = benchmarks.cases.get(case)
    about = found.metrics.get(metric) if found else None
    if about is None or about.same_digits or not about.peers or metric in TELEMETRY:
        return None
    return about
