"""Bandwidth of each of several pairs at the same time (P3, figure 5)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.pairs import drawn, is_osu, pairs_of
from proofmark.report.drawing.series import Sample
from proofmark.report.plot import Context, Plot
from proofmark.report.text import count


def _label_pairs(record: Record) -> str:
    return count(round(pairs_of(record) or 0), "pair")


class SimultaneousPairs(Plot):
    """Bandwidth of each of several pairs at the same time (P3, figure 5)."""

    title = "P3, figure 5: bandwidth of simultaneous pairs"
    suite = "p3"
    position = 32

    def wants(self, record: Record) -> bool:
        """Pairs at the same time between two nodes."""
        return is_osu(record) and pairs_of(record) is not None

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw the bandwidth of a pair, a line a number of pairs; the band: worst to best pair."""
        title = "P3, figure 5: bandwidth of each of several pairs between two nodes"
        points = sorted(points, key=lambda point: pairs_of(point.record) or 0)
        y = "bandwidth of a pair in MB/s"
        return drawn("p3-contention", title, _label_pairs, points, context, ordered=True, y=y)
