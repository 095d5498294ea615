"""The page of trends: what changed, then the figures, the events of the machine, and the runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from proofmark.common.message import localized
from proofmark.common.text import percent
from proofmark.common.translation import _, translated
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL
from proofmark.packages.history.change_points import LEAST_LENGTH, LEAST_RUNS, Course
from proofmark.packages.history.history_chart import SECONDS_OF_DAY, Curve, Mark, plot, sparkline
from proofmark.packages.history.past_run import LeftOut, PastRun
from proofmark.packages.history.trend import (
    LEAST_PEERS,
    Event,
    HistoryLine,
    Points,
    Reprogrammed,
    Trend,
    TrendChange,
)
from proofmark.report.page import (
    TITLED,
    Block,
    Cell,
    Column,
    Fold,
    Picture,
    Section,
    Table,
    facts,
    numeric,
    table,
    titled,
)
from proofmark.report.render import page
from proofmark.report.words import count, number, pairs

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
    return Fold(count(rows, "row"), Block(tables=(shown,)))


def named(head: tuple[str, str]) -> Cell:
    """Return the cell with the name and the settings of a series."""
    name, settings = head
    return Cell(name, "strong", details=(settings,) if settings else ())


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
    unit = "" if change.points.line.node else f" {change.points.line.figure.unit}"
    size = _percent(change.change)
    bounds: tuple[str, ...] = ()
    if each := change.interval:
        bounds = (f"{_percent(each.low)} … {_percent(each.high)}",)
    return (
        named(head),
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
    """Yield what several programs measured: a row for each metric, and the folded figures."""
    if not trend.reprogrammed:
        yield Block(paragraphs=(_("Each figure was measured by one program."),))
        return
    about = _(
        "These figures were measured by several programs. They are not like figures: the change "
        "is information, without a test. The events of the machine name what differs."
    )
    ordered = sorted(trend.reprogrammed, key=lambda each: -abs(each.change))
    changes: dict[str, list[float]] = {}
    for each in ordered:
        changes.setdefault(label(each.new.line)[0], []).append(each.change)
    heads = (_("Figures"), _("Least change"), _("Median"), _("Greatest change"))
    of_metrics = (_row_of_metric(*item) for item in changes.items())
    columns: list[Column | str] = [_("Metric"), *map(numeric, heads)]
    metrics = titled(_("Other programs"), columns, of_metrics, total=len(changes))
    columns = [_("Figure"), *map(numeric, (_("Before"), _("Now"), _("Change")))]
    shown = titled(_("All figures"), columns, map(_row_of_program, ordered), total=len(ordered))
    folds = (folded_table(shown, len(ordered)),)
    yield Block(paragraphs=(about,), tables=(metrics,), folds=folds)


def _row_of_metric(name: str, changes: Sequence[float]) -> tuple[Cell | str, ...]:
    bounds = map(_percent, (min(changes), float(np.median(changes)), max(changes)))
    return Cell(name, "strong"), f"{len(changes)}", *bounds


def _row_of_program(each: Reprogrammed) -> tuple[Cell | str, ...]:
    values = (number(float(np.median(points.value))) for points in (each.old, each.new))
    shown = (f"{value} {each.new.line.figure.unit}" for value in values)
    return named(label(each.new.line)), *shown, _percent(each.change)


MOST_SPARKS = 2000
"""The largest number of small plots in a group."""


def machine_events(trend: Trend) -> Iterator[Block]:
    """Yield the table of the events."""
    if not trend.events:
        text = _("The nodes and programs were the same in all runs that recorded them.")
        yield Block(paragraphs=(text,))
        return
    rows = (_row_of_event(trend, event) for event in trend.events)
    columns = (_("Between"), _("Trait"), _("Before"), _("After"), _("Where"))
    shown = titled(_("Events"), columns, rows, total=len(trend.events))
    yield Block(tables=(shown,))


def _row_of_event(trend: Trend, event: Event) -> tuple[Cell | str, ...]:
    before, after = (trend.runs[each].started for each in (event.before, event.after))
    return (
        f"{before:%Y-%m-%d} – {after:%Y-%m-%d}",
        localized(event.trait),
        event.old or _("absent"),
        event.new or _("absent"),
        event.where,
    )


def all_figures(trend: Trend) -> Iterator[Block]:
    """Yield the small plots of all figures of several runs, folded by case and metric."""
    cases: dict[str, dict[str, list[Picture]]] = {}
    lines = [pair for pair in trend.lines if len(pair[0]) > 1]
    for points, course in lines[:MOST_SPARKS]:
        figure = points.line.figure
        metrics = cases.setdefault(figure.case, {})
        metrics.setdefault(figure.metric, []).append(_spark(trend, points, course))
    folds = tuple(
        Fold(
            _("{case}: {count} series").format(case=case, count=sum(map(len, metrics.values()))),
            Block(folds=tuple(_of_metric(*item) for item in metrics.items())),
        )
        for case, metrics in cases.items()
    )
    notes = [_("Each line ends at the newest run. A shade is the interval of the values.")]
    left = {
        _("{left} more series are not shown."): len(lines) - MOST_SPARKS,
        _("{left} series of a single run have no plot."): len(trend.lines) - len(lines),
    }
    notes += [text.format(left=count) for text, count in left.items() if count > 0]
    yield Block(paragraphs=(" ".join(notes),), folds=folds)


def _of_metric(metric: str, pictures: Sequence[Picture]) -> Fold:
    name = _("{metric}: {count} series").format(metric=metric, count=len(pictures))
    return Fold(name, Block(pictures=tuple(pictures)))


def _spark(trend: Trend, points: Points, course: Course) -> Picture:
    name, settings = label(points.line)
    words = [settings, points.line.kind if _several_kinds(trend) else ""]
    middle = float(np.median(points.value))
    unit = points.line.figure.unit
    words.append(_("median {value} {unit}").format(value=number(middle), unit=unit))
    words.append(count(len(points), "run"))
    if course.tested:
        words.append(_("noise {noise} %").format(noise=number(100 * course.deviation, 2)))
        seen = percent(-math.expm1(-course.visible))
        words.append(
            localized(course.noise)
            or _("a change of {change} % in the middle would be seen").format(change=seen)
        )
    else:
        words.append(_("not tested"))
    text = "; ".join(filter(None, words))
    return Picture(name, text, sparkline(curve_of(trend, points), f"{name}: {text}"), (), "spark")


def _several_kinds(trend: Trend) -> bool:
    return len({pair[0].line.kind for pair in trend.lines}) > 1


def list_of_runs(runs: Sequence[PastRun], left_out: Sequence[LeftOut]) -> Iterator[Block]:
    """Yield the table of the folders that are left out, and the table of the runs."""
    if left_out:
        rows = ((each.folder.name, localized(each.reason)) for each in left_out)
        columns = (_("Folder"), _("Reason"))
        yield Block(tables=(table(_("Left out"), columns, rows, total=len(left_out)),))
    newest = list(reversed(runs))
    rows_of_runs = (
        (
            each.run,
            f"{each.started:%Y-%m-%d %H:%M}",
            str(len(each.value)),
            str(each.invalid),
            Cell(localized(each.summary), details=tuple(map(localized, each.notes))),
        )
        for each in newest
    )
    heads: tuple[Column | str, ...] = (
        _("Run"),
        _("Start (UTC)"),
        numeric(_("Figures")),
        numeric(_("INVALID")),
        _("Verdict"),
    )
    shown = table(_("Runs, the newest first"), heads, rows_of_runs, total=len(newest))
    yield Block(folds=(folded_table(shown, len(newest)),))


def method() -> Block:
    """Return the description of the method."""
    rows = (
        (
            _("Like with like"),
            _(
                "A series has one case, benchmark, metric, unit, parameters, mode, placement, "
                "program, origin and class of nodes. INVALID results are left out."
            ),
        ),
        (
            _("Change point"),
            _(
                "The position at which the means of the logarithms before and after differ most, "
                "in standard errors. Each side has at least {runs} runs. The parts on either side "
                "are searched in the same way. A gradual change is a slope that fits better."
            ).format(runs=LEAST_RUNS),
        ),
        (
            _("Noise"),
            _(
                "From the differences of successive runs, pooled over like series as far as their "
                "noise is alike (moderated variance)."
            ),
        ),
        (
            _("False alarms"),
            _(
                "The probability that any figure of a steady machine is reported is {level} %, and "
                "the same for nodes. It is corrected for all series and positions."
            ).format(level=number(100 * FAMILY_LEVEL)),
        ),
        (
            _("Date"),
            _("The change happened between two runs, with a confidence of 95 %."),
        ),
        (
            _("Size"),
            _("The median of after ÷ before over all pairs of runs, with its 95 % interval."),
        ),
        (
            _("Not tested"),
            _(
                "Series with fewer than {runs} runs, with values that are not positive, and "
                "results of computation."
            ).format(runs=LEAST_LENGTH),
        ),
    )
    return Block(tables=(facts(_("Method"), rows, kind=TITLED),))


_Blocks = Callable[[Trend], Iterator[Block]]
"""Returns the blocks of one group."""


@dataclass(frozen=True)
class TrendView:
    """The contents of the page for its template."""

    title: str
    sentence: str
    about: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    skip: str
    kit: str
    contents: str
    footer: str


def trend_page(
    trends: Sequence[Trend], runs: Sequence[PastRun], left_out: Sequence[LeftOut]
) -> str:
    """Return the page as HTML. It needs no script, no server and no network.

    Args:
        trends: the trend of each group.
        runs: the runs in the order of time.
        left_out: the folders that are left out.
    """
    return page(
        "trend.html",
        _view(trends, runs, left_out),
        "style.css",
        "trend.css",
        package="proofmark.packages.history",
    )


def _view(
    trends: Sequence[Trend], runs: Sequence[PastRun], left_out: Sequence[LeftOut]
) -> TrendView:
    changes = sum(len(each.changes) for each in trends)
    nodes = set()
    for each in trends:
        nodes |= {change.points.line.node for change in each.drifting}
    drifting = len(nodes)
    sentence = _("Changes of figures: {changes}. Nodes that drift: {nodes}. Runs: {runs}.").format(
        changes=changes, nodes=drifting, runs=len(runs)
    )
    systems = ", ".join(dict.fromkeys(each.group[0] for each in trends))
    dates = f"{runs[0].started:%Y-%m-%d} – {runs[-1].started:%Y-%m-%d}"
    about = (
        (_("Runs"), _("{used} used, {left} left out").format(used=len(runs), left=len(left_out))),
        (_("Dates"), dates),
        (_("Groups"), ", ".join(_name(each) for each in trends)),
        (
            _("Tested"),
            _("{tested} of {all} series of figures, {nodes} series of nodes").format(
                tested=sum(each.tested for each in trends),
                all=sum(len(each.lines) for each in trends),
                nodes=sum(each.compared_nodes for each in trends),
            ),
        ),
    )
    sections = (
        Section("changes", _("What changed"), tuple(_of_groups(trends, changed_figures))),
        Section("drift", _("Nodes that drift"), tuple(_of_groups(trends, drifting_nodes))),
        Section("programs", _("Other programs"), tuple(_of_groups(trends, other_programs))),
        Section("events", _("Events of the machine"), tuple(_of_groups(trends, machine_events))),
        Section("sparks", _("All figures"), tuple(_of_groups(trends, all_figures))),
        Section("runs", _("Runs"), tuple(list_of_runs(runs, left_out))),
        Section("method", _("Method"), (method(),)),
    )
    return TrendView(
        title=_("Trends of {systems}").format(systems=systems),
        sentence=sentence,
        about=about,
        sections=sections,
        skip=_("Skip to what changed"),
        kit=_("Proofmark trends"),
        contents=_("Contents"),
        footer=_("All values are read from verdict.json, nodes/ and software.json of the runs."),
    )


def _of_groups(trends: Sequence[Trend], blocks: _Blocks) -> Iterator[Block]:
    """Yield the blocks of each group, below its name if there are several."""
    for trend in trends:
        if len(trends) > 1:
            yield Block(titles=(_name(trend),))
        yield from blocks(trend)


def _name(trend: Trend) -> str:
    system, partition, origin = trend.group
    return " ".join(dict.fromkeys((system, partition, translated(origin))))
