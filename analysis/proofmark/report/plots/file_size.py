"""File system bandwidth over file size (P1, figures 10 and 11): where the cache ends, it falls."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing, Words, over_bytes
from proofmark.report.drawing.file_bytes import METRICS, file_bytes
from proofmark.report.drawing.series import Sample, lines_of
from proofmark.report.drawing.ticks import megabytes_per_second
from proofmark.report.plot import Context, Plot


class FileSize(Plot):
    """File system bandwidth over file size; it falls where the cache ends."""

    title = "File system bandwidth over file size"
    position = 61

    def wants(self, record: Record) -> bool:
        """Bandwidths to and from files whose size the parameters tell."""
        return (
            record.metric in METRICS
            and record.parameters.get("cache") != "as-the-paper"  # a figure of P1
            and bool(file_bytes(record))
            and megabytes_per_second(record) is not None
        )

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw writing and reading, each with a line a layout."""
        drawings: list[Drawing] = []
        for metric, what in METRICS.items():
            chosen = [point for point in points if point.record.metric == metric]
            lines = lines_of(chosen, file_bytes, {"block_bytes"}, megabytes_per_second)
            title = f"{what} files: bandwidth over file size"
            words = Words(title, "size of all files together", "bandwidth in MB/s")
            drawings += over_bytes(f"file-size-{metric}", words, lines, chosen)
        return drawings
