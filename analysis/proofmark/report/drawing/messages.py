"""Which records are times and bandwidths of messages, and the size of the message."""

from __future__ import annotations

from proofmark.records.read import Record
from proofmark.report.drawing.series import parameter
from proofmark.report.drawing.ticks import megabytes_per_second, microseconds


def message_bytes(record: Record) -> float | None:
    """Return the size of a message."""
    return parameter(record, "bytes")


def is_time(record: Record) -> bool:
    """Return whether the record is the time that a message took on average."""
    return record.metric in ("t_avg", "latency") and microseconds(record) is not None


def is_bandwidth(record: Record) -> bool:
    """Return whether the record is a bandwidth; messages without content have none."""
    carried = record.metric == "bandwidth" and megabytes_per_second(record) is not None
    return carried and bool(message_bytes(record))
