"""HPL over nodes (P1, figures 6 and 7): Rmax, and what part of Rpeak it is, by cluster mode."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.labels import fits, mode_name
from proofmark.report.drawing.panels import Axis, Chart, Panel, panels, scaled
from proofmark.report.drawing.series import Sample, Series, lines_by, parameter
from proofmark.report.drawing.ticks import gigaflops
from proofmark.report.plot import Context, Plot


def nodes_of(record: Record) -> float | None:
    """Return the number of nodes that worked together."""
    return parameter(record, "nodes")


def label(record: Record) -> str:
    """Name the line: mode, and whether the job is fitted to its domains."""
    return fits(mode_name(record.mode), record.placement)


def _best(points: Sequence[Sample]) -> list[Sample]:
    """Keep the best setting of each mode, placement and number of nodes: that is Rmax."""
    best: dict[tuple[str, str, float | None], Sample] = {}
    for point in points:
        key = (point.record.mode, point.record.placement, nodes_of(point.record))
        if key not in best or point.value > best[key].value:
            best[key] = point
    return list(best.values())


def _order(line: Series) -> str:
    return ("b" if "not fitted" in line.label else "a") + line.label


class HplOverNodes(Plot):
    """HPL over nodes (P1, figures 6 and 7): Rmax, and what part of Rpeak it is, by cluster mode."""

    title = "P1, figures 6 and 7: HPL over nodes"
    suite = "p1"
    position = 10

    def wants(self, record: Record) -> bool:
        """Rmax of HPL on a number of nodes that the parameters tell."""
        known = nodes_of(record) is not None and gigaflops(record) is not None
        return record.case == "hpl" and record.metric == "rmax" and known

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw Rmax, and beside it the part of Rpeak where that is known."""
        knl = any(point.record.system == "knl" for point in points)
        best = _best(points)
        lines = sorted(lines_by(best, label, nodes_of, gigaflops), key=_order)
        peak = context.machine.peak_gflops if context.machine else None
        content = [Panel("Rmax", scaled(lines, lambda _: 1e-3), "TFlop/s")]
        if peak:
            parts = scaled(lines, lambda nodes: 100 / (peak * nodes))
            content.append(Panel("Rmax ÷ Rpeak", parts, "%"))
        name, number = ("p1-hpl-knl", 6) if knl else ("p1-hpl", 7)
        chart = Chart(
            name=name,
            title=f"P1, figure {number}: HPL over nodes on {points[0].record.system}",
            x=Axis("number of nodes"),
            y=Axis("TFlop/s"),
            unit="",
            cases=("hpl",),
        )
        return panels(chart, content, points, context)
