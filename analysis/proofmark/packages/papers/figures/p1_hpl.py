"""HPL over nodes (P1, figures 6 and 7): Rmax and Rmax ÷ Rpeak, by cluster mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from proofmark.common.expressions import GRID_RATIO
from proofmark.common.translation import N_, _
from proofmark.records.read import Record
from proofmark.report.drawing.chart import Axis, Chart, Panel
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.panels import draw_panels, scaled
from proofmark.report.drawing.series import (
    Sample,
    Series,
    gigaflops,
    lines_by_label,
    mode_name,
    parameter,
    with_fit,
)
from proofmark.report.plot import Plot, PlotContext
from proofmark.report.words import count


def nodes_of(record: Record) -> float | None:
    """Return the number of nodes of the HPL run; None if the parameters lack it."""
    return parameter(record, "nodes")


def label(record: Record) -> str:
    """Return the label of the line: the mode, and ``not fitted`` if that is the placement."""
    return with_fit(mode_name(record.mode), record.placement)


def _best(samples: Sequence[Sample]) -> list[Sample]:
    """Return the best sample of each mode, placement and number of nodes: that is Rmax."""
    best: dict[tuple[str, str, float | None], Sample] = {}
    for sample in samples:
        key = (sample.record.mode, sample.record.placement, nodes_of(sample.record))
        if key not in best or sample.value > best[key].value:
            best[key] = sample
    return list(best.values())


def flat_grids(samples: Sequence[Sample]) -> Mapping[float, str]:
    """Return the grid P × Q by the number of nodes, where Q is more than `GRID_RATIO` × P.

    A prime number of processes has only one row, on which HPL itself is slower (HPL, TUNING).
    """
    flat: dict[float, str] = {}
    for sample in samples:
        p, q, nodes = (parameter(sample.record, name) for name in ("p", "q", "nodes"))
        if p and q and nodes is not None and q > GRID_RATIO * p:
            flat[nodes] = f"{p:g} × {q:g}"
    return dict(sorted(flat.items()))


def _order(line: Series) -> str:
    """Return the sort key that puts jobs that are not fitted last."""
    return ("b" if _("not fitted") in line.label else "a") + line.label


class HplOverNodes(Plot):
    """HPL over nodes (P1, figures 6 and 7): Rmax and Rmax ÷ Rpeak, by cluster mode."""

    title = N_("P1, figures 6 and 7: HPL over nodes")
    suite = "p1"
    position = 10

    def wants(self, record: Record) -> bool:
        """Return whether `record` is Rmax of HPL on a known number of nodes."""
        known = nodes_of(record) is not None and gigaflops(record) is not None
        return record.case == "hpl" and record.metric == "rmax" and known

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a panel of Rmax, and one of Rmax ÷ Rpeak if Rpeak is known."""
        knl = any(sample.record.system == "knl" for sample in samples)
        best = _best(samples)
        lines = sorted(lines_by_label(best, label, nodes_of, gigaflops), key=_order)
        peak = context.machine.peak_gflops if context.machine else None
        flat = flat_grids(best)
        content = [Panel("Rmax", scaled(lines, lambda _: 1e-3), "TFlop/s", marks=flat)]
        if peak:
            percent = scaled(lines, lambda nodes: 100 / (peak * nodes))
            content.append(Panel(_("Rmax ÷ Rpeak"), percent, "%", marks=flat))
        name, number = ("p1-hpl-knl", 6) if knl else ("p1-hpl", 7)
        chart = Chart(
            name=name,
            title=_("P1, figure {figure}: HPL over nodes on {system}").format(
                figure=number, system=samples[0].record.system
            ),
            x=Axis(_("number of nodes"), counted=lambda x: count(x, "node")),
            y=Axis("TFlop/s"),
            unit="",
            cases=("hpl",),
        )
        drawings = draw_panels(chart, content, samples, context)
        if not flat:
            return drawings
        marked = _(
            "Marked are grids of processes with more than {ratio} columns for each row: {grids}."
        ).format(ratio=GRID_RATIO, grids=", ".join(flat.values()))
        return [replace(each, text=f"{each.text} {marked}") for each in drawings]
