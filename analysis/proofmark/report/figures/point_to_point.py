"""Messages between two ranks over their size (P3, figures 3 and 4): latency and bandwidth."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proofmark.records import Record
from proofmark.report.figures.drawing import Drawing, over_bytes
from proofmark.report.figures.kind import Context, Kind
from proofmark.report.figures.points import Point, lines_of, parameter
from proofmark.report.figures.scales import megabytes_per_second, microseconds

PAIRS = re.compile(
    r"PingPong|PingPing|Uniband|Biband|Sendrecv|Exchange|\b(latency|bw|mbw_mr)\b", re.I
)
"""Benchmarks in which pairs of ranks talk, as IMB and OMB call them."""


def message_bytes(record: Record) -> float | None:
    """Return the size of a message."""
    return parameter(record, "bytes")


def is_time(record: Record) -> bool:
    """Tell whether the record is the time that a message took on average."""
    return record.metric in ("t_avg", "latency") and microseconds(record) is not None


def is_bandwidth(record: Record) -> bool:
    """Tell whether the record is a bandwidth; messages without content have none."""
    carried = record.metric == "bandwidth" and megabytes_per_second(record) is not None
    return carried and bool(message_bytes(record))


def wants(record: Record) -> bool:
    """Times and bandwidths of messages between pairs."""
    talks = PAIRS.search(f"{record.benchmark} {record.case.replace('-', ' ')}") is not None
    return talks and message_bytes(record) is not None and (is_time(record) or is_bandwidth(record))


def draw(points: Sequence[Point], context: Context) -> list[Drawing]:
    """Draw the time and the bandwidth, a line a benchmark and placement."""
    drawings = []
    parts = (
        ("time", "Messages between two ranks: time", "time in µs", is_time, microseconds),
        (
            "bandwidth",
            "Messages between two ranks: bandwidth",
            "bandwidth in MB/s",
            is_bandwidth,
            megabytes_per_second,
        ),
    )
    for name, title, y_label, chosen_by, factor in parts:
        chosen = [point for point in points if chosen_by(point.record)]
        if chosen:
            lines = lines_of(chosen, message_bytes, {"bytes"}, factor)
            figure, text = over_bytes(lines, "message size", y_label)
            drawings.append(Drawing(f"point-to-point-{name}", title, text, figure, chosen))
    return drawings


KIND = Kind("Messages between two ranks over message size", wants, draw)
