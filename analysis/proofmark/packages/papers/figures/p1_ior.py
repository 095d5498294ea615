"""IOR bandwidth over the size of all files together (P1, figures 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.chart import Axis, Chart, Panel
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.panels import draw_panels
from proofmark.report.drawing.series import (
    METRICS,
    Sample,
    file_bytes,
    layout_name,
    lines_by_label,
    megabytes_per_second,
    memory_name,
)
from proofmark.report.plot import Plot, PlotContext


def label(record: Record) -> str:
    """Return the label of the line: metric (write or read) and file layout."""
    return f"{record.metric}, {layout_name(record.parameters.get('layout'))}"


class IorOverFileSize(Plot):
    """IOR bandwidth over the size of all files together (P1, figures 10 and 11)."""

    title = N_("P1, figures 10 and 11: IOR over file size")
    suite = "p1"
    position = 12

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a bandwidth of IOR with the page cache in use, as in P1."""
        as_paper = record.parameters.get("cache") == "as-the-paper"
        known = bool(file_bytes(record)) and megabytes_per_second(record) is not None
        return record.case == "ior" and record.metric in METRICS and as_paper and known

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a panel for each kind of memory that the processes were bound to."""
        knl = samples[0].record.system == "knl"
        memories = list(
            dict.fromkeys(sample.record.parameters.get("memory", "") for sample in samples)
        )
        content = []
        for letter, memory in zip("abcdef", memories, strict=False):
            members = [
                sample for sample in samples if sample.record.parameters.get("memory", "") == memory
            ]
            name = f"({letter}) {memory_name(memory)}" if len(memories) > 1 else ""
            content.append(
                Panel(name, lines_by_label(members, label, file_bytes, megabytes_per_second))
            )
        system = samples[0].record.system
        chart = Chart(
            name="p1-ior-knl" if knl else "p1-ior",
            title=_("P1, figure {figure}: IOR over file size on {system}").format(
                figure=10 if knl else 11, system=system
            ),
            x=Axis(_("size of all files together"), "bytes"),
            y=Axis(_("bandwidth in MB/s"), "log"),
            unit="MB/s",
            cases=("ior",),
        )
        return draw_panels(chart, content, samples, context)
