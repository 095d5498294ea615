"""Exports all records as one table: CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from proofmark.common.files import (
    parquet,
    write_atomic,
    write_atomic_bytes,
)
from proofmark.common.text import csv_cell
from proofmark.judge.verdict import Verdict
from proofmark.packages.exports.export import Export, labelled
from proofmark.records.columns import Records
from proofmark.runs.run import Run


class Csv(Export):
    """Writes all records, as one table."""

    content = "all records, as one table"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``records.csv``."""
        path = folder / "records.csv"
        texts = pl.col(pl.String).map_elements(csv_cell, return_dtype=pl.String)
        write_atomic(path, labelled(run, records, verdict).with_columns(texts).write_csv())
        return [path]


class Parquet(Export):
    """Writes all records, as one table."""

    content = "all records, as one table"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``records.parquet``."""
        path = folder / run.files.records.name
        write_atomic_bytes(path, parquet(labelled(run, records, verdict)))
        return [path]
