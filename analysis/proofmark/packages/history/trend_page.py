"""The page of trends: what changed, then the figures, the events of the machine, and the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from proofmark.common.message import localized
from proofmark.common.text import percent
from proofmark.common.translation import _, translated
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL
from proofmark.packages.history.change_points import LEAST_LENGTH, LEAST_RUNS, Course
from proofmark.packages.history.history import Event, Points
from proofmark.packages.history.history_chart import sparkline
from proofmark.packages.history.past_run import LeftOut, PastRun
from proofmark.packages.history.trend import Trend
from proofmark.packages.history.trend_changes import (
    changed_figures,
    curve_of,
    drifting_nodes,
    folded_table,
    label,
    other_programs,
)
from proofmark.report.page import (
    TITLED,
    Block,
    Cell,
    Column,
    Fold,
    Picture,
    Section,
    facts,
    numeric,
    table,
    titled,
)
from proofmark.report.render import page
from proofmark.report.words import number

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
    where = event.where or _("program")
    return (
        f"{before:%Y-%m-%d} – {after:%Y-%m-%d}",
        localized(event.trait),
        event.old or _("absent"),
        event.new or _("absent"),
        where,
    )


def all_figures(trend: Trend) -> Iterator[Block]:
    """Yield the small plots of all figures, folded by case and metric."""
    cases: dict[str, dict[str, list[Picture]]] = {}
    for points, course in trend.lines[:MOST_SPARKS]:
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
    if len(trend.lines) > MOST_SPARKS:
        left = len(trend.lines) - MOST_SPARKS
        notes.append(_("{left} more series are not shown.").format(left=left))
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
    words.append(_("{count} runs").format(count=len(points)))
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
