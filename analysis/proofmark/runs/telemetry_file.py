"""Reads ``telemetry.jsonl``: what the sensors of each node of a step showed while it ran.

A line is one interval of one node, as JSON:

===============  ==================================================================================
``host``         the node
``time``         the end of the interval, in seconds since 1970 by the clock of the node
``span``         its length in seconds
``rapl_w``       power of the processors and their memory, by the energy counters (powercap)
``acpi_w``       power of the node by its ACPI power meter
``ipmi_w``       power of the node by its BMC (``ipmitool dcmi power reading``)
``celsius``      the highest temperature of a processor
``mhz``          the mean clock of the cores of the ranks
``mhz_least``    the lowest clock of one of them
``throttled``    how often a processor reduced its clock (``thermal_throttle``)
===============  ==================================================================================

A sensor that is not there, or that the user of the job cannot read, has no key.
"""

from __future__ import annotations

from typing import NamedTuple

from proofmark.common.files import parse_json, seconds_of
from proofmark.common.nodesets import check_name
from proofmark.runs.read_once import ReadOnce
from proofmark.runs.run_files import StepFiles

MAX_BYTES = 64 << 20
POWER_SENSORS = ("rapl", "acpi", "ipmi")
"""The sensors of power, by the beginning of their keys."""
_LIMITS = {
    "span": (0.0, 1e7),
    **{f"{sensor}_w": (0.0, 1e6) for sensor in POWER_SENSORS},
    "celsius": (-100.0, 200.0),
    "mhz": (0.0, 1e5),
    "mhz_least": (0.0, 1e5),
    "throttled": (0.0, 1e12),
}


class TelemetryInterval(NamedTuple):
    """One line: the values of the sensors by the key of the file; `time` and `span` in seconds."""

    host: str
    time: float
    span: float
    values: dict[str, float]


def read_telemetry(contents: ReadOnce) -> list[TelemetryInterval]:
    """Return the intervals of all nodes of an execution; empty without a file.

    Raises:
        OSError: the file is too large, or no regular file.
        ArithmeticError, AttributeError, KeyError, TypeError, ValueError: it is damaged.
    """
    try:
        content = contents.read(StepFiles.telemetry.path, MAX_BYTES)
    except FileNotFoundError:
        return []
    return [_interval(line) for line in content.splitlines()]


def _interval(line: bytes) -> TelemetryInterval:
    entry = parse_json(line)
    host, time = check_name(str(entry.pop("host"))), seconds_of(entry.pop("time"))
    values = {key: _checked(key, value) for key, value in entry.items()}
    return TelemetryInterval(host, time, values.pop("span"), values)


def _checked(key: str, value: object) -> float:
    """Return the value of a sensor.

    Raises:
        KeyError, TypeError or ValueError: the key is unknown, or the value is impossible.
    """
    low, high = _LIMITS[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{key} {value!r}; accepted: a number from {low:g} to {high:g}")
    return float(value)
