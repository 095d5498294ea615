"""Exports a run as CSV, Parquet, JUnit, perflogs or an HPL submission."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from proofmark.common.files import replacing
from proofmark.common.text import csv_cell
from proofmark.judge.files import SINGLE_RUN, figure_name, write_junit
from proofmark.judge.verdict import Result, Verdict
from proofmark.records.columns import Records
from proofmark.records.table import table
from proofmark.runs.attempts import numbered_execution
from proofmark.runs.run import Run


def export(name: str, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    """Write the run in the format `name` (a key of `FORMATS`) into `folder`; return the files.

    Raises:
        KeyError: `name` is not in `FORMATS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return FORMATS[name](run, records, verdict, folder)


def _labelled(records: Records, verdict: Verdict) -> pl.DataFrame:
    """Return the table of the records with the columns ``single_run`` and ``degraded``.

    ``single_run`` is true for the only measurement of a valid figure. ``degraded`` is the label of
    a figure of fewer nodes than intended; empty for all others.
    """
    figures = verdict.results.aggregates
    single = np.zeros(len(records), dtype=bool)
    single[figures.order[figures.first[figures.single_run]]] = True
    labels = verdict.results.degraded
    return table(records).with_columns(
        pl.Series("single_run", single),
        pl.col("step").replace_strict(labels, default="", return_dtype=pl.String).alias("degraded"),
    )


def _csv(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    path = folder / "records.csv"
    texts = pl.col(pl.String).map_elements(csv_cell, return_dtype=pl.String)
    _labelled(records, verdict).with_columns(texts).write_csv(path)
    return [path]


def _parquet(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    path = folder / run.files.records.name
    _labelled(records, verdict).write_parquet(path)
    return [path]


def _junit(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    path = folder / run.files.junit.name
    with replacing(path) as file:
        write_junit(file, verdict)
    return [path]


PERFLOG = (
    "job_completion_time",
    "system",
    "partition",
    "environ",
    "check_name",
    "info",
    "perf_var",
    "perf_value",
    "perf_ref",
    "perf_lower_thres",
    "perf_upper_thres",
    "perf_unit",
    "result",
)
"""Columns of a perflog, as the file logger of ReFrame writes them, separated by ``|``."""


def _perflog(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    """Write one log for each case, in ``<system>/<partition>/``."""
    lines: dict[Path, list[tuple[str, ...]]] = {}
    for result in verdict.results:
        record = result.record
        path = folder / record.system / record.partition / f"{record.case}.log"
        lines.setdefault(path, []).append(_perf(run, result))
    for path, rows in lines.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="|", lineterminator="\n")
            writer.writerow(PERFLOG)
            writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return sorted(lines)


def _perf(run: Run, result: Result) -> tuple[str, ...]:
    """Return one row; thresholds are fractions of the reference, as in ReFrame."""
    record = result.record
    judged = next((ref for ref in result.references if ref.outcome == result.verdict), None)
    low = judged.at_least - 1 if judged and judged.at_least is not None else None
    high = judged.at_most - 1 if judged and judged.at_most is not None else None
    return (
        run.id,
        record.system,
        record.partition,
        record.environment_hash[:12],
        f"{record.case} {record.benchmark}",
        " ".join([figure_name(result), *(f"({label})" for label in _labels(result))]),
        record.metric,
        *map(_text, (record.value, judged.value if judged else None, low, high)),
        record.unit,
        {"PASS": "pass", "FAIL": "fail", "INVALID": "error"}.get(result.verdict, "unjudged"),
    )


def _labels(result: Result) -> list[str]:
    """Return the labels of a figure in words."""
    return [*filter(None, [result.degraded, SINGLE_RUN if result.single_run else ""])]


def _text(value: float | None) -> str:
    return "null" if value is None else f"{value:g}"


def _hpl(run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    """Copy the files of a submission, for each step with an ``HPL.dat`` and a valid record.

    They are those of the newest execution with a valid record.
    """
    valid = {record.step: record.attempt for record in records if record.valid}
    written: list[Path] = []
    for step, newest in sorted(valid.items()):
        files = run.files.step(step)
        execution = numbered_execution(files, newest)
        if not (execution.folder / "HPL.dat").is_file():
            continue
        target = folder / step
        target.mkdir(parents=True, exist_ok=True)
        for path in files.submitted(execution):
            if path.is_file():
                written.append(Path(shutil.copyfile(path, target / path.name)))
    if written:
        software = run.files.software
        written.append(Path(shutil.copyfile(software, folder / software.name)))
    return written


FORMATS: Mapping[str, Callable[[Run, Records, Verdict, Path], list[Path]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "junit": _junit,
    "perflog": _perflog,
    "hpl": _hpl,
}
