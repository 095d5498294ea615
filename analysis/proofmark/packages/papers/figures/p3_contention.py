"""Bandwidth of each of several simultaneous pairs between two nodes (P3, figure 5)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.pair_matrix import PairPlot, draw_pairs, is_osu, pairs_of
from proofmark.report.drawing.series import Sample
from proofmark.report.plot import Plot, PlotContext
from proofmark.report.words import count


def _pairs_label(record: Record) -> str:
    return count(round(pairs_of(record) or 0), "pair")


class SimultaneousPairs(Plot):
    """Bandwidth of each of several simultaneous pairs between two nodes (P3, figure 5)."""

    title = N_("P3, figure 5: bandwidth of simultaneous pairs")
    suite = "p3"
    position = 32

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the bandwidth of simultaneous pairs between two nodes."""
        return is_osu(record) and pairs_of(record) is not None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a line for each number of pairs; the band shows the range over the pairs."""
        title = _("P3, figure 5: bandwidth of each of several pairs between two nodes")
        samples = sorted(samples, key=lambda sample: pairs_of(sample.record) or 0)
        y = _("bandwidth of a pair in MB/s")
        plot = PairPlot("p3-contention", title, _pairs_label, ordered=True, y=y)
        return draw_pairs(plot, samples, context)
