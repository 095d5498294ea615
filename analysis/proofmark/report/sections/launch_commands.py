"""The commands of a run, and how to run a step again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from proofmark.common.files import is_regular, sha256_of
from proofmark.common.grouping import gathered
from proofmark.common.message import localized
from proofmark.common.printed_command import SCRIPT, PrintedCommand, of_run
from proofmark.common.text import duration
from proofmark.common.translation import _, translated
from proofmark.report.page import LONGEST_TABLE, Block, Fold, PageLink, Section, listed
from proofmark.report.run_data import MOST_COMMANDS, RunData
from proofmark.report.words import count
from proofmark.runs.attempts import finished_executions
from proofmark.runs.run_files import StepFiles
from proofmark.runs.step_state import StepState


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the section: how to repeat a step, then the steps by case.

    The run of outputs that others produced has no commands.
    """
    run = run_data.run
    if not run.executed:
        return
    example = next(
        (state.step.id for state in run_data.states if state.state == "done"),
        run_data.states[0].step.id if run_data.states else "STEP",
    )
    by_hand = Block(
        titles=(_("How to run one step again"),),
        paragraphs=(
            _(
                "Run this command in the folder of the run. Each execution has its own folder in "
                "the folder of the step: execution-1, execution-2, … No output is overwritten."
            ),
            _("Run it as the user of the work folder, who can change the script, never as root."),
        ),
        codes=(PrintedCommand("sh", of_run(f"workdir/steps/{example}/run.sh", SCRIPT, "SCRIPT")),),
    )
    folder = of_run(f"runs/{run.id}", SCRIPT, "RUN")
    again = PrintedCommand("proofmark", "rerun", folder, of_run(example, SCRIPT, "STEP"))
    judged = Block(
        paragraphs=(_("To use both executions in the next verdict and report:"),),
        codes=(f"{again}\n{PrintedCommand('proofmark', 'report', folder)}",),
    )
    by_case = gathered((state.step.case, state) for state in run_data.states[:LONGEST_TABLE])
    blocks = [_case(run_data, case, states) for case, states in by_case.items()]
    yield Section(
        "commands",
        _("Commands"),
        (by_hand, judged, *blocks, *_not_needed(run_data), *_left_out(run_data)),
    )


def _case(run_data: RunData, case: str, states: list[StepState]) -> Block:
    definition = run_data.benchmarks.cases.get(case)
    title = f"{case} – {translated(definition.title)}" if definition else case
    return Block(titles=(title,), folds=tuple(_fold(run_data, state) for state in states))


def _fold(run_data: RunData, state: StepState) -> Fold:
    step = state.step
    files = run_data.run.files
    step_files, written = files.step(step.id), files.scripts.step(step.id)
    command = run_data.commands.get(step.id)
    executions = finished_executions(step_files)
    outputs: list[Path] = []
    for each in executions:
        outputs += (each.stdout, each.stderr, each.binding, each.folder / step.output)
    paths = [
        written.script,
        *dict.fromkeys(outputs),
        *(written.folder / name for name in step.inputs),
    ]
    return Fold(
        f"{step.id} – {_outcome(state)}",
        Block(
            codes=(command,) if command else (),
            items=_digests(step_files, executions, step.output) if command else (),
            links=tuple(
                PageLink(files.link(path), _name(step_files, path))
                for path in paths
                if is_regular(path)
            ),
        ),
        "command",
    )


def _name(step_files: StepFiles, path: Path) -> str:
    inside = path.is_relative_to(step_files.folder)
    return path.relative_to(step_files.folder).as_posix() if inside else path.name


def _digests(
    step_files: StepFiles, executions: Sequence[StepFiles], output: str
) -> tuple[str, ...]:
    """Return the SHA-256 of each output of the program, so that a copy can be verified."""
    outputs = []
    for each in executions:
        outputs += [
            path for path in (each.stdout, each.stderr, each.folder / output) if is_regular(path)
        ]
    paths = dict.fromkeys(outputs)
    return tuple(f"{_name(step_files, path)}: SHA-256 {sha256_of(path)}" for path in paths)


def _outcome(state: StepState) -> str:
    if state.state != "done":
        return translated(state.state)
    code = _("damaged result") if state.rc is None else _("exit code {code}").format(code=state.rc)
    return code if state.seconds is None else f"{code}, {duration(state.seconds)}"


def _not_needed(run_data: RunData) -> list[Block]:
    """Return the steps that were not run, by reason."""
    by_reason = gathered((reason, step) for step, reason in run_data.run.plan.not_needed.items())
    items = tuple(
        f"{', '.join(steps[:3])}{_more(len(steps) - 3)}: {localized(reason)}"
        for reason, steps in by_reason.items()
    )
    title = _("Steps that are not needed")
    return [listed(title, items[:LONGEST_TABLE])] if items else []


def _more(amount: int) -> str:
    return _(" and {count} more").format(count=amount) if amount > 0 else ""


def _left_out(run_data: RunData) -> list[Block]:
    notes = []
    total = len(run_data.states)
    if total > LONGEST_TABLE:
        notes.append(
            _("{steps} in steps/.").format(steps=count(total - LONGEST_TABLE, "more step"))
        )
    if total > MOST_COMMANDS:
        notes.append(
            _("From step {step} on, see run.sh of the step for the command.").format(
                step=MOST_COMMANDS + 1
            )
        )
    return [Block(paragraphs=tuple(notes))] if notes else []
