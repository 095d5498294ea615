"""The page of trends: what changed, then the figures, the events of the machine, and the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from proofmark.common.translation import _, translated
from proofmark.judge.trend.past_run import LeftOut, PastRun
from proofmark.judge.trend.trend import Trend
from proofmark.report.page import (
    Block,
    Section,
)
from proofmark.report.render import page
from proofmark.report.trend.trend_changes import changed_figures, drifting_nodes, other_programs
from proofmark.report.trend.trend_tables import all_figures, list_of_runs, machine_events, method

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
    return page("trend.html", _view(trends, runs, left_out), "style.css", "trend.css")


def _view(
    trends: Sequence[Trend], runs: Sequence[PastRun], left_out: Sequence[LeftOut]
) -> TrendView:
    changes = sum(len(each.changes) for each in trends)
    found = set()
    for each in trends:
        found |= {change.points.line.node for change in each.drifting}
    drifting = len(found)
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
