"""The records of a step that the kit has run, with the figures of the sensors of its nodes.

The design of these figures: docs/design/validity.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from proofmark.cases.case import BENCHMARK, CLOCK, POWER, TELEMETRY, TEMPERATURE, THROTTLED
from proofmark.cases.reader.engine import Reading, read_output
from proofmark.cases.reader.settings import StartedCommand
from proofmark.cases.vocabulary import SENSOR
from proofmark.common.grouping import gathered
from proofmark.common.message import NOTHING, Message
from proofmark.plan.plan import Step
from proofmark.records.disturbance import noise_reason, tick_reason
from proofmark.records.execution_checks import Executed, ExecutionChecks, spread
from proofmark.records.run_facts import RunFacts
from proofmark.records.step_records import (
    UNDISTURBED,
    Disturbance,
    Instance,
    SharedRecords,
    StepRecords,
    read_output_file,
)
from proofmark.runs.attempts import UNREADABLE, Attempt, attempts, damage
from proofmark.runs.run_files import StepFiles
from proofmark.runs.samples import (
    POWER_SENSORS,
    BmcSeries,
    TelemetryInterval,
    read_noise,
    read_telemetry,
    shares_of,
)

LEAST_S = 10.0
"""The shortest time with samples that gives power, temperature and clock: a shorter program heats
no processor. Throttling counts at any time."""


def sensor_readings(case: str, intervals: Iterable[TelemetryInterval]) -> Iterator[Reading]:
    """Yield the figures of each node: mean power and clock, highest temperature, sum of events."""
    by_host = gathered((interval.host, interval) for interval in intervals)
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
        looks: what the BMCs answered during the run.
        begin: the start of the execution in seconds since 1970; NaN gives no figure.
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


def _figures(intervals: Sequence[TelemetryInterval]) -> Iterator[tuple[str, str, float]]:
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
    metric: str, sensor: str, key: str, intervals: Sequence[TelemetryInterval]
) -> Iterator[tuple[str, str, float]]:
    known = _with(key, intervals)
    spans = [each.span for each in known]
    if sum(spans) > 0:
        mean = np.average([each.values[key] for each in known], weights=spans)
        yield metric, sensor, float(mean)


def _with(key: str, intervals: Iterable[TelemetryInterval]) -> list[TelemetryInterval]:
    return [each for each in intervals if key in each.values]


class MeasuredStep(StepRecords):
    """Reads and checks the executions of one step, and what was sampled beside them."""

    def __init__(self, facts: RunFacts, mode: str, step: Step, shared: SharedRecords) -> None:
        super().__init__(facts, mode, step, shared)
        self._request = StartedCommand(step.arguments, step.ranks)
        self._checks = ExecutionChecks(facts, mode, step)

    def executions(self, folder: str) -> Iterable[Attempt]:
        """Return the finished executions in `folder`."""
        return attempts(folder)

    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one execution and of the sensors; see the base class."""
        step, case, facts = self._step, self._case, self._facts
        content, unread = read_output_file(attempt, step.output)
        text = content.decode(errors="replace")
        readings = read_output(case.reader(), step.case, text, self._request)
        planned, names = hosts or step.nodes, facts.names
        nodes = hosts or sorted({names.node(planned, h) for h in attempt.binding_report.hosts})
        disturbed, damaged = self._disturbance(attempt)
        sensed, damaged_sensors = self._sensed(attempt)
        executed = Executed(
            *(step, attempt, hosts, nodes, content, readings),
            unread=unread,
            damage=damaged or damaged_sensors,
        )
        invalid = self._checks.first_failed(executed)
        if case.concurrent and step.copies > 1:
            readings = [*readings, *spread(readings, case.metrics)]
        self._add(Instance(name, hosts, nodes, attempt, step.repeat), readings, invalid, disturbed)
        if not invalid:
            begin, end = attempt.start_s, attempt.start_s + attempt.seconds
            by_bmc = bmc_readings(step.case, nodes, facts.looks, begin, end)
            self._take_sensors([*sensor_readings(step.case, sensed), *by_bmc], planned)

    def _take_sensors(self, readings: Sequence[Reading], planned: Sequence[str]) -> None:
        """Add the figures of the sensors of each node to the last execution."""
        builder = self.builder
        for reading in readings:
            assert reading.value is not None
            measurand, _ = self._measurand(reading)
            node = self._facts.names.node(planned, str(reading.node))
            bounds = self._bounds_of(measurand, reading, self._machine([node]))
            reason = bounds.error(reading.metric, reading.value, reading.unit)
            last = len(builder.executions) - 1
            builder.add(last, measurand, node, reading.value, reason or None)

    def _disturbance(self, attempt: Attempt) -> tuple[Disturbance, Message]:
        """Return why an execution was disturbed, and why that is not known, or `NOTHING`."""
        undisturbed = self._case.undisturbed
        try:
            nodes = read_noise(attempt.contents)
        except (OSError, *UNREADABLE) as error:
            return UNDISTURBED, damage(StepFiles.noise.path, error)
        if nodes:
            return Disturbance(noise_reason(nodes, undisturbed), shares_of(nodes)), NOTHING
        return Disturbance(tick_reason(attempt, undisturbed)), NOTHING

    def _sensed(self, attempt: Attempt) -> tuple[list[TelemetryInterval], Message]:
        """Return what the sensors of real nodes showed, and why it is not known, or `NOTHING`."""
        if self._facts.partition.host_cpus is not None:
            return [], NOTHING  # the sensors of a virtual node are those of the machine below it
        try:
            return read_telemetry(attempt.contents), NOTHING
        except (OSError, *UNREADABLE) as error:
            return [], damage(StepFiles.telemetry.path, error)
