"""The table of the records of a run with the verdict and the labels of each."""

from __future__ import annotations

import numpy as np
import polars as pl

from proofmark.judge.verdict import WORDS, Verdict
from proofmark.records.columns import Records, table
from proofmark.runs.adopted import files_of_executions
from proofmark.runs.run import Run


def labelled(run: Run, records: Records, verdict: Verdict) -> pl.DataFrame:
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
