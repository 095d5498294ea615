"""STREAM over threads, close compared with spread (P2, figures 1 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
)
from proofmark.report.drawing.stream import is_stream, threads_of
from proofmark.report.plot import Plot, PlotContext
from proofmark.report.words import count

KERNELS = ("copy", "scale", "add", "triad")
PLACEMENTS = ("close", "spread")


def _chart(name: str, title: str) -> Chart:
    return Chart(
        name=name,
        title=title,
        x=Axis(_("number of threads"), counted=lambda x: count(x, "thread")),
        y=Axis(_("bandwidth in GB/s")),
        unit="GB/s",
        cases=("stream",),
    )


def _panels(
    samples: Sequence[Sample], label: Callable[[Record], str], level: tuple[str, float] | None
) -> list[Panel]:
    memories = list(dict.fromkeys(sample.record.parameters.get("memory", "") for sample in samples))
    content = []
    for memory in memories:
        members = [
            sample for sample in samples if sample.record.parameters.get("memory", "") == memory
        ]
        members.sort(key=lambda sample: KERNELS.index(sample.record.metric))
        lines = scaled(
            lines_by_label(members, label, threads_of, megabytes_per_second), lambda _: 1e-3
        )
        content.append(Panel(memory_name(memory), lines, level=level))
    return content


class PlacementOfThreads(Plot):
    """STREAM over threads, close compared with spread (P2, figures 1 to 5)."""

    title = N_("P2, figures 1 to 5: STREAM by placement of threads")
    suite = "p2"
    position = 20

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a STREAM kernel with close or spread threads."""
        return is_stream(record) and record.metric in KERNELS and record.placement in PLACEMENTS

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot for each kernel up to one thread per core, and one up to two per core.

        Only modes with close threads are drawn. The second plot has close threads only.
        """
        close = [sample for sample in samples if sample.record.placement == "close"]
        machine = context.machine
        cores = machine.cores if machine else None
        tiles = machine.tiles if machine else 0
        modes = {sample.record.mode for sample in close}
        samples = [sample for sample in samples if sample.record.mode in modes]
        drawings: list[Drawing] = []
        for number, kernel in enumerate(KERNELS, start=1):
            of_kernel = [
                sample
                for sample in samples
                if sample.record.metric == kernel
                and (cores is None or (threads_of(sample.record) or 0) <= cores)
            ]
            if {sample.record.placement for sample in of_kernel} != set(PLACEMENTS):
                continue
            level = (_("{tiles} tiles").format(tiles=tiles), tiles + 0.5) if tiles else None
            title = _("P2, figure {figure}: STREAM {kernel}, close compared with spread").format(
                figure=number, kernel=kernel.title()
            )
            chart = _chart(f"p2-{kernel}", title)
            drawings += draw_panels(
                chart, _panels(of_kernel, lambda r: r.placement, level), of_kernel, context
            )
        if cores and any((threads_of(sample.record) or 0) > cores for sample in close):
            level = (_("{cores} cores").format(cores=cores), cores + 0.5)
            chart = _chart(
                "p2-threads", _("P2, figure 5: STREAM with up to two threads per core, close")
            )
            content = _panels(close, lambda r: r.metric.title(), level)
            drawings += draw_panels(chart, content, close, context)
        return drawings
