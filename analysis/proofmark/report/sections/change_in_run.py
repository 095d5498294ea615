"""The section of a long run: its end compared with its beginning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proofmark.common.message import localized
from proofmark.common.translation import _
from proofmark.judge.diagnosis.over_time import ChangeOverTime
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Record
from proofmark.report.page import Block, Cell, Cells, Section, numeric, tabled
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


def _row(change: ChangeOverTime, record: Record) -> Cells:
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
