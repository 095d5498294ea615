"""Number of threads of a record, and whether the record is a bandwidth of STREAM."""

from __future__ import annotations

from proofmark.records.read import Record
from proofmark.report.drawing.series import megabytes_per_second, parameter


def threads_of(record: Record) -> float | None:
    """Return the number of threads; None if the parameters lack it."""
    return parameter(record, "threads")


def is_stream(record: Record) -> bool:
    """Return whether `record` is a bandwidth of the case stream on a known number of threads."""
    known = threads_of(record) is not None and megabytes_per_second(record) is not None
    return record.case == "stream" and known
