"""Exports of figures with their times: to Prometheus, and as performance logs of ReFrame.

Prometheus: version 0.0.4 of the text exposition format, for the
textfile collector of node_exporter. All values are gauges in base units. The time of the run is a
metric, because the collector refuses samples with a timestamp.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from proofmark import __version__
from proofmark.common.errors import bad_input
from proofmark.common.files import replacing, write_atomic_bytes
from proofmark.common.nodesets import hosts_of
from proofmark.common.text import csv_cell, measure, one_line
from proofmark.judge.results import WORDS
from proofmark.judge.verdict import Result, Verdict
from proofmark.judge.verdict_files import SINGLE_RUN, figure_name
from proofmark.records.columns import Floats, Measurand, Numbers, Records
from proofmark.report.exports import Export
from proofmark.runs.run import Run


def ends(records: Records) -> Floats:
    """Return the end of each execution in seconds since 1970; NaN if it is not known.

    Shape (executions,). It is the end by the clock of the node, else start + duration.
    """
    known = np.array([each.ended for each in records.executions], dtype=np.float64)
    begun = np.array([each.start for each in records.executions], dtype=np.float64)
    lasted = np.array([each.seconds for each in records.executions], dtype=np.float64)
    return np.where(np.isnan(known), begun + lasted, known)


MOST_SERIES = 100_000
"""Time series of one file. 8,305 nodes have five each, 41,525."""
OTHER = "value"
"""The last word of the name of a metric without a base unit. Its label ``unit`` has the unit."""
_UNITS = {
    "s": "seconds",
    "byte": "bytes",
    "byte/s": "bytes_per_second",
    "flop/s": "flops_per_second",
    "update/s": "updates_per_second",
    "operation/s": "operations_per_second",
    "message/s": "messages_per_second",
    "Hz": "hertz",
    "W": "watts",
    "part": "ratio",
}
"""The last words of the name of a metric, by base unit."""
_FIGURE = ("case", "benchmark", "metric", "mode", "placement", "parameters", "environment")
_STATISTICS: Mapping[str, Callable[[list[float]], float]] = {
    "minimum": min,
    "median": statistics.median,
    "maximum": max,
}
_WORD = re.compile(r"[^\s=\"]+")


Samples = Iterable[tuple[tuple[str, ...], float]]
"""The values of the labels of each sample, and its value."""


class _Families(Collector):
    """The metrics of one run. Each sample has its site and partition."""

    def __init__(self, run: Run, records: Records, verdict: Verdict) -> None:
        self._run, self._records, self._verdict = run, records, verdict

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all metrics."""
        plan = self._run.plan
        of_run = {"site": one_line(plan.site), "partition": one_line(plan.partition)}
        for name, help_text, labels, samples in (
            *_of_run(self._run, self._records, self._verdict),
            *_of_nodes(self._verdict),
            *_of_figures(self._verdict),
        ):
            family = GaugeMetricFamily(f"proofmark_{name}", help_text, labels=[*of_run, *labels])
            for values, number in samples:
                family.add_metric([*of_run.values(), *map(one_line, values)], number)
            yield family


Family = tuple[str, str, Sequence[str], Samples]
"""The name of a metric after ``proofmark_``, its help text, its labels and its samples."""


class Prometheus(Export):
    """Writes verdict and figures for node_exporter's textfile collector."""

    content = "verdict and figures for node_exporter's textfile collector"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``proofmark.prom``.

        Raises:
            BadInput: the run has more than `MOST_SERIES` time series.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(run, records, verdict))
        content = generate_latest(registry)
        path = folder / "proofmark.prom"
        series = sum(1 for line in content.splitlines() if not line.startswith(b"#"))
        if series > MOST_SERIES:
            found = f"{series} time series in {run.id}"
            raise bad_input(path, "", found, f"at most {MOST_SERIES}; the format csv has no limit")
        write_atomic_bytes(path, content)
        return [path]


def _of_run(run: Run, records: Records, verdict: Verdict) -> Iterator[Family]:
    code = verdict.exit_code()
    info = {
        "run": run.id,
        "suite": run.plan.suite,
        "origin": " ".join(sorted({each.origin for each in records.measurands})),
        "meaning": verdict.headline().word,
        "version": __version__,
    }
    yield "run_info", "The run that this file describes.", [*info], [(tuple(info.values()), 1)]
    about = "Exit code of proofmark verdict: 0 means that no fault was found."
    yield "run_exit_code", about, (), [((), code)]
    known = ends(records)
    known = known[~np.isnan(known)]
    if known.size:
        end: Samples = [((), float(known.max()))]
        yield "run_end_timestamp_seconds", "End of the last step of the run.", (), end
    results = [((word,), verdict.counts[word]) for word in WORDS]
    yield "run_results", "Figures of the run by verdict.", ("verdict",), results
    coverage = verdict.coverage
    steps = [(("planned",), coverage.expected), (("measured",), coverage.measured)]
    yield "run_steps", "Steps that were planned and measured.", ("state",), steps


def _of_nodes(verdict: Verdict) -> Iterator[Family]:
    results, aggregates = verdict.results, verdict.results.aggregates
    names = aggregates.records.nodes
    counts = np.zeros((len(names), len(WORDS)), dtype=np.int64)
    np.add.at(counts, (aggregates.node, results.verdict), 1)
    by_host: dict[str, Numbers] = {}
    for name, row in zip(names, counts, strict=True):
        for host in hosts_of(name):
            by_host[host] = by_host[host] + row if host in by_host else row
    values = []
    for host, row in sorted(by_host.items()):
        values += [((host, word), int(number)) for word, number in zip(WORDS, row, strict=True)]
    help_text = "Figures that a node measured, alone or with others, by verdict."
    yield "node_results", help_text, ("node", "verdict"), values
    bad = {node.host for node in verdict.bad.nodes}
    marked = [((host,), int(host in bad)) for host in sorted(by_host.keys() | bad)]
    yield "node_bad", "1 for a node that the run found bad, else 0.", ("node",), marked


def _of_figures(verdict: Verdict) -> Iterator[Family]:
    """Yield the counts of verdicts of each case, and the figures.

    The number of series does not grow with the nodes: a figure of many nodes has three series.
    """
    aggregates = verdict.results.aggregates
    measurands = aggregates.records.measurands
    cases: Counter[tuple[str, str]] = Counter()
    pairs, counts = np.unique(
        np.stack([aggregates.measurand, verdict.results.verdict]), axis=1, return_counts=True
    )
    for measurand, word, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        cases[measurands[measurand].case, WORDS[word]] += count
    by_case = []
    for case in sorted({case for case, _ in cases}):
        by_case += [((case, word), cases[case, word]) for word in WORDS]
    yield "case_results", "Figures of a case by verdict.", ("case", "verdict"), by_case
    families: dict[str, dict[tuple[str, ...], list[float]]] = {}
    counting = aggregates.valid & ~np.isnan(aggregates.median)
    for measurand in np.unique(aggregates.measurand[counting]).tolist():
        medians = aggregates.median[(aggregates.measurand == measurand) & counting]
        about = measurands[measurand]
        base, size = measure(about.unit)
        name = _UNITS.get(base, OTHER)
        labels = (*_labels(about), *([about.unit] if name == OTHER else []))
        values = families.setdefault(name, {}).setdefault(labels, [])
        values.extend((medians * size).tolist())
    for name, figures in sorted(families.items()):
        samples = [
            ((statistic, *labels), float(function(values)))
            for labels, values in figures.items()
            for statistic, function in _STATISTICS.items()
        ]
        words = f"Valid figures of the run over all nodes: {name.replace('_', ' ')}."
        further = ("unit",) if name == OTHER else ()
        yield f"figure_{name}", words, ("statistic", *_FIGURE, *further), samples


def _labels(about: Measurand) -> tuple[str, ...]:
    """Return the values of the labels `_FIGURE`."""
    parameters = " ".join(
        f"{key}={_parameter(value)}" for key, value in json.loads(about.parameters).items()
    )
    return (
        *(about.case, about.benchmark, about.metric, about.mode, about.placement),
        *(parameters, about.environment_hash[:12]),
    )


def _parameter(value: object) -> str:
    """Return a value as one word. Other texts are quoted, so that two values never look alike."""
    text = f"{value}"
    return text if _WORD.fullmatch(text) else json.dumps(text)


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
        " ".join([figure_name(result), *(f"({label})" for label in _log_labels(result))]),
        record.metric,
        *map(_text, (record.value, judged.value if judged else None, low, high)),
        record.unit,
        {"PASS": "pass", "FAIL": "fail", "INVALID": "error"}.get(result.verdict, "unjudged"),
    )


def _log_labels(result: Result) -> list[str]:
    """Return the labels of a figure in words."""
    return [*filter(None, [result.degraded, SINGLE_RUN if result.single_run else ""])]


def _text(value: float | None) -> str:
    return "null" if value is None else f"{value:g}"
