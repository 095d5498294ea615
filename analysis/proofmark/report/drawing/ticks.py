"""Ticks of axes and their labels, and factors to the units of the plots."""

from __future__ import annotations

import math

from proofmark.common.units import factor
from proofmark.records.read import Record
from proofmark.report.words import number, size_4_digits


def megabytes_per_second(record: Record) -> float | None:
    """Return the factor from a record's bandwidth to MB/s (10⁶ bytes); None for other units."""
    return factor(record.unit, "MB/s")


def microseconds(record: Record) -> float | None:
    """Return the factor from a record's time to µs; None for other units."""
    return factor(record.unit, "us")


def gigaflops(record: Record) -> float | None:
    """Return the factor from a record's rate to GFlop/s; None for other units."""
    return factor(record.unit, "GFlop/s")


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks that enclose `low` … `high` (both > 0): powers of ten, with 2 and 5 if few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1,) if last - first > 3 else (1, 2, 5)
    ticks = []
    for power in range(first, last + 1):
        ticks += [step * 10.0**power for step in steps]
    start = max((index for index, tick in enumerate(ticks) if tick <= low), default=0)
    end = min((index for index, tick in enumerate(ticks) if tick >= high), default=len(ticks) - 1)
    return ticks[start : max(end, start + 1) + 1]


def byte_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return at most `most` evenly spaced powers of two in `low` … `high`; 0 too if `low` is 0."""
    least = max(low, 1)
    first, last = math.ceil(math.log2(least)), math.floor(math.log2(max(high, 1)))
    fitting = [step for step in range(1, 64) if (last - first) // step + 1 <= most]
    # A stride that ends at the last power is better, unless it gives fewer than 4 ticks.
    even = [step for step in fitting if (last - first) % step == 0 and (last - first) // step > 2]
    stride = min(even or fitting)
    powers = [2.0**power for power in range(first, last + 1, stride)]
    return [0.0, *powers] if low == 0 else powers


def byte_label(value: float, _: int = 0) -> str:
    """Return the label of a tick of `byte_ticks`."""
    return "0" if value == 0 else size_4_digits(round(value))


def number_label(value: float, _: int = 0) -> str:
    """Return the label of a tick without a unit."""
    return number(value, 1) if value >= 1 or value == 0 else f"{value:g}"
