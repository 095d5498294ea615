"""Repeats that disagree: in the issues of the report, in the summary and in the verdict's text."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.text import percent
from proofmark.common.translation import _
from proofmark.judge.diagnosis.disagreeing import Disagreement, State
from proofmark.report.page import Block, Cell, Column, table
from proofmark.report.run_data import RunData
from proofmark.report.text import number

MOST_NAMED = 4
"""The most repeats of a state that a sentence names."""


def blocks(run_data: RunData) -> Iterator[Block]:
    """Yield the table of the metrics whose repeats disagree."""
    if not (found := run_data.verdict.disagreements):
        return
    why = _(
        "Each row is the figure of a metric that differs most. Its repeats are two states of the "
        "machine, of the program or of its settings. The median is of neither."
    )
    columns = (
        _("Figure"),
        _("Node"),
        Column(_("Difference"), "number"),
        Column(_("Spread of like nodes"), "number"),
        _("Lower values"),
        _("Higher values"),
        Column(_("Such figures"), "number"),
    )
    rows = [_row(each) for each in found]
    caption = _("Repeats that disagree")
    yield Block(titles=(caption,), paragraphs=(why,), tables=(table(caption, columns, rows),))


def _row(found: Disagreement) -> tuple[Cell | str, ...]:
    low, high = (_values(found, state) for state in found.states)
    return (
        Cell(_name(found), "strong"),
        found.record.node,
        _percent(found.difference),
        "–" if found.spread is None else _percent(found.spread),
        low,
        high,
        _("{figures} of {compared}").format(figures=found.figures, compared=found.compared),
    )


def sentence(found: Disagreement) -> str:
    """Return a disagreement as one sentence."""
    text = _(
        "{figure} ({figures} of {compared} such figures): "
        "the repeats differ by {difference}{beside}: {low}; {high}"
    )
    beside = (
        ""
        if found.spread is None
        else _(", and like nodes scatter by {spread}").format(spread=_percent(found.spread))
    )
    low, high = (_values(found, state) for state in found.states)
    return text.format(
        figure=_name(found),
        figures=found.figures,
        compared=found.compared,
        difference=_percent(found.difference),
        beside=beside,
        low=low,
        high=high,
    )


def _percent(share: float) -> str:
    return f"{percent(share)} %"


def _name(found: Disagreement) -> str:
    record = found.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    return " ".join(filter(None, (record.case, record.benchmark, record.metric, *parameters)))


def _values(found: Disagreement, state: State) -> str:
    unit = found.record.unit
    ends = dict.fromkeys((number(state.least), number(state.greatest)))
    named = ", ".join(state.repeats[:MOST_NAMED])
    more = len(state.repeats) - MOST_NAMED
    if more > 0:
        named += _(" and {count} more").format(count=more)
    return _("{values} {unit} in {repeats}").format(
        values=" … ".join(ends), unit=unit, repeats=named
    )
