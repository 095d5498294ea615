"""Average time of collective operations over message size."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.judge.claims.p5 import PLACEMENTS
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing, Labels, draw_over_bytes
from proofmark.report.drawing.labels import is_collective
from proofmark.report.drawing.messages import is_time, message_bytes
from proofmark.report.drawing.series import Sample, lines_by_settings
from proofmark.report.drawing.ticks import microseconds
from proofmark.report.plot import Plot, PlotContext


class Collectives(Plot):
    """Average time of collective operations over message size, a line for each operation.

    Records in a placement of P5 are excluded: `CollectivesByPlacement` draws them (P5, figure 1).
    """

    title = N_("Time of collective operations over message size")
    position = 63

    def wants(self, record: Record) -> bool:
        """Return whether `record` is an average time of a collective with a known message size."""
        of_p5 = record.placement in PLACEMENTS
        timed = is_time(record) and message_bytes(record) is not None
        return is_collective(record.benchmark) and timed and not of_p5

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw one plot with a line for each collective operation and setting."""
        lines = lines_by_settings(samples, message_bytes, {"bytes"}, microseconds)
        title = _("Collective operations: time over message size")
        labels = Labels(title, _("message size"), _("average time of one operation in µs"))
        return draw_over_bytes("collectives-time", labels, lines, samples)
