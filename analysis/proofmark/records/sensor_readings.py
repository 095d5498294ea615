"""Figures of the sensors of a node during one execution of a step (docs/design/load.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from proofmark.cases.reader.engine import Reading
from proofmark.cases.telemetry import BENCHMARK, CLOCK, POWER, TELEMETRY, TEMPERATURE, THROTTLED
from proofmark.cases.vocabulary import SENSOR
from proofmark.common.message import NOTHING
from proofmark.runs.bmc_telemetry import BmcSeries
from proofmark.runs.telemetry_file import POWER_SENSORS, Interval

LEAST_S = 10.0
"""The shortest time with samples that gives power, temperature and clock: a shorter program heats
no processor. Throttling counts at any time."""


def sensor_readings(case: str, intervals: Iterable[Interval]) -> Iterator[Reading]:
    """Yield the figures of each node: mean power and clock, highest temperature, sum of events.

    Args:
        case: the id of the case.
        intervals: those of all nodes of an execution.
    """
    by_host: dict[str, list[Interval]] = {}
    for interval in intervals:
        by_host.setdefault(interval.host, []).append(interval)
    for host, of_host in by_host.items():
        for metric, sensor, value in _figures(of_host):
            unit = TELEMETRY[metric].unit
            yield Reading(
                case, BENCHMARK, metric, value, unit, {SENSOR: sensor}, True, NOTHING, host
            )


def bmc_readings(
    case: str, hosts: Iterable[str], looks: BmcSeries, begin: float, end: float
) -> Iterator[Reading]:
    """Yield the mean power and the highest temperature of `hosts` by their BMCs.

    Args:
        case: the id of the case.
        hosts: the nodes of an execution.
        looks: what the BMCs answered during the run.
        begin: the start of the execution in seconds since 1970; NaN gives no figure.
        end: its end.
    """
    for host in hosts:
        of_host = looks.within(host, begin, end) if end >= begin else []
        for metric, key, joined in ((POWER, "watts", np.mean), (TEMPERATURE, "celsius", np.max)):
            values = [each[key] for each in of_host if key in each]
            if values:
                unit, value = TELEMETRY[metric].unit, float(joined(values))
                yield Reading(
                    case, BENCHMARK, metric, value, unit, {SENSOR: "bmc"}, True, NOTHING, host
                )


def _figures(intervals: Sequence[Interval]) -> Iterator[tuple[str, str, float]]:
    """Yield metric, sensor and value of one node."""
    if sum(interval.span for interval in intervals) >= LEAST_S:
        for sensor in POWER_SENSORS:
            yield from _mean(POWER, sensor, f"{sensor}_w", intervals)
        hottest = max(
            (each.values["celsius"] for each in _with("celsius", intervals)), default=None
        )
        if hottest is not None:
            yield TEMPERATURE, "processor", hottest
        yield from _mean(CLOCK, "cpufreq", "mhz", intervals)
    counted = _with("throttled", intervals)
    if counted:
        yield THROTTLED, "processor", sum(each.values["throttled"] for each in counted)


def _mean(
    metric: str, sensor: str, key: str, intervals: Sequence[Interval]
) -> Iterator[tuple[str, str, float]]:
    known = _with(key, intervals)
    spans = [each.span for each in known]
    if sum(spans) > 0:
        mean = np.average([each.values[key] for each in known], weights=spans)
        yield metric, sensor, float(mean)


def _with(key: str, intervals: Iterable[Interval]) -> list[Interval]:
    return [each for each in intervals if key in each.values]
