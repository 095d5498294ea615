"""IOR over the size of all files (P1, figures 10 and 11): where the cache ends, it falls."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.file_bytes import METRICS, file_bytes
from proofmark.report.drawing.labels import layout_name, memory_name
from proofmark.report.drawing.panels import Axis, Chart, Panel, panels
from proofmark.report.drawing.series import Sample, lines_by
from proofmark.report.drawing.ticks import megabytes_per_second
from proofmark.report.plot import Context, Plot


def label(record: Record) -> str:
    """Name the line by direction and layout."""
    return f"{record.metric}, {layout_name(record.parameters.get('layout'))}"


class IorOverFileSize(Plot):
    """IOR over the size of all files (P1, figures 10 and 11): where the cache ends, it falls."""

    title = "P1, figures 10 and 11: IOR over file size"
    suite = "p1"
    position = 12

    def wants(self, record: Record) -> bool:
        """IOR's bandwidths as the paper measured them, whatever the cache gives."""
        as_paper = record.parameters.get("cache") == "as-the-paper"
        known = bool(file_bytes(record)) and megabytes_per_second(record) is not None
        return record.case == "ior" and record.metric in METRICS and as_paper and known

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw a panel for each memory that the processes were bound to."""
        knl = points[0].record.system == "knl"
        memories = list(
            dict.fromkeys(point.record.parameters.get("memory", "") for point in points)
        )
        content = []
        for letter, memory in zip("abcdef", memories, strict=False):
            own = [point for point in points if point.record.parameters.get("memory", "") == memory]
            name = f"({letter}) {memory_name(memory)}" if len(memories) > 1 else ""
            content.append(Panel(name, lines_by(own, label, file_bytes, megabytes_per_second)))
        system = points[0].record.system
        chart = Chart(
            name="p1-ior-knl" if knl else "p1-ior",
            title=f"P1, figure {10 if knl else 11}: IOR over file size on {system}",
            x=Axis("size of all files together", "bytes"),
            y=Axis("bandwidth in MB/s", "log"),
            unit="MB/s",
            cases=("ior",),
        )
        return panels(chart, content, points, context)
