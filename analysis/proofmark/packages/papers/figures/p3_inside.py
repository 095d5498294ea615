"""Bandwidth between two ranks on one node, by their distance (P3, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _, translated
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.pair_matrix import DISTANCES, PairPlot, draw_pairs, is_osu, pairs_of
from proofmark.report.drawing.series import Sample
from proofmark.report.plot import Plot, PlotContext


class PairsInside(Plot):
    """Bandwidth between two ranks on one node, by their distance (P3, figure 3)."""

    title = N_("P3, figure 3: bandwidth inside a node")
    suite = "p3"
    position = 30

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the bandwidth of one pair of ranks on one node."""
        return is_osu(record) and record.placement in DISTANCES and pairs_of(record) is None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a line for each distance of the two ranks: same tile, same socket, other socket."""
        title = _("P3, figure 3: bandwidth inside a node")
        samples = sorted(samples, key=lambda sample: list(DISTANCES).index(sample.record.placement))
        plot = PairPlot("p3-inside", title, lambda r: translated(DISTANCES[r.placement]))
        return draw_pairs(plot, samples, context)
