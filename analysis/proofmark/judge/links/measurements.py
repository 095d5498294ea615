"""The measurements of the rounds of pairs of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ALONE, MEASURED, MESSAGE_SIZE
from proofmark.common.units import measure
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.links.paths import Paths
from proofmark.judge.links.samples import PairSeries, Samples
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step
from proofmark.records.columns import Measurand, Numbers


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measurements of the rounds of a run.

    Attributes:
        samples: the measurements.
        figures: the number of the figure of each measurement; shape (measurements,).
        steps: the step of each round.
    """

    samples: Samples
    figures: Numbers
    steps: tuple[Step, ...]


def measurements(
    figures: Aggregates, plan: Plan, benchmarks: Benchmarks, paths: Paths
) -> Measurements | None:
    """Return the figures of the rounds of pairs; None if there are none.

    A figure is one measurement: the median of its repeats, NaN if it is INVALID. A figure without
    any value is left out: its pair moved no data that shared links. Of each case, one metric
    counts: its rate with the largest messages, or its time with the smallest.
    """
    places = _pairs(plan.steps(), paths)
    if not len(figures):
        return None
    records = figures.records
    series_of, series = _series(figures, benchmarks)
    rounds: dict[str, int] = {}
    steps: list[Step] = []
    rows: list[tuple[int, int, int, int, int]] = []
    first = figures.order[figures.first]
    valued = np.add.reduceat(np.isfinite(records.value[figures.order]), figures.first) > 0
    chosen = np.flatnonzero(valued & ~(figures.median <= 0))
    for figure in chosen[series_of[figures.measurand[chosen]] >= 0].tolist():
        name = records.executions[records.execution[first[figure]]].step
        if (place := places.get(name)) is None:
            continue
        step, one, other = place
        if step.id not in rounds:
            rounds[step.id] = len(steps)
            steps.append(step)
        rows.append(
            (figure, int(series_of[figures.measurand[figure]]), rounds[step.id], one, other)
        )
    if not rows:
        return None
    table = np.array(rows, dtype=np.int64)
    used, numbers = np.unique(table[:, 1], return_inverse=True)
    samples = Samples(
        pairs=table[:, 3:],
        round=table[:, 2],
        series=numbers,
        value=figures.median[table[:, 0]],
        of=tuple(series[number] for number in used.tolist()),
    )
    return Measurements(samples, table[:, 0], tuple(steps))


def _pairs(steps: Iterable[Step], paths: Paths) -> dict[str, tuple[Step, int, int]]:
    """Return the step and the numbers of the hosts of each pair of a round, by its folder."""
    found: dict[str, tuple[Step, int, int]] = {}
    for step in steps:
        if step.round is None:
            continue
        for instance, hosts in step.instances().items():
            if all(host in paths.number for host in hosts):
                one, other = (paths.number[host] for host in hosts)
                found[str(instance)] = step, one, other
    return found


def _series(figures: Aggregates, benchmarks: Benchmarks) -> tuple[Numbers, list[PairSeries]]:
    """Return the number of the series of each measurand, -1 for none, and the series."""
    measurands = figures.records.measurands
    groups: dict[Measurand, list[int]] = {}
    for number, each in enumerate(measurands):
        parameters = json.loads(each.parameters)
        if MEASURED in parameters:
            parameters.pop(MESSAGE_SIZE, None)
            same = json.dumps(parameters, sort_keys=True)
            groups.setdefault(each._replace(metric="", unit="", parameters=same), []).append(number)
    of = np.full(len(measurands), -1, dtype=np.int64)
    series: list[PairSeries] = []
    for numbers in groups.values():
        chosen = list(_chosen({number: measurands[number] for number in numbers}, benchmarks))
        if chosen:
            of[chosen] = len(series)
            series.append(_described(measurands[chosen[0]], benchmarks))
    return of, series


def _chosen(measurands: Mapping[int, Measurand], benchmarks: Benchmarks) -> Iterator[int]:
    """Yield the measurands of the metric and size that count, of one case."""
    sizes = {
        number: json.loads(each.parameters).get(MESSAGE_SIZE, 0)
        for number, each in measurands.items()
    }
    for base, better, best in (("byte/s", "higher", max), ("s", "lower", min)):
        metrics = benchmarks.case(next(iter(measurands.values())).case).metrics
        for name, metric in metrics.items():
            of_metric = [number for number, each in measurands.items() if each.metric == name]
            if of_metric and measure(metric.unit)[0] == base and metric.better == better:
                size = best(sizes[number] for number in of_metric)
                yield from (number for number in of_metric if sizes[number] == size)
                return


def _described(measurand: Measurand, benchmarks: Benchmarks) -> PairSeries:
    metric = benchmarks.case(measurand.case).metrics[measurand.metric]
    return PairSeries(
        case=measurand.case,
        benchmark=measurand.benchmark,
        metric=measurand.metric,
        unit=measurand.unit,
        better=metric.better,
        one_way=metric.one_way,
        alone=json.loads(measurand.parameters)[MEASURED] == ALONE,
        mode=measurand.mode,
    )
