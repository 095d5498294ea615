"""The records of a run as CSV."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from proofmark.common.files import write_whole
from proofmark.common.text import csv_cell
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Records
from proofmark.report.export import Export, labelled
from proofmark.runs.run import Run


class Csv(Export):
    """Writes all records, as one table."""

    content = "all records, as one table"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``records.csv``."""
        path = folder / "records.csv"
        texts = pl.col(pl.String).map_elements(csv_cell, return_dtype=pl.String)
        write_whole(path, labelled(run, records, verdict).with_columns(texts).write_csv())
        return [path]
