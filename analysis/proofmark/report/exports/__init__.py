"""The formats of ``proofmark export``: their base class, and the table that some of them write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from proofmark.common.files import new_folder
from proofmark.common.plugins import Plugins
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.records.columns import Records
from proofmark.records.parquet_table import table
from proofmark.records.read import files_of_executions
from proofmark.runs.run import Run


class Export(ABC):
    """A format of ``proofmark export``.

    Attributes:
        name: of a format of the kit; that of a site has the name of its entry point.
        content: what its files have, for the help of the command.
    """

    name: ClassVar[str]
    content: ClassVar[str]

    @abstractmethod
    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write the run into `folder`, and return the files; none without results of the format.

        Raises:
            BadInput: the format cannot represent the run.
        """


EXPORTS = Plugins(Export, "proofmark.report.exports", "--format", named=True)
"""All formats: those of the kit, and those of other packages by entry points of this group."""


def export(name: str, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    """Write the run in the format `name` into `folder`; return the files.

    An export that fails, or that writes no file, leaves no new folder.

    Raises:
        BadInput: there is no such format, a file cannot be written, or the format cannot represent
            the run.
    """
    format_of_name = EXPORTS.get(name)()
    with new_folder(folder):
        return format_of_name.write(run, records, verdict, folder)


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
