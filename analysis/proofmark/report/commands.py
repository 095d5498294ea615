"""Every command of a run as it was started, and how to run one of them again."""

from __future__ import annotations

from hashlib import sha256

from proofmark.common.text import duration
from proofmark.report.page import LONGEST_TABLE, Block, Fold, Link, Section
from proofmark.report.run_data import MOST_COMMANDS, RunData
from proofmark.report.text import count
from proofmark.runs.files import StepFiles
from proofmark.runs.progress import StepState

FILES = ("run.sh", "stdout", "stderr", "binding.json")


def section(material: RunData) -> Section:
    """Return the steps by case."""
    run = material.run
    example = next(
        (state.step.id for state in material.states if state.state == "done"),
        material.states[0].step.id if material.states else "STEP",
    )
    again = Block(
        titles=("How to run one step again",),
        paragraphs=(
            "In the folder of the run; the first output stays, the new one stands beside it in "
            "again-1, again-2, …",
        ),
        codes=(f"sh steps/{example}/run.sh",),
    )
    judged = Block(
        paragraphs=("The same, so that both executions count in the next verdict and report:",),
        codes=(f"proofmark rerun runs/{run.id} {example}\nproofmark report runs/{run.id}",),
    )
    by_case: dict[str, list[StepState]] = {}
    for state in material.states[:LONGEST_TABLE]:
        by_case.setdefault(state.step.case, []).append(state)
    blocks = [_case(material, case, states) for case, states in by_case.items()]
    return Section("commands", "Commands", (again, judged, *blocks, *_left_out(material)))


def _case(material: RunData, case: str, states: list[StepState]) -> Block:
    known = material.benchmarks.cases.get(case)
    title = f"{case} – {known.title}" if known else case
    return Block(titles=(title,), folds=tuple(_fold(material, state) for state in states))


def _fold(material: RunData, state: StepState) -> Fold:
    step = state.step
    files = material.run.files
    own = files.step(step.id)
    command = material.commands.get(step.id)
    names = (*FILES, *([step.output] if step.output not in FILES else []), *step.inputs)
    return Fold(
        f"{step.id} – {_what_happened(state)}",
        Block(
            codes=(command,) if command else (),
            items=_digests(own, step.output) if command else (),
            links=tuple(
                Link(files.link(own.folder / name), name)
                for name in names
                if (own.folder / name).is_file()
            ),
        ),
        "command",
    )


def _digests(files: StepFiles, output: str) -> tuple[str, ...]:
    """Return the SHA-256 of what the program printed, so that a copy can be held against it."""
    paths = dict.fromkeys((files.stdout, files.stderr, files.folder / output))
    return tuple(
        f"{path.name}: SHA-256 {sha256(path.read_bytes()).hexdigest()}"
        for path in paths
        if path.is_file()
    )


def _what_happened(state: StepState) -> str:
    if state.state != "done":
        return state.state
    code = "damaged result" if state.rc is None else f"exit code {state.rc}"
    return code if state.seconds is None else f"{code}, {duration(state.seconds)}"


def _left_out(material: RunData) -> list[Block]:
    said = []
    total = len(material.states)
    if total > LONGEST_TABLE:
        said.append(f"{count(total - LONGEST_TABLE, 'more step')} in steps/.")
    if total > MOST_COMMANDS:
        said.append(f"From step {MOST_COMMANDS + 1} on, the command stands in run.sh only.")
    return [Block(paragraphs=tuple(said))] if said else []
