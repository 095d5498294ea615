"""Repeats that disagree, as a table of the report and as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.text import percent
from proofmark.common.translation import _
from proofmark.judge.diagnosis.disagreeing import Disagreement, LikeExecutions
from proofmark.judge.ending import named_steps, of_like_nodes
from proofmark.judge.verdict import Verdict
from proofmark.report.page import Block, Cell, listed, numeric, table
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import figure_cell, name, settings
from proofmark.report.words import number
from proofmark.runs.adopted import dates_in

MOST_NAMED = 4
"""The most executions of a state that are named."""


def blocks(run_data: RunData) -> Iterator[Block]:
    """Yield the table of the cases whose repeats disagree."""
    verdict = run_data.verdict
    if not verdict.executions.disagreements:
        return
    why = _(
        "A row shows the figure of a case with the largest difference between its repeats, or "
        "between its dates. They have two states. The cause is the machine, the program or its "
        "settings."
    )
    columns = (
        _("Figure"),
        _("Node"),
        numeric(_("Difference")),
        numeric(_("Spread of like nodes")),
        _("Lower values"),
        _("Higher values"),
        numeric(_("Such figures")),
    )
    rows: list[tuple[Cell | str, ...]] = [
        (
            figure_cell(result := verdict.results[each.figure], run_data.benchmarks),
            result.record.node,
            f"{percent(each.difference)} %",
            _spread(each) or "–",
            *(_values(state, result.record.unit) for state in each.states),
            _("{figures} of {compared}").format(figures=each.figures, compared=each.compared),
        )
        for each in verdict.executions.disagreements
    ]
    caption = _("Repeats and dates that disagree")
    yield Block(titles=(caption,), paragraphs=(why,), tables=(table(caption, columns, rows),))


def executions(run_data: RunData) -> Iterator[Block]:
    """Yield the nodes that something disturbs mostly, and the executions that a site added."""
    verdict = run_data.verdict
    if verdict.executions.disturbed:
        found = of_like_nodes((each.node, each.message) for each in verdict.executions.disturbed)
        nodes = (f"{folded(hosts)}: {localized(why)}" for why, hosts in found.items())
        yield listed(_("Nodes that are disturbed mostly"), nodes)
    if verdict.conditions.replaced:
        caption = _("Values of the inventory that options replaced")
        yield listed(caption, map(localized, verdict.conditions.replaced))
    if verdict.executions.added:
        why = _(
            "These steps were run again although they had a sound execution. All executions count, "
            "and a figure fails if the planned ones alone fail."
        )
        caption = _("Executions that were added to the plan")
        yield listed(caption, _added(verdict), why)


def _added(verdict: Verdict) -> Iterator[str]:
    """Yield a line for all steps of which as many executions were planned and added."""
    groups: dict[tuple[int, int, str], list[str]] = {}
    for each in verdict.executions.added:
        why = localized(each.refused) if each.refused else ""
        groups.setdefault((each.planned, each.added, why), []).append(each.step)
    for (planned, added, why), steps in groups.items():
        text = _("{step}: {planned} planned, {added} added").format(
            step=named_steps(steps), planned=planned, added=added
        )
        yield f"{text}: {why}" if why else text


def sentence(found: Disagreement, verdict: Verdict) -> str:
    """Return a disagreement as one sentence."""
    result = verdict.results[found.figure]
    repeats = _(
        "{figure}: the repeats differ by {difference}, the spread of like nodes is {spread}: "
        "{low}; {high}. {figures} of {compared} figures of the case are such"
    )
    dates = _(
        "{figure}: the dates differ by {difference}, the spread of like nodes is {spread}: "
        "{low}; {high}. {figures} of {compared} figures of the case are such"
    )
    text = dates if found.dates else repeats
    low, high = (_values(state, result.record.unit) for state in found.states)
    named: list[str] = []
    for state in found.states:
        for each in state.executions:
            named += dates_in(each)
    if not found.dates and len(days := sorted(set(named))) > 1:
        text += _("; dates: {dates}").format(dates=", ".join(days))
    return text.format(
        figure=", ".join(filter(None, (name(result), settings(result)))),
        difference=f"{percent(found.difference)} %",
        spread=_spread(found) or _("not known"),
        low=low,
        high=high,
        figures=found.figures,
        compared=found.compared,
    )


def _spread(found: Disagreement) -> str:
    return "" if found.spread is None else f"{percent(found.spread)} %"


def _values(state: LikeExecutions, unit: str) -> str:
    ends = dict.fromkeys((number(state.least), number(state.greatest)))
    named = ", ".join(state.executions[:MOST_NAMED])
    if (more := len(state.executions) - MOST_NAMED) > 0:
        named += _(" and {count} more").format(count=more)
    return _("{values} {unit} in {executions}").format(
        values=" … ".join(ends), unit=unit, executions=named
    )
