"""A matrix of ratios as a picture."""

from __future__ import annotations

import math

import matplotlib
from matplotlib.figure import Figure

from proofmark.common.translation import _
from proofmark.judge.links.matrix import Matrix
from proofmark.report.drawing.charts import PAPER, Drawing
from proofmark.report.words import visible

SIZE = (4.8, 4.2)  # inches
MOST_NAMES = 32
"""Up to this number of rows, each has its name."""


def draw_matrix(matrix: Matrix) -> Drawing:
    """Return a picture of the relative rates between switches or nodes.

    The colours end at 0.5 and 1.1. Pairs that were not measured are white.
    """
    names = [visible(name) for name in matrix.names]
    figure = Figure(figsize=SIZE, layout="constrained", facecolor=PAPER)
    axes = figure.subplots()
    colours = matplotlib.colormaps["viridis"].with_extremes(bad=PAPER)
    image = axes.imshow(matrix.ratio, vmin=0.5, vmax=1.1, cmap=colours, interpolation="nearest")
    figure.colorbar(image, ax=axes, extend="both", shrink=0.8)
    every = max(1, math.ceil(len(names) / MOST_NAMES))
    places = range(0, len(names), every)
    axes.set_xticks(places, [names[place] for place in places], rotation=90, fontsize=6)
    axes.set_yticks(places, [names[place] for place in places], fontsize=6)
    axes.set_xlabel(
        _("to") if matrix.level == "node" else _("to the {level}").format(level=matrix.level)
    )
    axes.set_ylabel(
        _("from") if matrix.level == "node" else _("from the {level}").format(level=matrix.level)
    )
    measured = matrix.ratio[~(matrix.ratio != matrix.ratio)]
    title = (
        _("Median rate between nodes, ÷ usual")
        if matrix.level == "node"
        else _("Median rate between switches, ÷ usual")
    )
    text = _(
        "{measured} of {all} cells measured; the least {least}, the greatest "
        "{greatest} × the usual rate of like pairs."
    ).format(
        measured=len(measured),
        all=matrix.ratio.size,
        least=f"{measured.min():.2f}",
        greatest=f"{measured.max():.2f}",
    )
    return Drawing("links", title, text, figure, ())


def matrix_csv(matrix: Matrix) -> str:
    """Return the measured cells as CSV: from, to, ratio."""
    lines = [f"from_{matrix.level},to_{matrix.level},ratio"]
    for one, row in zip(matrix.names, matrix.ratio.tolist(), strict=True):
        lines += (
            f"{one},{other},{ratio:.6g}"
            for other, ratio in zip(matrix.names, row, strict=True)
            if not math.isnan(ratio)
        )
    return "\n".join(lines) + "\n"
