"""The measurements of pairs of hosts, compared with what each pair should reach."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ALONE, MEASURED, MESSAGE_SIZE
from proofmark.common.text import measure
from proofmark.judge.aggregate import Aggregates
from proofmark.packages.fabric.elements import NONE, Paths
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step
from proofmark.records.columns import Floats, Measurand, Numbers

LEAST_CLASS = 6
"""The least number of like measurements that are compared with each other."""
_EQUAL = 1e-3
"""Rates whose logarithms differ by less are equal."""
LEAST_SPREAD = 0.002
"""The least assumed spread of like measurements, as a part of their value."""
_ROUNDING = 1 + 1e-9
"""Two rates are equal if their ratio is below this factor: they differ by rounding only."""


@dataclass(frozen=True)
class PairSeries:
    """What was measured: one metric of one case, of pairs together or alone.

    Attributes:
        benchmark: the part of the case.
        unit: of the values.
        better: ``higher`` or ``lower``.
        one_way: whether the data flow only from the first host of a pair to the second.
        alone: whether pairs were measured without others on their links.
    """

    case: str
    benchmark: str
    metric: str
    unit: str
    better: str
    one_way: bool
    alone: bool
    mode: str = ""

    @property
    def rate(self) -> bool:
        """Whether it is a rate of data, which depends on how links are shared."""
        return measure(self.unit)[0] == "byte/s"


@dataclass(frozen=True, eq=False)
class Samples:
    """The measurements of pairs, in arrays of shape (measurements,).

    Attributes:
        pairs: the numbers of the hosts, the sender first; shape (measurements, 2).
        round: the number of the round; the pairs of a round measured at the same time.
        series: the number of the series.
        value: the measured value, greater than 0; NaN for a pair that moved data, but whose value
            is not valid.
        of: the series by number.
    """

    pairs: Numbers
    round: Numbers
    series: Numbers
    value: Floats
    of: tuple[PairSeries, ...]

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Expected:
    """What measurements should reach, in arrays of shape (measurements,).

    Attributes:
        path: the links of the measurement, `NONE` for none; shape (measurements, links).
        slack: the logarithm of how much slower each of these links may become before the
            measurement becomes slower: 0 for a link that limits it, or whose rate is not known.
        share: the share of the links that the measurement gets, in rates of the link of a node.
        log_value: the logarithm of the value, greater if better.
        like: the number of the class of like measurements; -1 without a class. Like measurements
            agree in series, distance and share of the links.
    """

    path: Numbers
    slack: Floats
    share: Floats
    log_value: Floats
    like: Numbers


def expected(samples: Samples, paths: Paths) -> Expected:
    """Return the links and the class of each measurement."""
    forward = paths.paths(samples.pairs)
    back = paths.paths(samples.pairs[:, ::-1])
    one_way = np.array([each.one_way for each in samples.of], dtype=bool)[samples.series]
    back[one_way] = NONE
    path = np.concatenate([forward, back], axis=1)
    share, slack = shares(samples.round, path, paths.capacity)
    time = np.array([not each.rate for each in samples.of], dtype=bool)[samples.series]
    share[time], slack[time] = 1.0, 0.0
    better = np.array([1.0 if each.better == "higher" else -1.0 for each in samples.of])
    distance = paths.distance(samples.pairs)
    keys = np.stack([samples.series, distance, np.round(100 * np.minimum(share, 9)).astype(int)])
    _, like = np.unique(keys, axis=1, return_inverse=True)
    known = np.isfinite(samples.value)
    like = like.reshape(len(samples))
    count = np.bincount(like[known], minlength=int(like.max(initial=0)) + 1)
    return Expected(
        path=path,
        slack=slack,
        share=share,
        log_value=better[samples.series] * np.log(samples.value),
        like=np.where(known & (count[like] >= LEAST_CLASS), like, NONE),
    )


def shares(rounds: Numbers, path: Numbers, capacity: Floats) -> tuple[Floats, Floats]:
    """Return the share of the links that each measurement gets, and the slack of its links.

    Args:
        rounds: the round of each measurement.
        path: its links, `Expected.path`: those of the data, then those of the data that return.
        capacity: the rate of each link, in rates of the link of a node.

    Returns:
        `Expected.share` and `Expected.slack`.
    """
    forward, back = np.split(path, 2, axis=1)
    share = np.ones(len(rounds))
    slack = np.zeros((2, *forward.shape))
    order = np.argsort(rounds, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(rounds[order])) + 1):
        returns = members[back[members, 0] != NONE]
        flows = np.concatenate([forward[members], back[returns]])
        rates = fair_rates(flows, capacity)
        of_flows = _slack(flows, rates, capacity)
        share[members] = rates[: len(members)]
        share[returns] = np.minimum(share[returns], rates[len(members) :])
        # Both directions move the same bytes, so the slower one decides.
        lead = np.log(rates / share[np.concatenate([members, returns])])
        of_flows += np.where(lead > _EQUAL, lead, 0.0)[:, None]
        slack[0, members], slack[1, returns] = np.split(of_flows, [len(members)])
    return share, np.concatenate([slack[0], slack[1]], axis=1)


def _slack(flows: Numbers, rates: Floats, capacity: Floats) -> Floats:
    """Return how much slower each link of a flow may become before the flow does.

    The slack is the logarithm of the rate that the flow would get from this link alone, with the
    other flows at their rates, divided by its rate.
    """
    used, inverse = np.unique(flows, return_inverse=True)
    local = inverse.reshape(flows.shape)
    each = np.repeat(rates[:, None], flows.shape[1], axis=1)
    load = np.bincount(local.ravel(), weights=each.ravel())
    largest = np.zeros(len(used))
    np.maximum.at(largest, local.ravel(), each.ravel())
    at_most = np.bincount(local.ravel(), weights=(each >= largest[local] * 0.999).ravel())
    known = np.where(used == NONE, np.inf, capacity[used])
    with np.errstate(invalid="ignore"):
        spare = np.maximum(largest + (known - load) / np.maximum(at_most, 1), largest)
        slack = np.log(spare[local] / each)
    slack[~np.isfinite(known[local])] = 0.0
    found: Floats = np.where(slack < _EQUAL, 0.0, slack)
    return found


@dataclass(frozen=True, eq=False)
class Deviations:
    """How far each measurement is from its class, in arrays of shape (measurements,).

    Attributes:
        residual: the logarithm of measured ÷ usual, negative if worse; 0 without a class.
        spread: the usual distance from 0.
    """

    residual: Floats
    spread: Floats


def deviations(
    samples: Samples, about: Expected, counting: NDArray[np.bool_], change: Floats | float = 0.0
) -> Deviations:
    """Return the distance of each measurement from the usual value of its class.

    Usual value and spread of a class follow from its better measurements: from the quantiles 0.7
    and 0.9, as of a normal distribution. So up to 60 % of a class may be slow. The spread of a
    measurement is that of its class or of its round, if this is larger: a noisy round counts less.

    Args:
        counting: the measurements that no slow element explains.
        change: the logarithm by which known slow elements change the share of each measurement.
    """
    value = about.log_value - change
    residual, spread = np.zeros(len(samples)), np.full(len(samples), LEAST_SPREAD)
    for members in _groups(about.like):
        chosen = members[counting[members]]
        if len(chosen) < LEAST_CLASS:
            chosen = members
        centre, of_class = _upper(value[chosen])
        residual[members] = value[members] - centre
        spread[members] = np.maximum(spread[members], of_class)
    compared = np.where(about.like == NONE, NONE, samples.round * len(samples.of) + samples.series)
    for members in _groups(compared):
        if len(members) >= 4 * LEAST_CLASS:
            spread[members] = np.maximum(spread[members], _upper(residual[members])[1])
    return Deviations(residual, spread)


def _upper(values: Floats) -> tuple[float, float]:
    """Return centre and standard deviation of the normal distribution with the upper quantiles."""
    seven, nine = np.quantile(values, [0.7, 0.9])
    spread = (nine - seven) / (1.2816 - 0.5244)
    return float(seven - 0.5244 * spread), float(spread)


def _groups(numbers: Numbers) -> Sequence[Numbers]:
    """Return the places of each number that is not `NONE`."""
    order = np.argsort(numbers, kind="stable")
    order = order[numbers[order] != NONE]
    if not len(order):
        return []
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def fair_rates(paths: Numbers, capacity: Floats) -> Floats:
    """Return the max-min fair rate of each flow.

    The rates of all flows rise together. A flow stops when a link of it is full (progressive
    filling: D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2).

    Args:
        paths: the links of each flow, of shape (flows, links of a path), `NONE` for no link.
        capacity: the rate of each link; infinite if it does not limit any flow.

    Returns:
        The rates, of shape (flows,), in the unit of `capacity`.
    """
    used, inverse = np.unique(paths, return_inverse=True)
    local = inverse.reshape(paths.shape)
    absent = used == NONE
    free = np.where(absent, np.inf, capacity[used]).astype(np.float64)
    rates = np.full(len(paths), np.inf)
    active = np.arange(len(paths))
    while len(active):
        links = local[active]
        count = np.bincount(links.ravel(), minlength=len(used))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(count > 0, free / count, np.inf)
        share[absent] = np.inf
        least = share[links].min(axis=1)
        lowest = least.min()
        if not np.isfinite(lowest):
            break
        stops = least <= lowest * _ROUNDING
        rates[active[stops]] = lowest
        filled = np.bincount(links[stops].ravel(), minlength=len(used))
        free = np.maximum(free - lowest * filled, 0.0)
        active = active[~stops]
    return rates


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measurements of the rounds of a run.

    Attributes:
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
