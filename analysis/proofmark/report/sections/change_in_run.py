"""The section of a long run: its end compared with its beginning, and the sensors over time.

A curve over the time of a run has the range of all nodes, and a few nodes by name.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from proofmark.cases.case import BENCHMARK, TELEMETRY
from proofmark.common.message import localized
from proofmark.common.translation import ENGLISH, _, in_language
from proofmark.judge.diagnosis.over_time import ChangeOverTime
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Floats, Record
from proofmark.report.drawing.charts import COLOURS, DASHES, INK, PAPER, Drawing, plot_style
from proofmark.report.page import Block, Cell, Picture, Section, numeric, tabled
from proofmark.report.run_data import RunData
from proofmark.report.sections.plots_section import Files, picture
from proofmark.report.words import count, number, pairs

BINS = 60
"""The largest number of points of the range of all nodes."""

MOST_NAMED = 3
"""The largest number of nodes with a line of their own."""

WIDTH, HEIGHT = 4.6, 1.55

NAME = "over-time"


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


def sections(run_data: RunData) -> tuple[tuple[Section, ...], Files]:
    """Return the section and its files; nothing for a run without sensors and without repeats."""
    verdict, files = run_data.verdict, Files()
    pictures = tuple(_pictures(run_data, files))
    if not verdict.over_time.changes and not pictures:
        return (), {}
    blocks = (*_changes(verdict), Block(pictures=pictures))
    return (Section(NAME, _("Over time"), blocks),), files


def _changes(verdict: Verdict) -> Iterator[Block]:
    compared = verdict.over_time
    if not compared.changes:
        return
    minutes = number(compared.window_s / 60, 3)
    about = _(
        "The last {minutes} minutes of {hours} hours are compared with the first "
        "{first}: {figures} with enough repeats."
    ).format(
        minutes=minutes,
        hours=number(compared.seconds / 3600, 3),
        first=minutes,
        figures=count(len(compared.changes), "figure"),
    )
    if not compared.worse:
        yield Block(
            paragraphs=(about, _("None became worse by more than the noise of its repeats."))
        )
        return
    figures = verdict.results.aggregates
    rows = [_row(change, figures.record(change.figure)) for change in compared.worse]
    columns = (
        _("Node"),
        _("Figure"),
        numeric(_("First")),
        numeric(_("Last")),
        numeric(_("Ratio")),
        numeric(_("Noise")),
        _("Sensors"),
    )
    caption = _("Figures that became worse")
    yield tabled(caption, columns, rows, about, rest=_("The list is in verdict.json."))


def _row(change: ChangeOverTime, record: Record) -> tuple[Cell | str, ...]:
    settings = tuple(filter(None, [pairs(record.parameters)]))
    return (
        Cell(change.node, "strong"),
        Cell(f"{record.case} {record.metric}", details=settings),
        f"{number(float(np.median(change.first)))} {record.unit}",
        f"{number(float(np.median(change.last)))} {record.unit}",
        number(change.ratio, 3),
        f"{number(100 * change.noise, 2)} %",
        "; ".join(map(localized, change.evidence)) or _("no sensor"),
    )


def _pictures(run_data: RunData, files: Files) -> Iterator[Picture]:
    panels = list(_panels(run_data.verdict))
    if not panels:
        return
    title = _("Power, temperature, clock and throttling over time")
    with plot_style():
        drawing = Drawing(NAME, title, described(panels), draw_over_time(panels), ())
    yield picture(drawing, files, run_data.run.files.plots.name)
    with in_language(ENGLISH):  # programs read it
        files[f"{NAME}.csv"] = _csv(list(_panels(run_data.verdict))).encode()


def _panels(verdict: Verdict) -> Iterator[Curves]:
    """Yield the speed of the figures that are compared over time, then each sensor."""
    records = verdict.results.aggregates.records
    starts = np.array([each.start for each in records.executions], dtype=np.float64)
    if not len(starts) or np.isnan(starts).all():
        return
    begin = float(np.nanmin(starts))
    worse = dict.fromkeys(change.node for change in verdict.over_time.worse)
    named = [*worse][:MOST_NAMED]
    yield from _speed(verdict, begin, named)
    for metric, about in TELEMETRY.items():
        numbers = [
            number
            for number, each in enumerate(records.measurands)
            if (each.benchmark, each.metric) == (BENCHMARK, metric)
        ]
        mask = np.isin(records.measurand, numbers) & records.valid
        mask &= ~np.isnan(starts[records.execution]) if len(mask) else mask
        if mask.sum() < 2:
            continue
        hours = (starts[records.execution[mask]] - begin) / 3600
        values, nodes = records.value[mask], records.node[mask]
        of_nodes = {}
        for name in named:
            own = nodes == records.nodes.index(name)
            order = np.argsort(hours[own], kind="stable")
            of_nodes[name] = hours[own][order], values[own][order]
        yield Curves(
            _("{metric} in {unit}").format(metric=metric, unit=about.unit), hours, values, of_nodes
        )


def _speed(verdict: Verdict, begin: float, named: Sequence[str]) -> Iterator[Curves]:
    """Yield the values of the compared figures, each divided by its first ones."""
    compared = verdict.over_time
    if not compared.changes:
        return
    parts = []
    of_nodes: dict[str, tuple[Floats, Floats]] = {}
    worst = {change.node: change.figure for change in reversed(compared.worse)}
    for figure, (times, values) in compared.series.items():
        first = float(np.median(compared.changes[figure].first))
        hours, relative = (times - begin) / 3600, values / first
        parts.append((hours, relative))
        for name in named:
            if worst[name] == figure:
                of_nodes[name] = hours, relative
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    yield Curves(_("speed ÷ that at the start"), joined[0], joined[1], of_nodes)


def _csv(panels: Sequence[Curves]) -> str:
    """Return the curves as CSV: the range of all nodes by bin, each value of named nodes."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["quantity", "node", "hours", "least", "median", "greatest"])
    for panel in panels:
        for row in zip(*binned(panel.hours, panel.values), strict=True):
            writer.writerow([panel.label, "", *map(float, row)])
        for name, (hours, values) in panel.named.items():
            for hour, value in zip(hours.tolist(), values.tolist(), strict=True):
                writer.writerow([panel.label, name, hour, value, value, value])
    return file.getvalue()
