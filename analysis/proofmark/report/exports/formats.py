"""The formats of ``proofmark export``. The module of a format is imported when it is written."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from proofmark.common.files import new_folder
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Records
from proofmark.runs.run import Run

Writer = Callable[[Run, Records, Verdict, Path], list[Path]]
"""Writes a run into a folder, and returns the files. It returns none if the run has no results of
the format."""

FORMATS = {
    "csv": ("tables", "all records, as one table"),
    "hpl": ("hpl", "input, output, script and binding of each HPL step, for a submission"),
    "influx": ("influx", "all records in the line protocol of InfluxDB"),
    "junit": ("tables", "the verdict of each figure as a test case"),
    "nhc": ("nhc", "the accepted state of the nodes as checks of LBNL Node Health Check"),
    "parquet": ("tables", "all records, as one table"),
    "perflog": ("perflog", "performance logs as ReFrame writes them"),
    "prometheus": ("prometheus", "verdict and figures for node_exporter's textfile collector"),
}
"""The module and the content of each format. The module has the writer in `WRITERS`."""


def export(name: str, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    """Write the run in the format `name` (a key of `FORMATS`) into `folder`; return the files.

    An export that fails, or that writes no file, leaves no new folder.

    Raises:
        BadInput: a file cannot be written, or the format cannot represent the run.
        KeyError: `name` is not in `FORMATS`.
    """
    writer: Writer = import_module(f"{__package__}.{FORMATS[name][0]}").WRITERS[name]
    with new_folder(folder):
        return writer(run, records, verdict, folder)
