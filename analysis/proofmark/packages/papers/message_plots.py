"""The plots of no paper: times and rates over message and file size."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.packages.papers.charts import (
    Drawing,
    Labels,
    draw_over_bytes,
)
from proofmark.packages.papers.plot import Plot, PlotContext
from proofmark.packages.papers.series import (
    Sample,
    is_bandwidth,
    is_collective,
    is_point_to_point,
    is_time,
    lines_by_settings,
    megabytes_per_second,
    message_bytes,
    microseconds,
)
from proofmark.records.columns import Record


class Collectives(Plot):
    """Average time of collective operations over message size, a line for each operation."""

    name = "collectives"
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


class PointToPoint(Plot):
    """Time and bandwidth of point-to-point messages over message size.

    Records of osu cases with the parameter ``pairs`` or ``distance`` are excluded: `PairsBetween`
    and `SimultaneousPairs` draw them (P3, figures 4 and 5).
    """

    name = "point_to_point"
    title = N_("Point-to-point messages: time and bandwidth over message size")
    position = 62

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a time or bandwidth of point-to-point messages."""
        sized = is_point_to_point(record.benchmark) and message_bytes(record) is not None
        of_p3 = {"pairs", "distance"} & record.parameters.keys() and record.case.startswith("osu")
        return sized and not of_p3 and (is_time(record) or is_bandwidth(record))

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot of time and one of bandwidth, a line for each benchmark and setting."""
        quantities = (
            (
                "time",
                _("Point-to-point messages: time over message size"),
                _("time in µs"),
                is_time,
                microseconds,
            ),
            (
                "bandwidth",
                _("Point-to-point messages: bandwidth over message size"),
                _("bandwidth in MB/s"),
                is_bandwidth,
                megabytes_per_second,
            ),
        )
        drawings: list[Drawing] = []
        for name, title, y_label, is_quantity, factor in quantities:
            chosen = [sample for sample in samples if is_quantity(sample.record)]
            lines = lines_by_settings(chosen, message_bytes, {"bytes"}, factor)
            labels = Labels(title, _("message size"), y_label)
            drawings += draw_over_bytes(f"point-to-point-{name}", labels, lines, chosen)
        return drawings
