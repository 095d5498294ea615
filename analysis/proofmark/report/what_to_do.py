"""The first section of the report: what to do now."""

from __future__ import annotations

from proofmark.common.translation import _
from proofmark.report.next_steps import next_steps
from proofmark.report.page import TITLED, Block, Cell, Column, Section, table
from proofmark.report.results import verdict_cell
from proofmark.report.run_data import RunData

MOST_SHOWN = 20
"""The largest number of groups of problems that the section shows."""


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run without FAIL, INVALID and open requirements."""
    steps = next_steps(run_data)
    if not steps:
        return ()
    title = _("What to do now")
    rows = [
        (
            verdict_cell(step.word),
            Cell(step.problem, "strong", _figures(step.figures)),
            Cell(step.nodes or "–"),
            Cell(step.action, "reason"),
            Cell(step.command or "–", "code commands" if step.command else ""),
        )
        for step in steps[:MOST_SHOWN]
    ]
    columns = tuple(
        Column(name) for name in (_("Verdict"), _("Problem"), _("Nodes"), _("Next step"))
    )
    built = table(title, (*columns, Column(_("Commands"))), rows, kind=TITLED)
    more = len(steps) - MOST_SHOWN
    notes = (_("{count} more groups of problems: see Issues.").format(count=more),)
    block = Block(tables=(built,), paragraphs=notes if more > 0 else ())
    return (Section("next", title, (block,)),)


def _figures(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (_("{count} figures").format(count=count) if count > 1 else _("1 figure"),)
