"""The commands of a run, and how to run a step again."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.files import is_regular
from proofmark.common.grouping import gathered
from proofmark.common.message import localized
from proofmark.common.printed_command import SCRIPT, PrintedCommand, of_run
from proofmark.common.text import duration
from proofmark.common.translation import _, translated
from proofmark.judge.ending import named_steps
from proofmark.report.page import Block, Cell, Cells, Fold, PageLink, Section, listed, table
from proofmark.report.run_data import RunData
from proofmark.report.words import count
from proofmark.runs.attempts import finished_executions
from proofmark.runs.step_state import StepState


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the section: how to repeat a step, then the command of each step.

    The run of outputs that others produced has no commands.
    """
    run, states = run_data.run, run_data.states
    if not run.executed:
        return
    example = next((each.step.id for each in states if each.state == "done"), "STEP")
    folder = of_run(f"runs/{run.id}", SCRIPT, "RUN")
    rerun = PrintedCommand("proofmark", "rerun", folder, of_run(example, SCRIPT, "STEP"))
    again = Block(
        titles=(_("How to run one step again"),),
        paragraphs=(_("All executions count in the next verdict and report:"),),
        codes=(f"{rerun}\n{PrintedCommand('proofmark', 'report', folder)}",),
    )
    rows = (_row(run_data, state) for state in states)
    columns, title = (_("Step"), _("State"), _("Command")), _("Commands")
    rest = _("The script of each step is in scripts/steps/.")
    shown = table(title, columns, rows, kind="dense", rest=rest, total=len(states))
    text = _("Show {steps}").format(steps=count(len(states), "step"))
    every = Block(folds=(Fold(text, Block(tables=(shown,)), "long"),))
    yield Section("commands", title, (again, every, *_not_needed(run_data)))


def _row(run_data: RunData, state: StepState) -> Cells:
    """Return the row of a step, with links to its script and its outputs."""
    step, files = state.step, run_data.run.files
    paths = [files.scripts.step(step.id).script]
    for each in finished_executions(files.step(step.id)):
        paths += dict.fromkeys((each.stdout, each.stderr, each.folder / step.output))
    links = tuple(PageLink(files.link(path), path.name) for path in paths if is_regular(path))
    command = run_data.commands.get(step.id, "run.sh")
    return Cell(step.id, "strong", links=links), _outcome(state), Cell(command, "code")


def _outcome(state: StepState) -> str:
    if state.state != "done":
        return translated(state.state)
    code = _("damaged result") if state.rc is None else _("exit code {code}").format(code=state.rc)
    return code if state.seconds is None else f"{code}, {duration(state.seconds)}"


def _not_needed(run_data: RunData) -> Iterator[Block]:
    """Yield the steps that were not run, by reason."""
    by_reason = gathered((reason, step) for step, reason in run_data.run.plan.not_needed.items())
    lines = [f"{named_steps(each)}: {localized(why)}" for why, each in by_reason.items()]
    if lines:
        yield listed(_("Steps that are not needed"), lines)
