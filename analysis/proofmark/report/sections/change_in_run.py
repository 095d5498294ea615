"""What changes within a run: its end compared with its beginning, and figures beside a load."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proofmark.cases.vocabulary import LOAD
from proofmark.common.message import localized
from proofmark.common.translation import _
from proofmark.judge.diagnosis.over_time import ChangeOverTime
from proofmark.judge.slowdown import Slowdown
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Record
from proofmark.report.page import Block, Cell, Column, Section, numeric, tabled
from proofmark.report.run_data import RunData
from proofmark.report.words import count, number, pairs


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the comparison of the end of a long run with its beginning."""
    if run_data.verdict.over_time.changes:
        yield Section("over-time", _("Over time"), (_changes(run_data.verdict),))


def _changes(verdict: Verdict) -> Block:
    compared = verdict.over_time
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
        none = _("None became worse by more than the noise of its repeats.")
        return Block(paragraphs=(about, none))
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
    return tabled(caption, columns, rows, about, rest=_("The list is in verdict.json."))


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


def congestion_sections(run_data: RunData) -> Iterator[Section]:
    """Yield the slowdowns of figures beside a load, as distributions."""
    slowdowns = run_data.verdict.slowdowns
    if not slowdowns:
        return
    about = _(
        "A slowdown is a figure beside its load compared with the same figure without it, of one "
        "pair of nodes in one repeat. It is above 1 if the load makes the figure worse."
    )
    columns: tuple[Column | str, ...] = (
        _("Figure"),
        _("Load"),
        *(numeric(title) for title in (_("Samples"), _("Median"), "90 %", "99 %", _("Greatest"))),
        _("Worst pair"),
    )
    rows = [_slowdown(each) for each in slowdowns]
    caption = _("Slowdown beside a load")
    block = tabled(caption, columns, rows, about, rest=_("The list is in verdict.json."))
    yield Section("slowdown", _("Congestion"), (block,))


def _slowdown(slowdown: Slowdown) -> tuple[Cell | str, ...]:
    record = slowdown.record
    settings = {name: value for name, value in record.parameters.items() if name != LOAD}
    ends = (slowdown.percentile(50), slowdown.percentile(90), slowdown.percentile(99))
    return (
        Cell(f"{record.case} {record.metric}", "strong", details=(pairs(settings),)),
        str(record.parameters[LOAD]),
        _("{measured} of {all} pairs").format(measured=len(slowdown.ratios), all=slowdown.pairs),
        *(number(value, 3) for value in (*ends, slowdown.ratios[-1])),
        ", ".join(slowdown.worst),
    )
