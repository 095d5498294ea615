"""STREAM Triad over threads, by memory and cluster mode (P1, figures 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.chart import Axis, Chart, Panel
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.panels import draw_panels, scaled
from proofmark.report.drawing.series import (
    Sample,
    lines_by_label,
    megabytes_per_second,
    memory_name,
    mode_name,
)
from proofmark.report.drawing.stream import is_stream, threads_of
from proofmark.report.plot import Plot, PlotContext
from proofmark.report.words import count

KERNEL = "triad"


def label(record: Record) -> str:
    """Return the label of the line: kind of memory and cluster mode."""
    parts = (memory_name(record.parameters.get("memory")), mode_name(record.mode))
    return ", ".join(filter(None, parts))


class StreamOverThreads(Plot):
    """STREAM Triad over threads, by memory and cluster mode (P1, figures 8 and 9)."""

    title = N_("P1, figures 8 and 9: STREAM over threads")
    suite = "p1"
    position = 11

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the Triad bandwidth of STREAM on a known number of threads."""
        return is_stream(record) and record.metric == KERNEL

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw the bandwidth with spread threads, a line for each memory and mode.

        Nothing is drawn if every mode was also measured with close threads: these are the runs of
        P2, and `PlacementOfThreads` draws them.
        """
        close = {sample.record.mode for sample in samples if sample.record.placement == "close"}
        samples = [sample for sample in samples if sample.record.placement == "spread"]
        if {sample.record.mode for sample in samples} <= close:
            return []
        lines = scaled(
            lines_by_label(samples, label, threads_of, megabytes_per_second), lambda _: 1e-3
        )
        knl = samples[0].record.system == "knl"
        chart = Chart(
            name="p1-stream-knl" if knl else "p1-stream",
            title=_("P1, figure {figure}: STREAM Triad over threads on {system}").format(
                figure=8 if knl else 9, system=samples[0].record.system
            ),
            x=Axis(_("number of threads"), counted=lambda x: count(x, "thread")),
            y=Axis(_("bandwidth in GB/s")),
            unit="GB/s",
            cases=("stream",),
        )
        return draw_panels(chart, [Panel("", lines)], samples, context)
