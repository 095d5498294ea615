"""The sections about changes: of figures, of single nodes, and of programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from proofmark.common.message import localized
from proofmark.common.translation import _
from proofmark.packages.history.change_points import LEAST_LENGTH
from proofmark.packages.history.history import LEAST_PEERS, Event, HistoryLine, Points
from proofmark.packages.history.history_chart import SECONDS_OF_DAY, Curve, Mark, plot
from proofmark.packages.history.trend import Reprogrammed, Trend, TrendChange
from proofmark.report.page import Block, Cell, Column, Fold, Picture, Table, numeric, titled
from proofmark.report.words import number, pairs

MOST_EVENTS = 3
"""The largest number of events or differences in a cell of a table."""


def label(line: HistoryLine) -> tuple[str, str]:
    """Return the name of a series, and its settings."""
    figure = line.figure
    benchmark = "" if figure.benchmark.casefold() == figure.case.casefold() else figure.benchmark
    name = " ".join(filter(None, (figure.case, benchmark, figure.metric)))
    mode = "" if figure.mode == "current" else figure.mode
    settings = pairs(json.loads(figure.parameters))
    return name, ", ".join(filter(None, (mode, figure.placement, settings)))


def day_of(trend: Trend, run: int) -> float:
    """Return the start of a run in days since 1970."""
    return trend.runs[run].started.timestamp() / SECONDS_OF_DAY


def curve_of(trend: Trend, points: Points) -> Curve:
    """Return the curve of a series."""
    days = np.array([day_of(trend, run) for run in points.run.tolist()])
    return Curve(days, points.value, points.low, points.high)


def folded_table(shown: Table, rows: int) -> Fold:
    """Return a table that opens at a click."""
    return Fold(_("{count} rows").format(count=rows), Block(tables=(shown,)))


MOST_PLOTS = 60
"""The largest number of plots with axes in a group."""


def changed_figures(trend: Trend) -> Iterator[Block]:
    """Yield the table and the plots of the figures that changed."""
    if not trend.changes:
        text = _("No figure changed by more than its noise. {tested} series were tested.")
        yield Block(paragraphs=(text.format(tested=trend.tested), *_too_noisy(trend.noisy)))
        return
    rows = (_row(trend, change, label(change.points.line)) for change in trend.changes)
    columns = (_("Figure"), *_columns())
    shown = titled(_("Changes"), columns, rows, total=len(trend.changes))
    yield Block(tables=(shown,))
    yield _plots(trend, trend.changes)


def _too_noisy(series: int) -> Iterator[str]:
    """Yield that tested series show nothing, because they are too noisy."""
    if series:
        text = _("{count} of them are too noisy: a material change would not be seen.")
        yield text.format(count=series)


def _plots(trend: Trend, changes: Sequence[TrendChange]) -> Block:
    """Return the plots of changed series, and how to read them."""
    pictures = tuple(_pictures(trend, changes))
    left = len({id(change.points) for change in changes}) - len(pictures)
    notes = [_("Dots: runs. Vertical lines: intervals with 95 % confidence or less.")]
    notes.append(_("Shades: when a change happened. Triangles: events of the machine."))
    if left > 0:
        notes.append(_("{left} more changed series have no plot here.").format(left=left))
    return Block(paragraphs=(" ".join(notes),), pictures=pictures)


def _columns() -> tuple[Column | str, ...]:
    return (
        numeric(_("From")),
        numeric(_("To")),
        numeric(_("Change")),
        _("When"),
        _("Events that may be the cause"),
    )


def _row(trend: Trend, change: TrendChange, head: tuple[str, str]) -> tuple[Cell | str, ...]:
    name, settings = head
    unit = "" if change.points.line.node else f" {change.points.line.figure.unit}"
    size = _percent(change.change)
    bounds: tuple[str, ...] = ()
    if each := change.interval:
        bounds = (f"{_percent(each.low)} … {_percent(each.high)}",)
    return (
        Cell(name, "strong", details=(settings,) if settings else ()),
        f"{number(change.first)}{unit}",
        f"{number(change.last)}{unit}",
        Cell(size, f"number {_kind(change)}".strip(), details=(_word(change), *bounds)),
        _when(trend, change),
        _causes(change.events),
    )


def _percent(ratio: float) -> str:
    return f"{100 * ratio:+.1f}\u00a0%".replace("-", "−")


def _kind(change: TrendChange) -> str:
    return {True: "improved", False: "worse", None: ""}[change.better]


def _word(change: TrendChange) -> str:
    return {True: _("better"), False: _("worse"), None: _("changed")}[change.better]


def _when(trend: Trend, change: TrendChange) -> Cell:
    before, after = (
        f"{trend.runs[each].started:%Y-%m-%d}" for each in (change.before, change.after)
    )
    if change.gradual:
        return Cell(_("gradually"), details=(f"{before} – {after}",))
    at = trend.runs[change.at]
    between = _("after {before}, at the latest at {after}")
    detail = between.format(
        before=trend.runs[change.before].run, after=trend.runs[change.after].run
    )
    return Cell(f"{at.started:%Y-%m-%d}", details=(detail,))


def _causes(events: Sequence[Event]) -> Cell:
    if not events:
        return Cell(_("none known"))
    words = [_event(event) for event in events[:MOST_EVENTS]]
    if len(events) > MOST_EVENTS:
        words.append(_("{count} more").format(count=len(events) - MOST_EVENTS))
    return Cell(words[0], details=tuple(words[1:]))


def _event(event: Event) -> str:
    old, new = event.old or _("absent"), event.new or _("absent")
    return f"{localized(event.trait)}: {old} → {new}"


def _pictures(trend: Trend, of: Sequence[TrendChange]) -> Iterator[Picture]:
    """Yield a plot of each changed figure, at most `MOST_PLOTS`."""
    changes: dict[int, list[TrendChange]] = {}
    for change in of:
        changes.setdefault(id(change.points), []).append(change)
    for alike in list(changes.values())[:MOST_PLOTS]:
        points = alike[0].points
        name, settings = label(points.line)
        name = f"{points.line.node} {name}".strip()
        yield Picture(
            _titled(name, points),
            settings,
            plot(
                curve_of(trend, points),
                _described(name, alike),
                [_mark(trend, change) for change in alike],
                _levels(trend, points, alike),
                [day_of(trend, event.after) for event in trend.events if event.nodes],
            ),
            (),
            "history",
        )


def _titled(name: str, points: Points) -> str:
    unit = _("÷ median of like nodes") if points.line.node else points.line.figure.unit
    return f"{name} ({unit})" if unit else name


def _described(name: str, changes: Sequence[TrendChange]) -> str:
    words = [f"{number(each.first)} → {number(each.last)}" for each in changes]
    return f"{name}: {'; '.join(words)}"


def _mark(trend: Trend, change: TrendChange) -> Mark:
    kind = {True: "improved", False: "", None: "neutral"}[change.better]
    return Mark(day_of(trend, change.before), day_of(trend, change.after), kind)


def _levels(
    trend: Trend, points: Points, changes: Sequence[TrendChange]
) -> list[tuple[float, float, float]]:
    """Return first day, last day and median of each part between the changes."""
    steps = sorted(change.at for change in changes if not change.gradual)
    places = [0, *np.searchsorted(points.run, steps).tolist(), len(points)]
    if not steps:
        return []
    return [
        (
            day_of(trend, int(points.run[first])),
            day_of(trend, int(points.run[last - 1])),
            float(np.median(points.value[first:last])),
        )
        for first, last in pairwise(places)
    ]


def drifting_nodes(trend: Trend) -> Iterator[Block]:
    """Yield the table of the nodes that changed against like nodes."""
    if not trend.compared_nodes:
        text = _("No node has {runs} runs with {peers} like nodes: none can be compared.")
        yield Block(paragraphs=(text.format(runs=LEAST_LENGTH, peers=LEAST_PEERS),))
    elif not trend.drifting:
        text = _("No node changed against the median of its class. {tested} series were tested.")
        noise = _too_noisy(trend.noisy_nodes)
        yield Block(paragraphs=(text.format(tested=trend.compared_nodes), *noise))
    else:
        about = _("From and to: the value of the node ÷ the median of like nodes in the same run.")
        rows = (_row(trend, change, _of_node(change)) for change in trend.drifting)
        columns = (_("Node"), *_columns())
        shown = titled(_("Nodes that drift"), columns, rows, total=len(trend.drifting))
        yield Block(paragraphs=(about,), tables=(shown,))
        yield _plots(trend, trend.drifting)


def _of_node(change: TrendChange) -> tuple[str, str]:
    line = change.points.line
    return line.node, ", ".join(filter(None, label(line)))


def other_programs(trend: Trend) -> Iterator[Block]:
    """Yield the table of the figures that several programs measured."""
    if not trend.reprogrammed:
        yield Block(paragraphs=(_("Each figure was measured by one program."),))
        return
    about = _(
        "These figures were measured by several programs. They are not like figures: the change "
        "is information, without a test."
    )
    ordered = sorted(trend.reprogrammed, key=lambda each: -abs(each.change))
    rows = (_row_of_program(each) for each in ordered)
    columns: tuple[Column | str, ...] = (
        _("Figure"),
        numeric(_("Before")),
        numeric(_("Now")),
        numeric(_("Change")),
        _("What differs"),
    )
    shown = titled(_("Other programs"), columns, rows, total=len(ordered))
    yield Block(paragraphs=(about,), folds=(folded_table(shown, len(ordered)),))


def _row_of_program(each: Reprogrammed) -> tuple[Cell | str, ...]:
    name, settings = label(each.new.line)
    unit = each.new.line.figure.unit
    old, new = float(np.median(each.old.value)), float(np.median(each.new.value))
    words = [
        f"{localized(trait)}: {first or '–'} → {last or '–'}" for trait, first, last in each.traits
    ]
    more = len(words) - MOST_EVENTS
    rest = (_("{count} more").format(count=more),) if more > 0 else ()
    return (
        Cell(name, "strong", details=(settings,) if settings else ()),
        f"{number(old)} {unit}",
        f"{number(new)} {unit}",
        _percent(each.change),
        Cell(words[0] if words else _("not known"), details=(*words[1:MOST_EVENTS], *rest)),
    )
