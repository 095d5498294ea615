"""Common parts of the plots of P3: which records are bandwidths of pairs, and the chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.chart import Axis, Chart, Panel
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.panels import draw_panels
from proofmark.report.drawing.series import (
    Sample,
    is_bandwidth,
    lines_by_label,
    message_bytes,
    parameter,
)
from proofmark.report.plot import PlotContext

DISTANCES = {
    "same-tile": N_("same tile"),
    "same-socket": N_("same socket"),
    "other-socket": N_("other socket"),
    "2-hop": N_("other socket, 2 hops"),
}
LEVELS = {
    "chip": N_("same chip"),
    "line-card": N_("same line card"),
    "switch": N_("across the switch"),
}
SHOWN_PAIRS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of pairs that are drawn; the CSV file has all of them."""


def is_osu(record: Record) -> bool:
    """Return whether `record` is a bandwidth of pairs, measured by osu_bw."""
    return record.benchmark == "Bandwidth" and is_bandwidth(record)


def pairs_of(record: Record) -> float | None:
    """Return the number of simultaneous pairs; None for other cases than osu-contention."""
    return parameter(record, "pairs") if record.case == "osu-contention" else None


def _one(record: Record) -> float:
    return 1.0


@dataclass(frozen=True)
class PairPlot:
    """A plot of bandwidth over message size, with a line for each label.

    Attributes:
        name: stem of the file names.
        title: the system is added to it.
        label: returns the label of a record's line.
        ordered: the lines are numbers of pairs, of which `SHOWN_PAIRS` are drawn.
        y: quantity and unit of the y axis; empty for the bandwidth.
    """

    name: str
    title: str
    label: Callable[[Record], str]
    ordered: bool = False
    y: str = ""


def draw_pairs(plot: PairPlot, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
    """Draw `samples` as `plot`."""
    shown = [
        sample
        for sample in samples
        if not plot.ordered or (pairs_of(sample.record) or 0) in SHOWN_PAIRS
    ]
    case = "osu-contention" if plot.ordered else "osu-bw"
    chart = Chart(
        name=plot.name,
        title=_("{title} on {system}").format(title=plot.title, system=samples[0].record.system),
        x=Axis(_("message size"), "bytes"),
        y=Axis(plot.y or _("bandwidth in MB/s"), "log" if plot.ordered else "linear"),
        unit="MB/s",
        ordered=plot.ordered,
        cases=(case,),
    )
    return draw_panels(
        chart, [Panel("", lines_by_label(shown, plot.label, message_bytes, _one))], samples, context
    )
