"""Bandwidth between two ranks inside a node (P3, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.pairs import DISTANCES, drawn, is_osu, pairs_of
from proofmark.report.drawing.series import Sample
from proofmark.report.plot import Context, Plot


class PairsInside(Plot):
    """Bandwidth between two ranks inside a node (P3, figure 3)."""

    title = "P3, figure 3: bandwidth inside a node"
    suite = "p3"
    position = 30

    def wants(self, record: Record) -> bool:
        """Pairs inside a node."""
        return is_osu(record) and record.placement in DISTANCES and pairs_of(record) is None

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw a line a distance."""
        title = "P3, figure 3: bandwidth inside a node"
        points = sorted(points, key=lambda point: list(DISTANCES).index(point.record.placement))
        return drawn("p3-inside", title, lambda r: DISTANCES[r.placement], points, context)
