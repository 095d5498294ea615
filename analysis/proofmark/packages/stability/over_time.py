"""Compares the end of a run with its beginning: a node that becomes slower under load.

The first and the last hour are compared, or the first and the last quarter of a run of less than
four hours. A run of less than one hour is not compared: the speed of a node also changes for some
seconds or minutes, for example when a hypervisor moves its processors.

The noise of a repeat is measured by the differences of successive repeats of all like figures: a
slow change over hours hardly adds to them (von Neumann, Annals of Mathematical Statistics 12,
1941).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proofmark.cases.case import BENCHMARK, TELEMETRY, THROTTLED
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import SENSOR
from proofmark.common.message import NOTHING, Message, joined, localized
from proofmark.common.translation import _
from proofmark.judge.additions import AddedJudge, Finding
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.confidence import quantile_of_t
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL, MAD_TO_SIGMA, level_of_one
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import OVER_TIME, Judgement
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Floats, Mask, Record
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Cell, Cells, Section, numeric, tabled
from proofmark.report.words import count, number, pairs
from proofmark.runs.run import Run

NAME = "over_time"
"""The name of the judge, and the key of its finding in ``verdict.json``."""
WINDOW_S = 3600.0
LEAST_RUN_S = 3600.0
LEAST_REPEATS = 6
"""The least number of repeats of a figure that is compared: three at the beginning and the end."""
LEAST_CHANGE = 0.03
"""A change of less than 3 % is accepted at any noise."""
_LEAST_OF_PART = 3
_EFFICIENCY = 0.37
"""The degrees of freedom of a median absolute deviation, per value (Rousseeuw and Croux, Journal of
the American Statistical Association 88, 1993)."""


@dataclass(frozen=True)
class ChangeOverTime:
    """The change of one figure from the beginning of the run to its end.

    Attributes:
        first, last: the values of the first and the last part, in the unit of the figure.
        noise: the standard deviation of one repeat, as a part of its value.
        least: the least ratio change that counts: further from 1 is no chance.
    """

    figure: int
    node: str
    first: tuple[float, ...]
    last: tuple[float, ...]
    ratio: float
    noise: float
    least: float
    worse: bool
    evidence: tuple[Message, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``; `OverTime.as_json` adds the name of the figure."""
        return {
            "node": self.node,
            "first": list(self.first),
            "last": list(self.last),
            "ratio": self.ratio,
            "noise": self.noise,
            "least": self.least,
            "worse": self.worse,
            "evidence": list(self.evidence),
        }

    def judgement(self, window_s: float) -> Judgement:
        """Return the judgement of the figure: a FAIL if it became worse, else UNJUDGED."""
        first = float(np.median(self.first))
        minutes = f"{window_s / 60:.3g}"
        slower = Message(
            "since-start",
            ratio=f"{self.ratio:.3g}",
            minutes=minutes,
            noise=f"{100 * self.noise:.2g}",
            least=f"{100 * self.least:.2g}",
        )
        reason, source = joined((slower, *self.evidence)), Message("first-minutes", minutes=minutes)
        outcome = "FAIL" if self.worse else "UNJUDGED"
        ratios = tuple(value / first for value in self.last) if self.worse else ()
        return Judgement(
            OVER_TIME,
            source,
            outcome,
            reason,
            value=first,
            ratio=self.ratio,
            at_least=1 - self.least,
            at_most=1 + self.least,
            ratios=ratios,
        )


@dataclass(frozen=True)
class OverTime(Finding):
    """The comparison of the end of a run with its beginning.

    Attributes:
        figures: of the run.
        window_s: the length of either part in seconds.
        seconds: the time from the first to the last measurement.
        changes: of all figures with enough repeats, by the number of the figure.
    """

    figures: Aggregates
    window_s: float = 0.0
    seconds: float = 0.0
    changes: Mapping[int, ChangeOverTime] = field(default_factory=dict)

    @property
    def worse(self) -> tuple[ChangeOverTime, ...]:
        """The figures that became worse, the worst first."""
        worse = (change for change in self.changes.values() if change.worse)
        return tuple(sorted(worse, key=lambda change: (-abs(math.log(change.ratio)), change.node)))

    def of_figures(self) -> dict[int, Judgement]:
        """Return the judgement of each figure that became worse, by figure."""
        return {each.figure: each.judgement(self.window_s) for each in self.worse}

    def as_json(self) -> dict[str, Any]:
        """Return the figures that became worse, for ``verdict.json``."""
        about = [self.figures.record(change.figure) for change in self.worse]
        found = {
            "window_s": self.window_s,
            "seconds": self.seconds,
            "compared": len(self.changes),
            "worse": [
                {"case": record.case, "metric": record.metric, "step": record.step}
                | change.as_json()
                for record, change in zip(about, self.worse, strict=True)
            ],
        }
        return {NAME: found}


class OverTimeJudge(AddedJudge):
    """Judges the figures of a run of an hour or more by their own beginning."""

    def judge(self, evidence: Evidence, fleet: Fleet) -> OverTime | None:
        """Return what became worse; None if no figure was compared."""
        found = over_time(evidence.figures, evidence.benchmarks, evidence.family_level)
        return found if found.changes else None


Series = dict[int, tuple[Floats, Floats]]
"""The times and values of each figure, in the order of time. Shapes (repeats,)."""


def over_time(
    figures: Aggregates, benchmarks: Benchmarks, family_level: float = FAMILY_LEVEL
) -> OverTime:
    """Return the change of each figure with enough repeats in the first and in the last part.

    Args:
        figures: of a run. The digits of a result and the sensors are not compared.
        benchmarks: the cases; their metrics state whether higher or lower is better.
        family_level: probability that any figure of a steady machine is reported.
    """
    executions = figures.records.executions
    starts = np.array([each.start for each in executions], dtype=np.float64)
    times = starts[figures.records.execution[figures.order]]
    chosen = figures.valid & (figures.count >= LEAST_REPEATS) & ~figures.having(np.isnan(times))
    timed = times[np.repeat(chosen, figures.count)]
    if not len(timed):
        return OverTime(figures)
    begin, end = float(timed.min()), float(timed.max())
    if end - begin < LEAST_RUN_S:
        return OverTime(figures)
    window = min(WINDOW_S, (end - begin) / 4)
    series = {
        figure: (when, values)
        for figure, (when, values) in _series(figures, chosen, times)
        if when[0] <= begin + window and when[-1] >= end - window
    }
    better = {figure: each for figure in series if (each := _better(figures, benchmarks, figure))}
    noise = _noise(figures, {figure: series[figure] for figure in better})
    level = level_of_one(family_level, len(better))
    changes = {}
    for figure, direction in better.items():
        first, last = _parts(*series[figure], begin + window, end - window)
        of_repeat, differences = noise[int(figures.identity[figure])]
        least = _least(of_repeat, differences, len(first), len(last), level)
        ratio = float(np.exp(np.median(np.subtract.outer(np.log(last), np.log(first)))))
        change = 1 - ratio if direction == "higher" else 1 - 1 / ratio
        node = figures.node_of(figure)
        worse = change > least
        evidence = _evidence(figures, series, figure, window, begin, end) if worse else ()
        changes[figure] = ChangeOverTime(
            figure=figure,
            node=node,
            first=first,
            last=last,
            ratio=ratio,
            noise=of_repeat,
            least=least,
            worse=worse,
            evidence=evidence,
        )
    return OverTime(figures, window, end - begin, changes)


def _series(
    figures: Aggregates, chosen: Mask, times: Floats
) -> Iterator[tuple[int, tuple[Floats, Floats]]]:
    for figure in np.flatnonzero(chosen).tolist():
        first, members = int(figures.first[figure]), figures.members(figure)
        own = times[first : first + len(members)]
        order = np.argsort(own, kind="stable")
        yield figure, (own[order], figures.records.value[members][order])


def _better(figures: Aggregates, benchmarks: Benchmarks, figure: int) -> str | None:
    """Return the better direction of a figure of a rate or time; None for any other figure."""
    about = figures.records.measurands[int(figures.measurand[figure])]
    case = benchmarks.cases.get(about.case)
    metric = case.metrics.get(about.metric) if case else None
    if metric is None or metric.same_digits or about.metric in TELEMETRY:
        return None
    low, _ = figures.ranges
    return metric.better if low[figure] > 0 else None


def _noise(figures: Aggregates, series: Series) -> dict[int, tuple[float, int]]:
    """Return the noise of a repeat, and the number of differences, by measured quantity."""
    differences: dict[int, list[Floats]] = {}
    for figure, (_when, values) in series.items():
        of_quantity = differences.setdefault(int(figures.identity[figure]), [])
        of_quantity.append(np.abs(np.diff(values)) / np.median(values))
    joined = {quantity: np.concatenate(parts) for quantity, parts in differences.items()}
    return {
        quantity: (float(MAD_TO_SIGMA * np.median(every) / math.sqrt(2)), len(every))
        for quantity, every in joined.items()
    }


def _parts(
    times: Floats, values: Floats, first_end: float, last_begin: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    first = max(_LEAST_OF_PART, int((times <= first_end).sum()))
    last = max(_LEAST_OF_PART, int((times >= last_begin).sum()))
    half = len(values) // 2
    first, last = min(first, half), min(last, half)
    return tuple(values[:first].tolist()), tuple(values[len(values) - last :].tolist())


def _least(noise: float, differences: int, first: int, last: int, level: float) -> float:
    """Return the least change that counts: the one-sided quantile of Student's t at `level`.

    The standard error of a median is 1.2533 times that of a mean.
    """
    t = quantile_of_t(level, max(2.0, _EFFICIENCY * differences))
    error = 1.2533 * noise * math.sqrt(1 / first + 1 / last)
    return max(LEAST_CHANGE, t * error)


def _evidence(
    figures: Aggregates, series: Series, figure: int, window: float, begin: float, end: float
) -> tuple[Message, ...]:
    """Return how the sensors of the node of a figure changed while its case ran."""
    record = figures.record(figure)
    found = []
    for other, (times, values) in series.items():
        if figures.node[other] != figures.node[figure]:
            continue
        sensor = figures.record(other)
        settings = {key: value for key, value in sensor.parameters.items() if key != SENSOR}
        same = settings.items() <= record.parameters.items()
        if sensor.benchmark != BENCHMARK or sensor.case != record.case or not same:
            continue
        first, last = _parts(times, values, begin + window, end - window)
        found.append(_sensor(sensor.metric, sensor.unit, first, last))
    return tuple(filter(None, found))


def _sensor(metric: str, unit: str, first: Sequence[float], last: Sequence[float]) -> Message:
    before, after = float(np.median(first)), float(np.median(last))
    if metric == THROTTLED and not after > before:
        return NOTHING
    values = {"before": f"{before:.4g}", "after": f"{after:.4g}", "unit": unit}
    return Message("sensor-changed", metric=metric, **values)


class OverTimePage(Addition):
    """Adds the comparison to the page of a long run."""

    def of_run(self, run: Run, verdict: Verdict) -> RunAddition | None:
        """Return the section; None for a run whose end was not compared."""
        found = verdict.added.get(NAME)
        return ChangesInRun(found) if isinstance(found, OverTime) else None


@dataclass(frozen=True)
class ChangesInRun(RunAddition):
    """The section of a long run: its end compared with its beginning."""

    found: OverTime

    def sections(self) -> Iterator[AddedSection]:
        """Yield the comparison."""
        yield AddedSection(
            Section("over-time", _("Over time"), (_changes(self.found),)), "file-drivers"
        )


def _changes(compared: OverTime) -> Block:
    minutes = number(compared.window_s / 60, 3)
    about = _(
        "The last {minutes} minutes of {hours} hours are compared with the first "
        "{first}: {figures} with enough repeats."
    ).format(
        minutes=minutes,
        hours=number(compared.seconds / 3600, 3),
        first=minutes,
        figures=count(len(compared.changes), "figure"),
    )
    if not compared.worse:
        none = _("None became worse by more than the noise of its repeats.")
        return Block(paragraphs=(about, none))
    rows = [_row(change, compared.figures.record(change.figure)) for change in compared.worse]
    columns = (
        _("Node"),
        _("Figure"),
        numeric(_("First")),
        numeric(_("Last")),
        numeric(_("Ratio")),
        numeric(_("Noise")),
        _("Sensors"),
    )
    caption = _("Figures that became worse")
    return tabled(caption, columns, rows, about, rest=_("The list is in verdict.json."))


def _row(change: ChangeOverTime, record: Record) -> Cells:
    settings = tuple(filter(None, [pairs(record.parameters)]))
    return (
        Cell(change.node, "strong"),
        Cell(f"{record.case} {record.metric}", details=settings),
        f"{number(float(np.median(change.first)))} {record.unit}",
        f"{number(float(np.median(change.last)))} {record.unit}",
        number(change.ratio, 3),
        f"{number(100 * change.noise, 2)} %",
        "; ".join(map(localized, change.evidence)) or _("no sensor"),
    )
