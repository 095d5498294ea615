"""Bandwidth between two nodes by the level of the network (P3, figure 4)."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.pairs import LEVELS, drawn, is_osu, pairs_of
from proofmark.report.drawing.series import Sample
from proofmark.report.plot import Context, Plot


def _label_level(record: Record) -> str:
    level = str(record.parameters["apart"])
    return LEVELS.get(level, level)


class PairsBetween(Plot):
    """Bandwidth between two nodes by the level of the network (P3, figure 4)."""

    title = "P3, figure 4: bandwidth between nodes by level"
    suite = "p3"
    position = 31

    def wants(self, record: Record) -> bool:
        """Pairs on two nodes, with the level of the network between them."""
        return is_osu(record) and "apart" in record.parameters and pairs_of(record) is None

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw a line a level of the network."""
        title = "P3, figure 4: bandwidth between two nodes"
        return drawn("p3-between", title, _label_level, points, context)
