"""Time of collective operations over message size (P5, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.judge.claims.p5 import PLACEMENTS
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing, Words, over_bytes
from proofmark.report.drawing.labels import is_collective
from proofmark.report.drawing.messages import is_time, message_bytes
from proofmark.report.drawing.series import Sample, lines_of
from proofmark.report.drawing.ticks import microseconds
from proofmark.report.plot import Context, Plot


class Collectives(Plot):
    """Time of collective operations over message size (P5, figure 1)."""

    title = "Time of collective operations over message size"
    position = 63

    def wants(self, record: Record) -> bool:
        """Average times of collective operations whose message size is known."""
        theirs = record.placement in PLACEMENTS  # a figure of P5
        timed = is_time(record) and message_bytes(record) is not None
        return is_collective(record.benchmark) and timed and not theirs

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw a line a collective."""
        lines = lines_of(points, message_bytes, {"bytes"}, microseconds)
        title = "Collective operations: time over message size"
        words = Words(title, "message size", "average time of one operation in µs")
        return over_bytes("collectives-time", words, lines, points)
