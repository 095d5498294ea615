"""Time of collective I/O over processes (P4, figures 1 to 3): one figure a class."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.labels import block_name
from proofmark.report.drawing.panels import Axis, Chart, Panel, panels
from proofmark.report.drawing.series import Sample, lines_by, parameter
from proofmark.report.plot import Context, Plot

CLASSES = ("A", "B", "C")


def ranks_of(record: Record) -> float | None:
    """Return the number of processes."""
    return parameter(record, "ranks")


def _one(record: Record) -> float:
    return 1.0


class BtIo(Plot):
    """Time of collective I/O over processes (P4, figures 1 to 3): one figure a class."""

    title = "P4, figures 1 to 3: I/O time of BT-IO"
    suite = "p4"
    position = 40

    def wants(self, record: Record) -> bool:
        """The time that BT-IO spent in I/O, by class, placement and block size."""
        known = ranks_of(record) is not None and "fs_block_bytes" in record.parameters
        timed = record.metric == "io_time" and record.unit == "s"
        return record.case == "npb-btio" and timed and known

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw a figure a class, a panel a block size, a line a placement."""
        drawings: list[Drawing] = []
        for number, name in enumerate(CLASSES, start=1):
            own = [point for point in points if point.record.parameters.get("class") == name]
            sizes = sorted({parameter(point.record, "fs_block_bytes") or 0 for point in own})
            content = [
                Panel(
                    block_name(round(size)),
                    lines_by(
                        [each for each in own if parameter(each.record, "fs_block_bytes") == size],
                        lambda record: record.placement,
                        ranks_of,
                        _one,
                    ),
                )
                for size in sizes
            ]
            chart = Chart(
                name=f"p4-class-{name.lower()}",
                title=f"P4, figure {number}: BT-IO class {name}, I/O time over processes",
                x=Axis("number of processes", "doubling"),
                y=Axis("I/O time in s"),
                unit="s",
                cases=("npb-btio",),
            )
            drawings += panels(chart, content, own, context)
        return drawings
