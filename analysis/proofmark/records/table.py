"""Records as one tidy table: what records.parquet holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from proofmark.records.columns import Measurand, Numbers, Record, Records

SCHEMA: Mapping[str, Any] = {
    "run": pl.String,
    "step": pl.String,
    "attempt": pl.Int64,
    "system": pl.String,
    "partition": pl.String,
    "node": pl.String,
    "origin": pl.String,
    "case": pl.String,
    "benchmark": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "repeat": pl.Int64,
    "mode": pl.String,
    "placement": pl.String,
    "parameters": pl.String,
    "environment_hash": pl.String,
    "valid": pl.Boolean,
    "reason": pl.String,
}
"""Columns of records.parquet; ``parameters`` is JSON with sorted keys."""


def table(records: Sequence[Record]) -> pl.DataFrame:
    """Return the records as one tidy table (`SCHEMA`)."""
    there = Records.of(records)

    def taken(values: Sequence[Any], kind: Any, numbers: Numbers) -> pl.Series:
        return pl.Series(values, dtype=kind).gather(numbers)

    columns: dict[str, Any] = {
        "run": pl.Series([there.run], dtype=pl.String).new_from_index(0, len(there)),
        "node": taken(there.nodes, pl.String, there.node),
        "value": pl.Series(there.value).fill_nan(None),
        "valid": there.valid,
        "reason": taken(["", *there.reasons], pl.String, there.reason + 1),
    }
    for name in ("step", "attempt", "repeat"):
        own = [getattr(each, name) for each in there.executions]
        columns[name] = taken(own, SCHEMA[name], there.execution)
    for place, name in enumerate(Measurand._fields):
        columns[name] = taken(
            [each[place] for each in there.measurands], pl.String, there.measurand
        )
    return pl.DataFrame({name: columns[name] for name in SCHEMA}, schema=dict(SCHEMA))
