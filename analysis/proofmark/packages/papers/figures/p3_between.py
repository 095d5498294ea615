"""Bandwidth between two nodes, by network distance (P3, figure 4)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _, translated
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.pair_matrix import LEVELS, PairPlot, draw_pairs, is_osu, pairs_of
from proofmark.report.drawing.series import Sample
from proofmark.report.plot import Plot, PlotContext


def _distance_label(record: Record) -> str:
    level = str(record.parameters["distance"])
    return translated(LEVELS.get(level, level))


class PairsBetween(Plot):
    """Bandwidth between two nodes, by network distance (P3, figure 4)."""

    title = N_("P3, figure 4: bandwidth between nodes by network distance")
    suite = "p3"
    position = 31

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the bandwidth of one pair of ranks on two nodes."""
        return is_osu(record) and "distance" in record.parameters and pairs_of(record) is None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a line for each distance between the nodes in the network."""
        title = _("P3, figure 4: bandwidth between two nodes")
        return draw_pairs(PairPlot("p3-between", title, _distance_label), samples, context)
