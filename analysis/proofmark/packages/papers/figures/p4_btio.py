"""I/O time of BT-IO over processes (P4, figures 1 to 3), a plot for each problem class."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.chart import Axis, Chart, Panel
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.panels import draw_panels
from proofmark.report.drawing.series import Sample, block_name, lines_by_label, parameter
from proofmark.report.plot import Plot, PlotContext
from proofmark.report.words import count

CLASSES = ("A", "B", "C")


def ranks_of(record: Record) -> float | None:
    """Return the number of processes; None if the parameters lack it."""
    return parameter(record, "ranks")


def _one(record: Record) -> float:
    return 1.0


class BtIo(Plot):
    """I/O time of BT-IO over processes (P4, figures 1 to 3), a plot for each problem class."""

    title = N_("P4, figures 1 to 3: I/O time of BT-IO")
    suite = "p4"
    position = 40

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the I/O time of BT-IO in s with known ranks and block size."""
        known = ranks_of(record) is not None and "fs_block_bytes" in record.parameters
        timed = record.metric == "io_time" and record.unit == "s"
        return record.case == "npb-btio" and timed and known

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot for each class, a panel for each block size, a line for each placement."""
        drawings: list[Drawing] = []
        for number, problem in enumerate(CLASSES, start=1):
            of_class = [s for s in samples if s.record.parameters.get("class") == problem]
            sizes = sorted({parameter(s.record, "fs_block_bytes") or 0 for s in of_class})
            content = [
                Panel(
                    block_name(round(size)),
                    lines_by_label(
                        [s for s in of_class if parameter(s.record, "fs_block_bytes") == size],
                        lambda record: record.placement,
                        ranks_of,
                        _one,
                    ),
                )
                for size in sizes
            ]
            chart = Chart(
                name=f"p4-class-{problem.lower()}",
                title=_(
                    "P4, figure {figure}: BT-IO class {problem}, I/O time over processes"
                ).format(figure=number, problem=problem),
                x=Axis(
                    _("number of processes"),
                    "doubling",
                    counted=lambda x: count(x, "process", "processes"),
                ),
                y=Axis(_("I/O time in s")),
                unit="s",
                cases=("npb-btio",),
            )
            drawings += draw_panels(chart, content, of_class, context)
        return drawings
