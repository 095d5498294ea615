"""The command ``export``: the base class of its formats, and the table that some of them write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from proofmark.cli.command import Command, run_argument
from proofmark.cli.inputs import run_to_show
from proofmark.cli.output import print_line
from proofmark.common.errors import bad_input
from proofmark.common.files import new_folder
from proofmark.common.plugins import Plugins
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.records.columns import Records
from proofmark.records.parquet_table import table
from proofmark.records.read import files_of_executions
from proofmark.records.stored_readings import stored_or_read
from proofmark.runs.run import Run


class Export(ABC):
    """A format of ``proofmark export``.

    Attributes:
        content: what its files have, for the help of the command.
    """

    content: ClassVar[str]

    @abstractmethod
    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write the run into `folder`, and return the files; none without results of the format.

        Raises:
            BadInput: the format cannot represent the run.
        """


EXPORTS = Plugins(Export, "proofmark.packages.exports.export", "--format")
"""All formats: those of this package and of sites, by entry points of this group."""


def export(options: Namespace) -> int:
    """Write a run in the format of another program.

    An export that fails, or that writes no file, leaves no new folder.
    """
    form = EXPORTS.get(options.format)()  # an unknown format costs no judgement
    run = run_to_show(options.folder)
    records, answer = read_and_judge(run, stored_or_read)
    with new_folder(options.output):
        written = form.write(run, records, answer, options.output)
    for path in written:
        print_line(f"{path}")
    if not written:
        found = f"{options.format}: the run {run.id} has no results for this format"
        raise bad_input("--format", "", found, "a run with such results")
    return 0


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


def _arguments(parser: ArgumentParser) -> None:
    run_argument(parser, optional=True)
    parser.add_argument("--format", required=True, help="one of the formats above")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FOLDER")


def _formats() -> str:
    """Return the formats for the help of the command."""
    lines = (f"  {name:<12}{EXPORTS.get(name).content}" for name in EXPORTS.names())
    return "\n".join(("formats:", *lines))


COMMANDS = {
    "export": Command(
        export, "export runs/latest-local --format csv -o csv", _arguments, listing=_formats
    )
}
