"""The section about the accepted runs of the site: what is worse, better, and what has changed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from proofmark.common.message import localized
from proofmark.common.text import percent
from proofmark.common.translation import _
from proofmark.judge.baseline import BaselineComparison, Compared
from proofmark.judge.verdict import Verdict
from proofmark.report.drawing.charts import COLOURS, INK, Drawing, plot_style, sheet
from proofmark.report.page import Block, Section, Table, facts, table
from proofmark.report.run_data import RunData
from proofmark.report.sections.plots_section import Files, picture
from proofmark.report.words import number

NAME = "baseline"
WIDEST = 60.0
"""The largest change in percent that the plot shows; larger ones are drawn there."""


def sections(run_data: RunData) -> tuple[tuple[Section, ...], Files]:
    """Return the section and its files; nothing if the run was compared with no accepted run."""
    verdict = run_data.verdict
    comparison = verdict.baseline
    if comparison is None:
        return (), {}
    files: Files = {}
    about = facts(_("Comparison"), _summary(comparison))
    tables = (about, *([_changes(comparison)] if comparison.changes else []))
    drawn = []
    if len(comparison.compared):
        caption = _("Change of each figure against the accepted runs")
        text = _described(comparison)
        with plot_style():
            drawing = Drawing(NAME, caption, text, _figure(verdict, comparison), ())
        drawn.append(picture(drawing, files, run_data.run.files.plots.name))
        files[f"{NAME}.csv"] = _csv(verdict, comparison).encode()
    block = Block(tables=tables, pictures=tuple(drawn))
    return (Section(NAME, _("Comparison with accepted runs"), (block,)),), files


def _summary(comparison: BaselineComparison) -> Iterator[tuple[str, str]]:
    baseline = comparison.baseline
    worse = comparison.outcome("worse")
    passed = np.setdiff1d(comparison.outcome("passed"), worse)
    unclear = len(comparison.compared) - len(passed) - len(worse)
    yield _("Baseline"), " ".join(filter(None, (baseline.name, baseline.label)))
    runs = (f"{each.run} ({each.accepted:%Y-%m-%d}, {each.signer})" for each in baseline.runs)
    yield _("Accepted runs"), ", ".join(runs)
    yield _("Figures compared"), f"{len(comparison.compared)}"
    yield _("Worse than accepted"), f"{len(worse)}"
    yield _("As accepted"), f"{len(passed)}"
    yield _("Better than accepted"), f"{len(comparison.outcome('better'))}"
    yield _("Noise too large or not known"), f"{unclear}"
    if not math.isnan(change := comparison.visible_change):
        yield _("Change that would be seen, median of the figures"), f"{percent(change)} %"
    yield _("Not compared: another program"), f"{comparison.other_program}"
    yield _("Not compared: other hardware"), f"{comparison.other_hardware}"
    yield _("Not compared: not in the baseline"), f"{comparison.unknown}"
    yield _("Only in the baseline"), f"{comparison.unmeasured}"


def _changes(comparison: BaselineComparison) -> Table:
    columns = (_("Property"), _("Accepted"), _("This run"), _("Nodes"))
    rows = [
        (localized(each.what), each.before or "–", each.after or "–", each.nodes)
        for each in comparison.changes
    ]
    caption = _("Changes since the newest accepted run: candidate causes")
    return table(caption, columns, rows, rest=_("The list is in verdict.json."))


def _described(comparison: BaselineComparison) -> str:
    text = _(
        "A point is one figure. It is right of 0 if the figure is better than accepted. "
        "{worse} of {all} figures are worse by more than the noise."
    )
    return text.format(worse=len(comparison.outcome("worse")), all=len(comparison.compared))


def _points(verdict: Verdict, part: Compared) -> Iterator[tuple[str, float, bool]]:
    """Yield case and metric, the change in percent (worse is negative), and whether it fails."""
    measurands = verdict.results.aggregates.records.measurands
    numbers = verdict.results.aggregates.measurand
    limits = part.limits
    for place, figure in enumerate(limits.figure.tolist()):
        about = measurands[int(numbers[figure])]
        percent = 100 * math.expm1(-float(limits.change[place]))
        yield f"{about.case} {about.metric}", percent, bool(part.worse[place])


def _figure(verdict: Verdict, comparison: BaselineComparison) -> Figure:
    figure, axes = sheet()
    points: list[tuple[str, float, bool]] = []
    for part in comparison.parts:
        points += _points(verdict, part)
    names = sorted({point[0] for point in points}, reverse=True)
    places = {name: place for place, name in enumerate(names)}
    for fails, colour, marker, label in (
        (False, COLOURS[0], "o", _("as accepted, or better")),
        (True, COLOURS[1], "X", _("worse than accepted")),
    ):
        chosen = [point for point in points if point[2] == fails]
        changes = np.clip([point[1] for point in chosen], -WIDEST, WIDEST)
        heights = [places[point[0]] for point in chosen]
        axes.plot(changes, heights, marker, color=colour, alpha=0.6, markersize=5, label=label)
    axes.axvline(0, color=INK, linewidth=0.8, alpha=0.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlabel(_("change in %"))
    height = figure.get_figheight()
    figure.set_figheight(max(height, 1.5 + 0.25 * len(names)))
    figure.legend(loc="outside upper left", ncols=2, frameon=False, borderaxespad=0.2)
    return figure


def _csv(verdict: Verdict, comparison: BaselineComparison) -> str:
    rows = []
    for part in comparison.parts:
        rows += [
            f"{name},{number(percent, 6)},{'FAIL' if fails else ''}"
            for name, percent, fails in _points(verdict, part)
        ]
    return "\n".join(["figure,change_percent,verdict", *rows]) + "\n"
