"""``run.json``: the id of a run, the format of its folder, and the digests of its inputs.

Its inputs are the plan, all files of ``inputs/`` and ``software.json``. The file has a digest of
itself. There is one format of the folder of a run. A run without a whole ``run.json`` is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ValidationError

from proofmark import __version__
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_regular, write_atomic
from proofmark.common.kit import kit_folder
from proofmark.common.processes import run_git
from proofmark.common.shared_models import StrictModel
from proofmark.runs.run_files import RunFiles


class Kit(StrictModel):
    """A state of the kit: its version, and the commit of its checkout; empty if that is not known.

    Attributes:
        version: of the Python package.
        commit: of the checkout, in hexadecimal digits.
    """

    version: str
    commit: str

    def __str__(self) -> str:
        """Return both in one text."""
        return f"{self.version}, commit {self.commit or 'not known'}"


@cache
def this_kit() -> Kit:
    """Return the state of this kit; its commit is empty if it is no checkout, or without git."""
    try:
        done = run_git(kit_folder(), "rev-parse", "HEAD")
        commit = done.stdout.strip() if not done.returncode else ""
    except (BadInput, OSError):
        commit = ""
    return Kit(version=__version__, commit=commit)


FORMAT = 5
"""The format of the folder of a run. No other is read."""
_NEW_RUN = "fresh=true starts a new run"


class Identity(StrictModel):
    """The content of ``run.json``.

    Attributes:
        inputs: the SHA-256 of each input, by its path in the folder.
        kit: the kit that wrote the run; None: a state that did not state it.
        run_by: the user who starts the programs.
        sha256: the SHA-256 of the other fields. It shows an edited or a cut file.
    """

    run: str
    format: int
    inputs: dict[str, str]
    kit: Kit | None = None
    run_by: str
    sha256: str = ""

    def sealed(self) -> Identity:
        """Return the identity with the digest of its other fields."""
        text = self.model_dump_json(exclude={"sha256"}, exclude_none=True)
        return self.model_copy(update={"sha256": hashlib.sha256(text.encode()).hexdigest()})


class _Format(BaseModel):
    """The fields that ``run.json`` has in every format."""

    format: int
    kit: Kit | None = None


def write_identity(folder: Path, run_by: str) -> None:
    """Write ``run.json`` of the run in `folder`, whose inputs are complete."""
    files = RunFiles(folder)
    inputs = {files.link(path): _digest(path) for path in sorted(_present(files))}
    made = Identity(run=folder.name, format=FORMAT, inputs=inputs, kit=this_kit(), run_by=run_by)
    _write(files, made)


def add_input(folder: Path, path: Path) -> None:
    """Add the digest of the file `path` of the run in `folder`, unless the run has it already.

    Raises:
        BadInput: ``run.json`` is missing or damaged, or cannot be written.
    """
    files = RunFiles(folder)
    identity = identity_of(folder)
    name = files.link(path)
    if name not in identity.inputs:
        inputs = {**identity.inputs, name: _digest(path)}
        _write(files, identity.model_copy(update={"inputs": inputs}))


def check_inputs(folder: Path) -> Identity:
    """Return what ``run.json`` states, if the inputs of the run in `folder` are those of its start.

    Raises:
        BadInput: names each input that was changed, removed or added; or one is not a regular file,
            or ``run.json`` is missing, damaged or of another format.
    """
    identity = identity_of(folder)
    wrong = list(_differences(RunFiles(folder), identity))
    if wrong:
        accepted = f"the inputs of the start; {_NEW_RUN}"
        raise BadInput(*(InputError(f"{path}", "", found, accepted) for path, found in wrong))
    return identity


def _differences(files: RunFiles, identity: Identity) -> Iterator[tuple[Path, str]]:
    for name, digest in identity.inputs.items():
        path = files.folder / name
        if not os.path.lexists(path):
            yield path, "removed after the start of the run"
        elif _digest(path) != digest:
            yield path, "changed after the start of the run"
    for path in sorted(_present(files)):
        if files.link(path) not in identity.inputs:
            yield path, "added after the start of the run"


def _present(files: RunFiles) -> Iterator[Path]:
    """Yield the plan and all files of ``inputs/``; in ``benchmarks/`` only those that are read."""
    yield files.plan
    for path in files.inputs.rglob("*"):
        if is_input(files.link(path)) and not (path.is_dir() and not path.is_symlink()):
            yield path


def is_input(name: str) -> bool:
    """Return whether a file of a run, by its path in the folder, is an input of its verdict."""
    files, path = RunFiles(Path()), Path(name)
    if path.parent == files.benchmarks:
        return path.suffix == ".yml"
    return path in (files.plan, files.software) or path.is_relative_to(files.inputs)


def _digest(path: Path) -> str:
    return hashlib.sha256(read_regular(path)).hexdigest()


def _write(files: RunFiles, identity: Identity) -> None:
    write_atomic(files.identity, identity.sealed().model_dump_json(indent=1) + "\n")


def identity_of(folder: Path) -> Identity:
    """Return the content of ``run.json`` of the run in `folder`.

    Raises:
        BadInput: ``run.json`` is missing, damaged, edited or of another format.
    """
    path = RunFiles(folder).identity
    accepted = f"the file that the kit wrote at the start of the run; {_NEW_RUN}"
    content = read_regular(path, needed=accepted)
    try:
        stated = _Format.model_validate_json(content)
        if stated.format != FORMAT:
            found = f"{stated.format}, written by the kit {stated.kit or '0.1.0 or earlier'}"
            raise bad_input(path, "format", found, f"{FORMAT}; {_NEW_RUN}")
        identity = Identity.model_validate_json(content)
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", accepted) from None
    if identity != identity.sealed():
        raise bad_input(path, "sha256", "changed after the kit wrote the file", accepted)
    return identity
