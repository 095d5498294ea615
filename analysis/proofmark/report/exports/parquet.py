"""The records of a run as Parquet."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.files import parquet, write_whole_bytes
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Records
from proofmark.report.export import Export, labelled
from proofmark.runs.run import Run


class Parquet(Export):
    """Writes all records, as one table."""

    content = "all records, as one table"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``records.parquet``."""
        path = folder / run.files.records.name
        write_whole_bytes(path, parquet(labelled(run, records, verdict)))
        return [path]
