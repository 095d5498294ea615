"""Charts of several panels with a common legend, as the papers have them, and their labels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from proofmark.common.translation import N_, _, translated
from proofmark.packages.papers.charts import (
    COLOURS,
    DASHES,
    INK,
    MARKERS,
    PAPER,
    Drawing,
    Style,
    draw_limits,
)
from proofmark.packages.papers.claim import PAPERS, NodeHardware
from proofmark.packages.papers.plot import PlotContext
from proofmark.packages.papers.series import (
    Measure,
    Sample,
    Series,
    byte_label,
    byte_ticks,
    log_ticks,
    number_label,
    plot_points_of,
)
from proofmark.records.columns import Record
from proofmark.report.words import count, number, visible

Scale = Literal["linear", "bytes", "doubling", "log"]


def machine_of(samples: Sequence[Sample], context: PlotContext) -> NodeHardware | None:
    """Return a node of the system of `samples`, as the site declares it, else as the papers do."""
    return context.machine or (PAPERS.get(samples[0].record.system) if samples else None)


@dataclass(frozen=True)
class Axis:
    """Quantity, unit and scale of an axis.

    Attributes:
        scale: ``bytes`` and ``doubling`` are logarithmic to base 2, ``log`` to base 10.
        zero: a linear axis begins at 0.
        counted: returns an x in words: ``8 threads``.
    """

    label: str
    scale: Scale = "linear"
    zero: bool = True
    counted: Callable[[int], str] = str


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        level: the label and the x of a vertical line.
        marks: words by their x.
    """

    title: str
    lines: Sequence[Series]
    y: str | None = None
    level: tuple[str, float] | None = None
    marks: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chart:
    """Title, axes and style of a plot, without its data.

    Attributes:
        name: stem of its file names.
        title: paper, number of its figure, quantity and axes.
        unit: unit of the values in the text below the plot.
        columns: the largest number of panels in a row.
        ordered: lines are in the order of a growing number, and get colours from dark to light.
        signed: the y axis includes 0 and negative values.
        own_x: only lines with the same label, in any panel, have the same x values; else all lines
            of a panel.
        cases: the text below the plot counts the steps of these cases without a valid figure.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    unit: str
    columns: int = 2
    ordered: bool = False
    legend_columns: int = 2
    signed: bool = False
    own_x: bool = False
    cases: Sequence[str] = field(default_factory=tuple)


def expected_x(
    chart: Chart, content: Sequence[Panel], panel: Panel
) -> Mapping[str, Sequence[float]]:
    """Return each x that the lines of `panel` should have, by label."""

    def of(lines: Iterable[Series]) -> list[float]:
        values = set()
        for line in lines:
            values |= {point.x for point in line.points}
        return sorted(values)

    if not chart.own_x:
        return dict.fromkeys((line.label for line in panel.lines), of(panel.lines))
    return {
        line.label: of(o for each in content for o in each.lines if o.label == line.label)
        for line in panel.lines
    }


BOLD = {"size": 9.5, "weight": "bold"}
WIDTH, HEIGHT = 4.6, 2.55  # inches of one panel
MARKS = 12
"""Number of markers on a line; more of them would hide it."""


def draw_panels(
    chart: Chart, content: Sequence[Panel], samples: Sequence[Sample], context: PlotContext
) -> list[Drawing]:
    """Draw the panels that have a line of two points or more; nothing if there is none.

    Lines with the same label have the same style in all panels. A line has a gap at an x that
    only other lines have (`Chart.own_x`); the text lists the gaps.
    """
    chart = replace(chart, title=visible(chart.title))
    content = [
        replace(panel, title=visible(panel.title))
        for panel in content
        if any(len(line.points) > 1 for line in panel.lines)
    ]
    if not content:
        return []
    columns = min(chart.columns, len(content))
    rows = math.ceil(len(content) / columns)
    size = (max(WIDTH, 3.7 * columns), HEIGHT * rows + 0.75)
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    grid = figure.subplots(rows, columns, squeeze=False)
    title = textwrap.fill(chart.title, round(13 * size[0]))
    styles = _styles(content, ordered=chart.ordered)
    for axes, panel in zip(grid.flat, content, strict=False):
        _draw(axes, panel, chart, styles, expected_x(chart, content, panel))
    for axes in list(grid.flat)[len(content) :]:
        axes.set_axis_off()
    handles: dict[str, Artist] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper left",
            ncols=chart.legend_columns * columns,
            frameon=False,
            borderaxespad=0.2,
            handlelength=3.2,
            title=title,
            title_fontproperties=BOLD,
            alignment="left",
        )
    else:
        figure.suptitle(title, x=0.01, ha="left", fontproperties=BOLD)
    text = text_below(chart, content, context)
    return [Drawing(chart.name, chart.title, text, figure, samples)]


def _styles(content: Sequence[Panel], *, ordered: bool) -> Mapping[str, Style]:
    line_labels = []
    for panel in content:
        line_labels += [line.label for line in panel.lines]
    labels = list(dict.fromkeys(line_labels))
    if ordered:
        shades = matplotlib.colormaps["viridis"]
        last = max(1, len(labels) - 1)
        colours = [matplotlib.colors.to_hex(shades(0.86 * i / last)) for i in range(len(labels))]
    else:
        colours = [COLOURS[i % len(COLOURS)] for i in range(len(labels))]
    return {
        label: {
            "color": colours[i],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": DASHES[i % len(DASHES)],
            "markerfacecolor": PAPER if i % 2 else colours[i],
        }
        for i, label in enumerate(labels)
    }


def _draw(
    axes: Axes,
    panel: Panel,
    chart: Chart,
    styles: Mapping[str, Style],
    expected: Mapping[str, Sequence[float]],
) -> None:
    abscissas = set()
    for line in panel.lines:
        abscissas |= {point.x for point in line.points}
    positions = sorted(abscissas)
    for index, line in enumerate(panel.lines):
        point_at = {point.x: point for point in line.points}
        if not point_at:
            continue
        within = [x for x in expected[line.label] if min(point_at) <= x <= max(point_at)]
        y = [point_at[x].y if x in point_at else math.nan for x in within]
        every = max(1, round(len(within) / MARKS))
        # Markers of different lines alternate, so that coinciding lines can be distinguished.
        first = index * every // len(panel.lines)
        axes.plot(within, y, label=line.label, markevery=(first, every), **styles[line.label])
        bounds = [
            (point_at[x].low, point_at[x].high) if x in point_at else (math.nan, math.nan)
            for x in within
        ]
        if any(low < high for low, high in bounds):
            colour = styles[line.label]["color"]
            lows, highs = zip(*bounds, strict=True)
            axes.fill_between(within, lows, highs, color=colour, alpha=0.15, linewidth=0)
    if panel.level and positions[0] < panel.level[1] < positions[-1]:
        name, x = panel.level
        axes.axvline(x, color=INK, linestyle=(0, (1, 2)), linewidth=0.9)
        axes.annotate(
            name,
            (x, 0.92 if chart.signed else 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=8,
        )
    for x, words in panel.marks.items():
        axes.annotate(
            words,
            (x, 0.02),
            xycoords=("data", "axes fraction"),
            ha="center",
            fontsize=7,
            rotation=90,
        )
    bounds_of = [] if chart.signed else draw_limits(axes, panel.lines)
    _scale_x(axes, chart.x, positions)
    values = []
    for line in panel.lines:
        values += [point.y for point in line.points]
    _scale_y(axes, chart, [*values, *bounds_of])
    axes.set_xlabel(chart.x.label)
    unit = panel.y or chart.y.label
    axes.set_title(f"{panel.title} – {unit}" if panel.title else unit, loc="left")
    axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)


def _scale_x(axes: Axes, axis: Axis, positions: Sequence[float]) -> None:
    low, high = positions[0], positions[-1]
    if axis.scale == "linear":
        margin = 0.03 * (high - low)
        axes.set_xlim(max(0.0, low - margin), high + margin)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 4, 5, 10]))
        return
    axes.set_xscale("log", base=2)
    margin = 2 ** max(0.15, 0.03 * math.log2(high / low))
    axes.set_xlim(low / margin, high * margin)
    if axis.scale == "bytes":
        axes.xaxis.set_major_locator(FixedLocator(byte_ticks(low, high, 6)))
        axes.xaxis.set_major_formatter(FuncFormatter(byte_label))
    else:
        axes.xaxis.set_major_locator(FixedLocator(byte_ticks(low, high, 6)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(round(x))))
    axes.xaxis.set_minor_locator(NullLocator())


def _scale_y(axes: Axes, chart: Chart, values: Sequence[float]) -> None:
    if chart.y.scale == "log":
        ticks = log_ticks(min(values), max(values))
        axes.set_yscale("log")
        axes.set_ylim(ticks[0], ticks[-1])
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(number_label))
        return
    low, high = min(values), max(values)
    if chart.signed:
        axes.axhline(0, color=INK, linewidth=0.8)
        margin = 0.06 * (max(high, 0) - min(low, 0))
        axes.set_ylim(min(low, 0) - margin, max(high, 0) + margin)
    else:
        axes.set_ylim(0 if chart.y.zero else low, 1.06 * high)
    axes.yaxis.set_major_formatter(FuncFormatter(_plain))


def _plain(value: float, _: int = 0) -> str:
    return number(value, 2) if abs(value) >= 1 or value == 0 else f"{value:g}".replace("-", "−")


def scaled(lines: Sequence[Series], factor: Callable[[float], float]) -> list[Series]:
    """Return the lines with each value multiplied by `factor(x)`."""
    return [
        Series(
            line.label,
            tuple(
                type(point)(
                    point.x,
                    point.y * factor(point.x),
                    point.low * factor(point.x),
                    point.high * factor(point.x),
                    tuple((kind, bound * factor(point.x)) for kind, bound in point.limits),
                )
                for point in line.points
            ),
        )
        for line in lines
    ]


def text_below(chart: Chart, content: Sequence[Panel], context: PlotContext) -> str:
    """Return the ends of each line, the gaps of lines, and the steps without a valid figure."""
    parts = (_ranges(chart, content), _gaps(chart, content), _incomplete(chart, context))
    return " ".join(filter(None, parts))


def _ranges(chart: Chart, content: Sequence[Panel]) -> str:
    """Return for each line its first, last and largest value, and the x of the largest."""
    most = 8
    lines = []
    for panel in content:
        lines += [(panel, line) for line in panel.lines if line.points]
    ranges = []
    for panel, line in lines[:most]:
        values = [point.y for point in line.points]
        name = ", ".join(filter(None, (panel.title, line.label)))
        top = max(line.points, key=lambda point: point.y)
        position = _position(chart.x, top.x)
        ends = (
            _("{first} to {last} {unit}")
            .format(first=number(values[0], 3), last=number(values[-1], 3), unit=chart.unit)
            .strip()
        )
        ranges.append(
            _("{name}: {ends}, largest {value} at {position}").format(
                name=name, ends=ends, value=number(top.y, 3), position=position
            )
        )
    more = f" {count(len(lines) - most, 'more line')}." if len(lines) > most else ""
    return f"{'; '.join(ranges)}.{more}"


def _position(axis: Axis, x: float) -> str:
    if axis.scale == "bytes":
        return byte_label(x)
    return axis.counted(round(x))


def _gaps(chart: Chart, content: Sequence[Panel]) -> str:
    """Return which lines have gaps: an x that they should have (`expected_x`)."""
    gaps = []
    for panel in content:
        expected = expected_x(chart, content, panel)
        for line in panel.lines:
            measured = {point.x for point in line.points}
            missing = [
                x
                for x in expected[line.label]
                if measured and min(measured) <= x <= max(measured) and x not in measured
            ]
            if missing:
                listed = ", ".join(number(x) for x in missing[:4])
                more = (
                    _(" and {count} more").format(count=len(missing) - 4)
                    if len(missing) > 4
                    else ""
                )
                name = ", ".join(filter(None, (panel.title, line.label)))
                gaps.append(
                    _("{name} at {positions}{more}").format(name=name, positions=listed, more=more)
                )
    return _("Missing: {gaps}.").format(gaps="; ".join(gaps)) if gaps else ""


def _incomplete(chart: Chart, context: PlotContext) -> str:
    counts = [
        (case, *context.missing_steps[case])
        for case in chart.cases
        if case in context.missing_steps
    ]
    return " ".join(
        _(
            "Incomplete: {missing} of {planned} planned steps of {case} have no valid figure."
        ).format(missing=missing, planned=planned, case=case)
        for case, missing, planned in counts
        if missing
    )


def lines_by_label(
    samples: Sequence[Sample], label: Callable[[Record], str], x: Measure, factor: Measure
) -> list[Series]:
    """Return lines over `x`, one for each label, in the order in which labels first occur."""
    alike: dict[str, list[Sample]] = {}
    for sample in samples:
        alike.setdefault(label(sample.record), []).append(sample)
    return [
        Series(visible(name), plot_points_of(members, x, factor)) for name, members in alike.items()
    ]


_MODES = {
    "a2a": "All2All",
    "quadrant": "Quadrant",
    "hemisphere": "Hemisphere",
    "snc2": "SNC-2",
    "snc4": "SNC-4",
}


_MEMORIES = {"ddr": "DDR", "mcdram": "MCDRAM", "hbm": "HBM", "cxl": "CXL", "nvm": "NVM"}


_LAYOUTS = {"single-shared-file": N_("shared file"), "file-per-process": N_("file per process")}


def mode_name(mode: str) -> str:
    """Return the name of a mode as in the papers. Flat is omitted: they measure no other mode."""
    cluster, _, memory = mode.partition("-")
    name = _MODES.get(cluster)
    if name is None:
        return "" if mode == "current" else mode
    return name if memory == "flat" else f"{name} {memory}"


def memory_name(memory: object) -> str:
    """Return the name of a kind of memory as in the papers."""
    return _MEMORIES.get(str(memory), str(memory or ""))


def layout_name(layout: object) -> str:
    """Return the short name of a file layout."""
    return translated(_LAYOUTS.get(str(layout), str(layout or "")))


def with_fit(name: str, placement: str) -> str:
    """Return `name`, with ``not fitted`` if the placement is not fitted to the NUMA domains."""
    return ", ".join(filter(None, (name, _("not fitted")))) if placement == "unfitted" else name


def block_name(size: object) -> str:
    """Return the block size of a file system as in the paper; ``blocks of N B`` for other sizes."""
    return {524288: _("512 KB blocks"), 1048576: _("1 MB blocks")}.get(
        size if isinstance(size, int) else 0, _("blocks of {size} B").format(size=size)
    )
