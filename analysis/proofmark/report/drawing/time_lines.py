"""Curves over the time of a run: the range of all nodes, and a few nodes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from proofmark.common.translation import _
from proofmark.records.columns import Floats
from proofmark.report.drawing.charts import COLOURS, DASHES, INK, PAPER
from proofmark.report.words import number

BINS = 60
"""The largest number of points of the range of all nodes."""
MOST_NAMED = 3
"""The largest number of nodes with a line of their own."""
WIDTH, HEIGHT = 4.6, 1.55


@dataclass(frozen=True)
class Curves:
    """The values of one quantity over time.

    Attributes:
        label: quantity and unit.
        hours, values: of all nodes. Shapes (values,).
        named: the hours and values of single nodes, by name, in the order of time.
    """

    label: str
    hours: Floats
    values: Floats
    named: Mapping[str, tuple[Floats, Floats]]


def draw_over_time(panels: Sequence[Curves]) -> Figure:
    """Return a figure of one panel below the other, with a common time axis."""
    size = (WIDTH, HEIGHT * len(panels) + 0.6)
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        _draw(axes, panel)
    grid[-1, 0].set_xlabel(_("hours since the start of the run"))
    handles: dict[str, Artist] = {}
    for axes in grid[:, 0]:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper left",
        ncols=2,
        frameon=False,
        borderaxespad=0.2,
    )
    return figure


def _draw(axes: Axes, panel: Curves) -> None:
    hours, low, middle, high = binned(panel.hours, panel.values)
    axes.fill_between(hours, low, high, color=INK, alpha=0.15, linewidth=0, label=_("all nodes"))
    axes.plot(hours, middle, color=INK, linewidth=1.0, label=_("median"))
    styles = zip(COLOURS, DASHES, strict=True)
    for (name, (at, values)), (colour, dash) in zip(panel.named.items(), styles, strict=False):
        axes.plot(at, values, color=colour, linestyle=dash, marker=".", markersize=3, label=name)
    axes.set_title(panel.label, loc="left")
    axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)


def binned(hours: Floats, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the time and the least, median and greatest value of each bin.

    All arrays have the shape (bins,), in the order of time, without empty bins.
    """
    edges = np.linspace(hours.min(), np.nextafter(hours.max(), np.inf), BINS + 1)
    place = np.clip(np.searchsorted(edges, hours, side="right") - 1, 0, BINS - 1)
    used = np.unique(place)
    members = [place == each for each in used]
    columns = [
        [float(hours[mask].mean()) for mask in members],
        [float(values[mask].min()) for mask in members],
        [float(np.median(values[mask])) for mask in members],
        [float(values[mask].max()) for mask in members],
    ]
    times, low, middle, high = (np.array(column) for column in columns)
    return times, low, middle, high


def described(panels: Sequence[Curves]) -> str:
    """Return the values of the panels in words: the median of the first and of the last tenth."""
    sentences = []
    for panel in panels:
        order = np.argsort(panel.hours, kind="stable")
        tenth = max(1, len(order) // 10)
        first, last = panel.values[order[:tenth]], panel.values[order[-tenth:]]
        ends = _("{first} to {last}").format(
            first=number(float(np.median(first)), 3), last=number(float(np.median(last)), 3)
        )
        sentences.append(f"{panel.label}: {ends}")
    return _("Median of all nodes at the start and at the end – {values}.").format(
        values="; ".join(sentences)
    )
