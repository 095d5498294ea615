"""Messages between ranks over their size (P3, figures 3 and 4): time and bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing, Words, over_bytes
from proofmark.report.drawing.labels import is_point_to_point
from proofmark.report.drawing.messages import is_bandwidth, is_time, message_bytes
from proofmark.report.drawing.series import Sample, lines_of
from proofmark.report.drawing.ticks import megabytes_per_second, microseconds
from proofmark.report.plot import Context, Plot


class PointToPoint(Plot):
    """Messages between ranks over their size (P3, figures 3 and 4): time and bandwidth."""

    title = "Point-to-point messages: time and bandwidth over message size"
    position = 62

    def wants(self, record: Record) -> bool:
        """Times and bandwidths of messages between pairs."""
        talks = is_point_to_point(record.benchmark) and message_bytes(record) is not None
        theirs = {"pairs", "apart"} & record.parameters.keys() and record.case.startswith("osu")
        return talks and not theirs and (is_time(record) or is_bandwidth(record))

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw the time and the bandwidth, a line a benchmark and placement."""
        parts = (
            ("time", "time in µs", is_time, microseconds),
            ("bandwidth", "bandwidth in MB/s", is_bandwidth, megabytes_per_second),
        )
        drawings: list[Drawing] = []
        for name, y_label, chosen_by, factor in parts:
            chosen = [point for point in points if chosen_by(point.record)]
            lines = lines_of(chosen, message_bytes, {"bytes"}, factor)
            words = Words(
                f"Point-to-point messages: {name} over message size", "message size", y_label
            )
            drawings += over_bytes(f"point-to-point-{name}", words, lines, chosen)
        return drawings
