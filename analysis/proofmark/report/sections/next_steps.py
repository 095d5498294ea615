"""The section with the next steps after a run: problem, action and command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from proofmark.common.message import localized
from proofmark.common.printed_command import SCRIPT, STEP, PrintedCommand, of_run
from proofmark.common.translation import _
from proofmark.judge import next_steps as advice
from proofmark.judge.next_steps import NextStep
from proofmark.judge.results import Again
from proofmark.report.page import Block, Cell, Column, Section, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import verdict_cell
from proofmark.runs.asked import acceptance_command, inventory_part, not_in, restore_command

MOST_SHOWN = 20
"""The largest number of groups of problems that the section shows."""


def next_steps(run_data: RunData) -> tuple[NextStep, ...]:
    """Return the next steps as the page prints them, with a full stop and the command."""
    steps = advice.next_steps(run_data.verdict)
    return tuple(
        replace(step, action=f"{step.action}.", command=_command(step, run_data)) for step in steps
    )


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
    built = titled(title, (*columns, Column(_("Commands"))), rows)
    more = len(steps) - MOST_SHOWN
    notes = []
    if more > 0:
        notes.append(_("{count} more groups of problems: see Issues.").format(count=more))
    if any(step.command for step in steps) and (
        missing := not_in(acceptance_command(run_data.run, run_data.site))
    ):
        notes.append(localized(missing))
    block = Block(tables=(built,), paragraphs=tuple(notes))
    return (Section("next", title, (block,)),)


def _figures(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (_("{count} figures").format(count=count) if count > 1 else _("1 figure"),)


def _command(step: NextStep, run_data: RunData) -> str:
    """Return the command of a next step; empty if it has none, or the outputs are imported."""
    run, site = run_data.run, run_data.site
    if run.plan.imported:
        return ""
    if step.again is Again.RERUN:
        again = run_data.verdict.rerun(step.steps)
        folder = of_run(f"runs/{run.id}", SCRIPT, "RUN")
        words = [of_run(name, STEP, "STEP") for name in again]
        report = PrintedCommand("proofmark", "report", folder)
        return f"{PrintedCommand('proofmark', 'rerun', folder, *words)}\n{report}" if again else ""
    others: Mapping[Again, Callable[[], str]] = {
        Again.NOTHING: str,
        Again.CONTINUE: lambda: acceptance_command(run, site),
        Again.FRESH: lambda: acceptance_command(run, site, fresh="true"),
        Again.REPEATS: lambda: acceptance_command(run, site, fresh="true", repeats="auto"),
        Again.RESTORE: lambda: restore_command(run, site),
        Again.COMPARE: lambda: PrintedCommand("proofmark", "init", inventory_part(site), "--diff"),
    }
    return others[step.again]()
