"""Metrics of file bandwidth, and the size of the files of a record."""

from __future__ import annotations

from proofmark.common.translation import N_
from proofmark.records.read import Record
from proofmark.report.drawing.series import parameter

METRICS = {
    "write": N_("Writing files: bandwidth over file size"),
    "read": N_("Reading files: bandwidth over file size"),
}


def file_bytes(record: Record) -> float | None:
    """Return the bytes of all files together: block × tasks (P1.ior, with one segment).

    None if the parameters lack one of them.
    """
    block, tasks = parameter(record, "block_bytes"), parameter(record, "tasks")
    return None if block is None or tasks is None else block * tasks
