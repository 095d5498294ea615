"""Time of collective operations over message size (P5, figure 1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proofmark.records import Record
from proofmark.report.figures.drawing import Drawing, over_bytes
from proofmark.report.figures.kind import Context, Kind
from proofmark.report.figures.point_to_point import is_time, message_bytes
from proofmark.report.figures.points import Point, lines_of
from proofmark.report.figures.scales import microseconds

COLLECTIVES = re.compile(r"bcast|reduce|gather|scatter|alltoall|scan|barrier", re.IGNORECASE)
"""Benchmarks of collective operations of MPI, as IMB and OMB call them."""


def wants(record: Record) -> bool:
    """Average times of collective operations whose message size is known."""
    collective = COLLECTIVES.search(record.benchmark) is not None
    return collective and is_time(record) and message_bytes(record) is not None


def draw(points: Sequence[Point], context: Context) -> list[Drawing]:
    """Draw a line a collective."""
    lines = lines_of(points, message_bytes, {"bytes"}, microseconds)
    figure, text = over_bytes(lines, "message size", "average time of one operation in µs")
    title = "Collective operations: time over message size"
    return [Drawing("collectives-time", title, text, figure, points)]


KIND = Kind("Time of collective operations over message size", wants, draw)
