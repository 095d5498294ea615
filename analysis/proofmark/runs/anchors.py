"""The digests of the inputs and outputs of runs in the state of a site, which only root can write.

``<state>/<site>/inputs/<run-id>-<digest of the folder>.json``. The user who runs the benchmarks can
change the inputs of a run together with ``run.json``, and an output together with
``outputs.sha256``. It cannot change these digests, if root wrote them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from proofmark.common.errors import BadInput, InputError
from proofmark.common.files import is_regular, read_json, sha256_of, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.runs.answer import answer
from proofmark.runs.attempts import DIGESTS, finished_executions
from proofmark.runs.format import identity_of, is_input
from proofmark.runs.owner import UnsafeFolder
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles
from proofmark.runs.state import (
    Begun,
    check_safe,
    made,
    site_folder,
    state_of_root,
    state_of_user,
    word,
)

FOLDER = "inputs"
NOT_ANCHORED = (
    "the inputs: this machine has no digests of them in its state folder; only run.json states them"
)


class Inputs(StrictModel):
    """The answer about a run: the name of its site, and the SHA-256 as in `Anchor`."""

    site: str
    inputs: dict[str, str]


class Anchor(StrictModel):
    """The inputs of a run at its start, and the executions that had ended.

    Attributes:
        folder: the folder of the run.
        inputs: the SHA-256 of each input, and of the ``outputs.sha256`` of each execution, by its
            path in the folder.
    """

    folder: str
    inputs: dict[str, str]


@dataclass(frozen=True)
class Compared:
    """A comparison of files of a run with what they must be.

    Attributes:
        wrong: what differs.
        notes: what could not be compared.
        unknown: why nothing could be compared; empty if it could.
    """

    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: str = ""


def inputs_of(run: Run) -> Inputs:
    """Return the inputs of `run`, which are those of its ``run.json``, and its executions."""
    steps = (step for each in run.plan.steps() for step in (each.id, *each.folders()))
    ended = (each for step in dict.fromkeys(steps) for each in _digests(run, step))
    outputs = {run.files.link(path): sha256_of(path) for path in ended if is_regular(path)}
    return Inputs(site=run.plan.site, inputs=identity_of(run.folder).inputs | outputs)


def _digests(run: Run, step: str) -> Iterator[Path]:
    """Yield the list of digests of each finished execution in the folder of a step."""
    for each in finished_executions(run.files.step(step)):
        yield each.folder / DIGESTS


def anchor(folder: Path) -> Path | None:
    """Keep the digests of the inputs of the run in `folder` in the state of its site.

    Digests that are kept stay. Programs are recorded after the plan, and executions end later.

    Returns:
        The file with the digests. None if an ordinary user cannot write the state, or another user
        can replace the folder of root's run. `sign` states then that there are none, or refuses.

    Raises:
        BadInput: an input differs from the one whose digest is kept, or was added or removed.
    """
    try:
        given = answer(folder, inputs_of, Inputs)
    except UnsafeFolder:
        return None
    resolved = folder.resolve()
    place = site_folder(given.site) / FOLDER
    if os.geteuid() and not _writable(place):
        return None
    path = made(place) / _name(resolved)
    inputs = given.inputs
    if os.path.lexists(path):
        wrong = [*_differing(read_json(path, Anchor).inputs, inputs)]
        if wrong:
            accepted = f"the inputs of {path}, which root removes if the run was removed"
            raise BadInput(*(InputError(f"{folder}", "", line, accepted) for line in wrong))
    write_whole(path, Anchor(folder=f"{resolved}", inputs=inputs).model_dump_json(indent=1) + "\n")
    path.chmod(0o644)  # the run user may read it, whatever the umask is
    return path


def _writable(folder: Path) -> bool:
    """Return whether this user can write into a folder, or make it."""
    exists = next(each for each in (folder, *folder.parents) if os.access(each, os.F_OK))
    return os.access(exists, os.W_OK | os.X_OK)


def compare_inputs(folder: Path, sums: Mapping[str, str]) -> Compared:
    """Compare the inputs of the run in `folder` with their digests in the state of its site.

    Args:
        folder: the run, an absolute path without links.
        sums: the SHA-256 of each file of the run, by its path in the folder.

    Raises:
        BadInput: a folder or a file of the state is not safe, or damaged.
    """
    present = {name: each for name, each in sums.items() if is_input(name) or _is_output(name)}
    kept = [*_kept(folder)]
    wrong = dict.fromkeys(line for each in kept for line in _differing(each.inputs, present))
    wrong |= dict.fromkeys(_journals(folder, sums))
    return Compared(tuple(wrong), unknown="" if kept else NOT_ANCHORED)


def _differing(kept: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each input that is not as it was kept."""
    files = RunFiles(Path())

    def later(name: str) -> bool:
        return name == files.software.name or files.is_growth(Path(name)) or _is_output(name)

    for name in sorted({*kept, *present}):
        when = "the execution" if _is_output(name) else "the start of the run"
        if name not in present:
            yield f"{name}: removed after {when}"
        elif name not in kept and not later(name):
            yield f"{name}: added after {when}"
        elif name in kept and kept[name] != present[name]:
            yield f"{name}: changed after {when}"


def _is_output(name: str) -> bool:
    return name.rpartition("/")[2] == DIGESTS


def _kept(folder: Path) -> Iterator[Anchor]:
    """Yield what the states of root and of this user keep about the run in `folder`."""
    for path in _in_states(f"{FOLDER}/{_name(folder)}"):
        yield read_json(path, Anchor)


def _journals(folder: Path, sums: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each journal of a mode that is not as in the state of the site."""
    for begun in _in_states(f"runs/{word(folder.name, 'the run id')}/run.json"):
        if read_json(begun, Begun).folder != f"{folder}":
            continue
        for path in sorted(RunFiles(begun.parent).journal.glob("*.jsonl")):
            name = RunFiles(begun.parent).link(path)
            if sums.get(name) != sha256_of(path):
                yield f"{name}: not as in {path}"


def _in_states(pattern: str) -> Iterator[Path]:
    """Yield the files in the states of all sites, of root and of this user."""
    bases = [state_of_root(), *([state_of_user()] if os.geteuid() else [])]
    for base in dict.fromkeys(Path(os.path.realpath(each)) for each in bases):
        for path in sorted(base.glob(f"*/{pattern}")):
            check_safe(path.parent)
            yield path


def _name(folder: Path) -> str:
    digest = sha256(os.fsencode(folder)).hexdigest()[:16]
    return f"{word(folder.name, 'the run id')}-{digest}.json"
