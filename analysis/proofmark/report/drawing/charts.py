"""What every figure shares: its form, its colours and the two kinds of charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from proofmark.report.drawing.series import PlotPoint, Sample, Series
from proofmark.report.drawing.ticks import byte_label, byte_ticks, log_ticks, number_label
from proofmark.report.text import count, number

INK = "#101010"
"""Colour of text and axes; on the page it becomes that of the text around."""

PAPER = "#ffffff"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
"""Okabe and Ito's palette ("Color Universal Design", 2008) without its yellow, strongest first."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.")
HATCHES = ("", "////", "....", "xxxx", "----", "++++", "oooo")
SIZE = (4.6, 3.0)  # inches; small enough to be read on a telephone

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "proofmark",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    # Names in outputs are foreign text, no formulas.
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4.0,
    "lines.linewidth": 1.4,
    "hatch.linewidth": 0.6,
}


Style = dict[str, Any]
"""How a line looks: arguments of matplotlib's plot."""


@dataclass(frozen=True)
class Drawing:
    """A figure and what stands beside it.

    Attributes:
        name: stem of its files.
        title: what is measured.
        text: what it shows, for readers who do not see it and for those who do.
        points: what it was drawn from.
    """

    name: str
    title: str
    text: str
    figure: Figure
    points: Sequence[Sample]


def sheet() -> tuple[Figure, Axes]:
    """Return an empty figure with one pair of axes."""
    figure = Figure(figsize=SIZE, layout="constrained", facecolor=PAPER)
    axes: Axes = figure.subplots()
    return figure, axes


@dataclass(frozen=True)
class Words:
    """What is written at a figure: its title, and quantity and unit of its axes."""

    title: str
    x: str
    y: str


def over_bytes(
    name: str, words: Words, lines: Sequence[Series], points: Sequence[Sample]
) -> list[Drawing]:
    """Draw `lines` over a number of bytes, both axes logarithmic; nothing if no value fits there.

    A shade shows the range over repeats and nodes. There are as many lines as can be told apart;
    the text counts the others, and the values of 0, which have no place on such an axis.
    """
    positive = [Series(line.label, _positive(line)) for line in lines]
    whole = [line for line in positive if line.spots]
    drawn = whole[: len(COLOURS)]
    if not drawn:
        return []
    figure, axes = sheet()
    for line, colour, marker, dash in zip(drawn, COLOURS, MARKERS, DASHES, strict=False):
        x = [spot.x for spot in line.spots]
        y = [spot.y for spot in line.spots]
        axes.plot(x, y, color=colour, marker=marker, linestyle=dash, label=line.label)
        low = [spot.low for spot in line.spots]
        high = [spot.high for spot in line.spots]
        if low != high:
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    spots = [spot for line in drawn for spot in line.spots]
    _scale_bytes(axes, [spot.x for spot in spots])
    _scale_log(axes, [bound for spot in spots for bound in (spot.low, spot.high)])
    axes.set_xlabel(words.x)
    axes.set_title(words.y, loc="left")
    if any(line.label for line in drawn):
        figure.legend(loc="outside upper left", ncols=2, frameon=False, borderaxespad=0.2)
    zeros = sum(len(line.spots) for line in lines) - sum(len(line.spots) for line in positive)
    text = _described(drawn, words.y, len(whole) - len(drawn), zeros)
    return [Drawing(name, words.title, text, figure, points)]


def _positive(line: Series) -> tuple[PlotPoint, ...]:
    """Return what has a place on a logarithmic axis."""
    return tuple(spot for spot in line.spots if spot.low > 0)


def _scale_bytes(axes: Axes, x: Sequence[float]) -> None:
    low, high = min(x), max(x)
    if low == 0:
        # Messages without content have a place of their own, left of one byte.
        axes.set_xscale("symlog", base=2, linthresh=1)
        axes.set_xlim(-0.4, 2 ** (math.log2(max(high, 1)) + 0.5))
    else:
        axes.set_xscale("log", base=2)
        margin = 2 ** max(0.25, 0.04 * math.log2(high / low))
        axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_major_locator(FixedLocator(byte_ticks(low, high)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(byte_label))
    axes.xaxis.set_tick_params(rotation=0)


def _scale_log(axes: Axes, y: Sequence[float]) -> None:
    ticks = log_ticks(min(y), max(y))
    axes.set_yscale("log")
    axes.set_ylim(ticks[0], ticks[-1])
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(number_label))
    axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)


def _described(lines: Sequence[Series], y_label: str, left_out: int, zeros: int) -> str:
    said = []
    for line in lines:
        values = [spot.y for spot in line.spots]
        name = f"{line.label}: " if line.label else ""
        ends = " to ".join(dict.fromkeys([number(min(values), 3), number(max(values), 3)]))
        said.append(f"{name}{ends}")
    more = f" {count(left_out, 'more line')} in the data only." if left_out else ""
    none = f" {count(zeros, 'value')} of 0 not drawn." if zeros else ""
    return f"{y_label[:1].upper()}{y_label[1:]} – {'; '.join(said)}.{more}{none}"


@dataclass(frozen=True)
class Bars:
    """Bars of one colour: a value for each group, None where there is none."""

    label: str
    values: Sequence[float | None]


def bars(
    groups: Sequence[str], series: Sequence[Bars], y_label: str, level: tuple[str, float] | None
) -> Figure:
    """Draw bars from zero, each with its value; `level` is a line with a name across them."""
    figure, axes = sheet()
    width = 0.8 / len(series)
    for index, (each, colour, hatch) in enumerate(zip(series, COLOURS, HATCHES, strict=False)):
        shown = [(place, value) for place, value in enumerate(each.values) if value is not None]
        x = [place + (index - (len(series) - 1) / 2) * width for place, _ in shown]
        y = [value for _, value in shown]
        drawn = axes.bar(
            x, y, width * 0.92, label=each.label, color=colour, hatch=hatch, edgecolor=PAPER
        )
        axes.bar_label(drawn, [number(value, 3) for value in y], padding=2, fontsize=8.5)
    if level:
        name, value = level
        axes.axhline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.0)
        place = (len(groups) - 0.5, value)
        axes.annotate(
            name, place, xytext=(0, 3), textcoords="offset points", ha="right", fontsize=8.5
        )
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    heights = [value for each in series for value in each.values if value is not None]
    axes.set_ylim(0, 1.12 * max([*heights, level[1] if level else 0]))
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(FuncFormatter(number_label))
    axes.set_title(y_label, loc="left")
    figure.legend(loc="outside upper left", ncols=2, frameon=False, borderaxespad=0.2)
    return figure
