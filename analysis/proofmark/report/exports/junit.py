"""The verdict of a run in JUnit's form."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.files import replacing
from proofmark.judge.verdict import Verdict
from proofmark.judge.verdict_files import write_junit
from proofmark.records.columns import Records
from proofmark.report.export import Export
from proofmark.runs.run import Run


class Junit(Export):
    """Writes the verdict of each figure as a test case."""

    content = "the verdict of each figure as a test case"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write one file."""
        path = folder / run.files.junit.name
        with replacing(path) as file:
            write_junit(file, verdict)
        return [path]
