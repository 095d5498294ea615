"""The metrics of the sensors of a node. Every case has them, if its nodes have the sensors."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.cases.case import Case
from proofmark.cases.reference import Metric

BENCHMARK = "sensors"
"""The benchmark of a figure of a sensor."""
POWER, TEMPERATURE, CLOCK, THROTTLED = "node_power", "node_temperature", "core_clock", "throttled"
TELEMETRY: Mapping[str, Metric] = {
    POWER: Metric(unit="W", better="lower", bound=0, what="mean power while the program ran"),
    TEMPERATURE: Metric(unit="°C", better="lower", bound=0, what="highest temperature"),
    CLOCK: Metric(
        unit="MHz", better="higher", bound="{clock}", what="mean clock of the cores of the ranks"
    ),
    THROTTLED: Metric(
        unit="events", better="lower", bound=0, what="how often the processor reduced its clock"
    ),
}
"""The metrics by name (docs/design/validity.md). A sensor that is not there gives no figure."""


def metrics_of(case: Case) -> dict[str, Metric]:
    """Return the metrics of `case`, and those of the sensors."""
    return {**TELEMETRY, **case.metrics}
