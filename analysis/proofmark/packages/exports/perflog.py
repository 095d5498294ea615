"""Perflogs: the performance logs of ReFrame."""

from __future__ import annotations

import csv
from pathlib import Path

from proofmark.common.files import replacing
from proofmark.common.text import csv_cell
from proofmark.judge.verdict import Result, Verdict
from proofmark.judge.verdict_files import SINGLE_RUN, figure_name
from proofmark.records.columns import Records
from proofmark.report.export import Export
from proofmark.runs.run import Run

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


class Perflog(Export):
    """Writes performance logs as ReFrame writes them."""

    content = "performance logs as ReFrame writes them"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write one log for each case, in ``<system>/<partition>/``."""
        lines: dict[Path, list[tuple[str, ...]]] = {}
        for result in verdict.results:
            record = result.record
            path = folder / record.system / record.partition / f"{record.case}.log"
            lines.setdefault(path, []).append(_perf(run, result))
        for path, rows in lines.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
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
