"""STREAM over threads by memory and cluster mode (P1, figures 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.labels import memory_name, mode_name
from proofmark.report.drawing.panels import Axis, Chart, Panel, panels, scaled
from proofmark.report.drawing.series import Sample, lines_by
from proofmark.report.drawing.stream import is_stream, threads_of
from proofmark.report.drawing.ticks import megabytes_per_second
from proofmark.report.plot import Context, Plot

KERNEL = "triad"


def label(record: Record) -> str:
    """Name the line by memory and mode."""
    parts = (memory_name(record.parameters.get("memory")), mode_name(record.mode))
    return ", ".join(filter(None, parts))


class StreamOverThreads(Plot):
    """STREAM over threads by memory and cluster mode (P1, figures 8 and 9)."""

    title = "P1, figures 8 and 9: STREAM over threads"
    suite = "p1"
    position = 11

    def wants(self, record: Record) -> bool:
        """Triad by threads; those of P2 are told by their second placement."""
        return is_stream(record) and record.metric == KERNEL

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw GB/s over threads, a line a memory and mode, where threads are spread only."""
        close = {point.record.mode for point in points if point.record.placement == "close"}
        points = [point for point in points if point.record.placement == "spread"]
        if {point.record.mode for point in points} <= close:
            return []
        lines = scaled(lines_by(points, label, threads_of, megabytes_per_second), lambda _: 1e-3)
        knl = points[0].record.system == "knl"
        chart = Chart(
            name="p1-stream-knl" if knl else "p1-stream",
            title=f"P1, figure {8 if knl else 9}: STREAM Triad over threads on "
            f"{points[0].record.system}",
            x=Axis("number of threads"),
            y=Axis("bandwidth in GB/s"),
            unit="GB/s",
            cases=("stream",),
        )
        return panels(chart, [Panel("", lines)], points, context)
