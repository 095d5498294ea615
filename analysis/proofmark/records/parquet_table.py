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


COMPACT = pl.Categorical
"""The type of texts that are stored once; a million records take a third of the memory."""
_ROWS = 100_000
"""The number of records that are written together."""


def table(records: Records, texts: Any = pl.String) -> pl.DataFrame:
    """Return the records as a table with the columns of `SCHEMA`, one row per record.

    `texts` is the type of its texts: that of `SCHEMA`, or `COMPACT`.
    """
    return _rows(records, _repeated(records, texts), slice(None))


def parquet_of(records: Records) -> bytes:
    """Return the bytes of records.parquet. The same records give the same bytes."""
    columns = _repeated(records, pl.String)

    def read(*_: object) -> Iterator[pl.DataFrame]:
        for begin in range(0, max(1, len(records)), _ROWS):
            yield _rows(records, columns, slice(begin, begin + _ROWS))

    content = BytesIO()
    register_io_source(read, schema=dict(SCHEMA)).sink_parquet(content, row_group_size=_ROWS)
    return content.getvalue()


_Columns = Mapping[str, tuple[pl.Series, Numbers]]


def _repeated(records: Records, texts: Any) -> _Columns:
    """Return the values of each column whose values repeat, and the place of each record's value.

    `texts` is the type of texts.
    """
    reasons = (NOTHING, *records.reasons)
    columns: dict[str, tuple[Sequence[Any], Numbers]] = {
        "run": ([records.run], np.zeros(len(records), dtype=np.int64)),
        "node": (records.nodes, records.node),
        "reason": ([str(each) for each in reasons], records.reason + 1),
        "reason_code": ([each.main_code for each in reasons], records.reason + 1),
        "reason_fields": (
            [json.dumps(fields_json(each), sort_keys=True) for each in reasons],
            records.reason + 1,
        ),
    }
    for name in ("step", "attempt", "repeat"):
        columns[name] = [getattr(each, name) for each in records.executions], records.execution
    for place, name in enumerate(Measurand._fields):
        columns[name] = [each[place] for each in records.measurands], records.measurand
    return {
        name: (pl.Series(values, dtype=kind).cast(texts if kind == pl.String else kind), numbers)
        for name, (values, numbers) in columns.items()
        for kind in (SCHEMA[name],)
    }


def _rows(records: Records, columns: _Columns, rows: slice) -> pl.DataFrame:
    found: dict[str, Any] = {
        "value": pl.Series(records.value[rows]).fill_nan(None),
        "valid": records.valid[rows],
        **{name: values.gather(numbers[rows]) for name, (values, numbers) in columns.items()},
    }
    return pl.DataFrame({name: found[name] for name in SCHEMA})
