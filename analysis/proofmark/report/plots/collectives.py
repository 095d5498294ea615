"""Average time of collective operations over message size."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing, Labels, draw_over_bytes
from proofmark.report.drawing.series import (
    Sample,
    is_collective,
    is_time,
    lines_by_settings,
    message_bytes,
    microseconds,
)
from proofmark.report.plot import Plot, PlotContext


class Collectives(Plot):
    """Average time of collective operations over message size, a line for each operation."""

    title = N_("Time of collective operations over message size")
    position = 63

    def wants(self, record: Record) -> bool:
        """Return whether `record` is an average time of a collective with a known message size."""
        timed = is_time(record) and message_bytes(record) is not None
        return is_collective(record.benchmark) and timed

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw one plot with a line for each collective operation and setting."""
        lines = lines_by_settings(samples, message_bytes, {"bytes"}, microseconds)
        title = _("Collective operations: time over message size")
        labels = Labels(title, _("message size"), _("average time of one operation in µs"))
        return draw_over_bytes("collectives-time", labels, lines, samples)
