"""File system bandwidth over file size. It drops at sizes that exceed the page cache."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _, translated
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing, Labels, draw_over_bytes
from proofmark.report.drawing.series import (
    METRICS,
    Sample,
    file_bytes,
    lines_by_settings,
    megabytes_per_second,
)
from proofmark.report.plot import Plot, PlotContext


class FileSize(Plot):
    """File system bandwidth over file size, a plot for writing and one for reading.

    The runs of P1 are excluded: `IorOverFileSize` draws them (P1, figures 10 and 11).
    """

    title = N_("File system bandwidth over file size")
    position = 61

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a bandwidth of files whose size is known."""
        return (
            record.metric in METRICS
            and record.parameters.get("cache") != "as-the-paper"  # drawn by IorOverFileSize
            and bool(file_bytes(record))
            and megabytes_per_second(record) is not None
        )

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot for writing and one for reading, each with a line for each layout."""
        drawings: list[Drawing] = []
        for metric, title in METRICS.items():
            chosen = [sample for sample in samples if sample.record.metric == metric]
            lines = lines_by_settings(chosen, file_bytes, {"block_bytes"}, megabytes_per_second)
            labels = Labels(
                translated(title), _("size of all files together"), _("bandwidth in MB/s")
            )
            drawings += draw_over_bytes(f"file-size-{metric}", labels, lines, chosen)
        return drawings
