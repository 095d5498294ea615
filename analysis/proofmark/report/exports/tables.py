"""Tables of the records (CSV, Parquet), and the verdict in JUnit's form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from proofmark.common.files import replacing, write_whole, write_whole_bytes
from proofmark.common.parquet import parquet
from proofmark.common.text import csv_cell
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.judge.verdict_files import write_junit
from proofmark.records.columns import Records
from proofmark.records.parquet_table import table
from proofmark.report.exports.formats import Writer
from proofmark.runs.adopted import files_of_executions
from proofmark.runs.run import Run


def _labelled(run: Run, records: Records, verdict: Verdict) -> pl.DataFrame:
    """Return the table of the records with further columns.

    ``single_run`` is true for the only measurement of a valid figure. ``degraded`` is the label of
    a figure of fewer nodes than intended; empty for all others. ``verdict`` is that of the figure;
    empty for a record that does not count. ``file`` is the output with the value.
    """
    figures = verdict.results.aggregates
    single = np.zeros(len(records), dtype=bool)
    single[figures.order[figures.first[figures.single_run]]] = True
    labels = verdict.results.degraded
    words = np.full(len(records), "", dtype=object)
    words[figures.order] = np.array(WORDS, dtype=object)[
        np.repeat(verdict.results.verdict, figures.count)
    ]
    file = files_of_executions(run)
    files = [file(each.step, each.attempt) for each in records.executions]
    return table(records).with_columns(
        pl.Series("single_run", single),
        pl.col("step").replace_strict(labels, default="", return_dtype=pl.String).alias("degraded"),
        pl.Series("verdict", words, dtype=pl.String),
        pl.Series("file", files, dtype=pl.String).gather(records.execution),
    )


def _csv(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    path = folder / "records.csv"
    texts = pl.col(pl.String).map_elements(csv_cell, return_dtype=pl.String)
    write_whole(path, _labelled(run, records, verdict).with_columns(texts).write_csv())
    return [path]


def _parquet(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    path = folder / run.files.records.name
    write_whole_bytes(path, parquet(_labelled(run, records, verdict)))
    return [path]


def _junit(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    path = folder / run.files.junit.name
    with replacing(path) as file:
        write_junit(file, verdict)
    return [path]


WRITERS: Mapping[str, Writer] = {"csv": _csv, "parquet": _parquet, "junit": _junit}
