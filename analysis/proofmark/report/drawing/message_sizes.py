"""Message size of a record, and whether the record is a time or a bandwidth of messages."""

from __future__ import annotations

from proofmark.records.read import Record
from proofmark.report.drawing.series import parameter
from proofmark.report.drawing.ticks import megabytes_per_second, microseconds


def message_bytes(record: Record) -> float | None:
    """Return the message size in bytes; None if the parameters lack it."""
    return parameter(record, "bytes")


def is_time(record: Record) -> bool:
    """Return whether `record` is the average time of a message or operation."""
    return record.metric in ("t_avg", "latency") and microseconds(record) is not None


def is_bandwidth(record: Record) -> bool:
    """Return whether `record` is a bandwidth of messages of at least one byte."""
    bandwidth = record.metric == "bandwidth" and megabytes_per_second(record) is not None
    return bandwidth and bool(message_bytes(record))
