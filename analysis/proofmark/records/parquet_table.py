"""Records as one table: the content of records.parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from proofmark.common.message import NOTHING, fields_json
from proofmark.records.columns import Measurand, Numbers, Records

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
    "reason_code": pl.String,
    "reason_fields": pl.String,
}
"""Columns of records.parquet; ``parameters`` and ``reason_fields`` are JSON with sorted keys."""


def table(records: Records) -> pl.DataFrame:
    """Return the records as a table with the columns of `SCHEMA`, one row per record."""

    def gathered(values: Sequence[Any], kind: Any, numbers: Numbers) -> pl.Series:
        return pl.Series(values, dtype=kind).gather(numbers)

    columns: dict[str, Any] = {
        "run": pl.Series([records.run], dtype=pl.String).new_from_index(0, len(records)),
        "node": gathered(records.nodes, pl.String, records.node),
        "value": pl.Series(records.value).fill_nan(None),
        "valid": records.valid,
    }
    reasons = (NOTHING, *records.reasons)
    for name, values in (
        ("reason", [str(each) for each in reasons]),
        ("reason_code", [each.main_code for each in reasons]),
        ("reason_fields", [json.dumps(fields_json(each), sort_keys=True) for each in reasons]),
    ):
        columns[name] = gathered(values, pl.String, records.reason + 1)
    for name in ("step", "attempt", "repeat"):
        of_executions = [getattr(each, name) for each in records.executions]
        columns[name] = gathered(of_executions, SCHEMA[name], records.execution)
    for place, name in enumerate(Measurand._fields):
        columns[name] = gathered(
            [each[place] for each in records.measurands], pl.String, records.measurand
        )
    return pl.DataFrame({name: columns[name] for name in SCHEMA}, schema=dict(SCHEMA))
