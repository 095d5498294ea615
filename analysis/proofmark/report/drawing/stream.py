"""Which records are bandwidths of STREAM, and on how many threads."""

from __future__ import annotations

from proofmark.records.read import Record
from proofmark.report.drawing.series import parameter
from proofmark.report.drawing.ticks import megabytes_per_second


def threads_of(record: Record) -> float | None:
    """Return the number of threads."""
    return parameter(record, "threads")


def is_stream(record: Record) -> bool:
    """Return whether the record is a bandwidth of STREAM by itself, on known threads."""
    known = threads_of(record) is not None and megabytes_per_second(record) is not None
    return record.case == "stream" and known
