"""Records as one table: the content of records.parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from proofmark.common.message import NOTHING, fields_json
from proofmark.records.columns import Execution, Measurand, Numbers, Records

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


_ROWS = 100_000
"""The number of records that are written together."""
_Parts = Sequence[tuple[pl.DataFrame, Numbers]]


def table(records: Records, texts: Any = pl.String) -> pl.DataFrame:
    """Return the records as a table with the columns of `SCHEMA`, one row per record.

    `texts` is the type of its texts. With `pl.Categorical` a table takes a third of the memory.
    """
    return _rows(records, _parts(records, texts), slice(None))


def parquet_of(records: Records) -> bytes:
    """Return records.parquet as bytes. Equal records give equal bytes."""
    parts = _parts(records, pl.String)

    def read(*_: object) -> Iterator[pl.DataFrame]:
        for begin in range(0, max(1, len(records)), _ROWS):
            yield _rows(records, parts, slice(begin, begin + _ROWS))

    content = BytesIO()
    register_io_source(read, schema=dict(SCHEMA)).sink_parquet(content, row_group_size=_ROWS)
    return content.getvalue()


def _parts(records: Records, texts: Any) -> _Parts:
    """Return the columns whose values repeat, each value once, with the row of each record."""
    reasons = [
        (str(each), each.main_code, json.dumps(fields_json(each), sort_keys=True))
        for each in (NOTHING, *records.reasons)
    ]
    executions = [each[:3] for each in records.executions]
    parts: Sequence[tuple[Sequence[str], Sequence[Any], Numbers]] = (
        (("run",), [(records.run,)], np.zeros(len(records), dtype=np.int64)),
        (("node",), [(each,) for each in records.nodes], records.node),
        (("reason", "reason_code", "reason_fields"), reasons, records.reason + 1),
        (Execution._fields[:3], executions, records.execution),
        (Measurand._fields, records.measurands, records.measurand),
    )
    return [
        (
            pl.DataFrame(rows, {name: SCHEMA[name] for name in names}, orient="row").cast(
                {pl.String: texts}
            ),
            numbers,
        )
        for names, rows, numbers in parts
    ]


def _rows(records: Records, parts: _Parts, rows: slice) -> pl.DataFrame:
    values = {"value": pl.Series(records.value[rows]).fill_nan(None), "valid": records.valid[rows]}
    repeated = [values_once[numbers[rows]] for values_once, numbers in parts]
    return pl.concat([pl.DataFrame(values), *repeated], how="horizontal").select(*SCHEMA)
