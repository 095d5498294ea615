"""``run.json``: the id of a run, the format number of its folder, the digests of its inputs.

Format 1 has no ``run.json``. Format 2 has it, and is signed by ``SHA256SUMS``. Format 3 has a
folder for each execution of a step (``execution-<n>``), and the digests of the plan, of all files
of ``inputs/`` and of ``software.json``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_json, read_regular, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.runs.files import RunFiles

FORMAT = 3
"""The format of new runs. Formats from 1 to this one are read."""
WITH_DIGESTS = 3
"""The first format with digests."""


class Identity(StrictModel):
    """The content of ``run.json``; `inputs` has the SHA-256 of each input, by relative path."""

    run: str
    format: int = Field(ge=2)
    inputs: dict[str, str] = {}


def write_identity(folder: Path) -> None:
    """Write ``run.json`` of the run in `folder`, whose inputs are complete."""
    files = RunFiles(folder)
    paths = [files.plan, *(path for path in files.inputs.rglob("*") if path.is_file())]
    inputs = {files.link(path): _digest(path) for path in sorted(paths)}
    _write(files, Identity(run=folder.name, format=FORMAT, inputs=inputs))


def add_input(folder: Path, path: Path) -> None:
    """Add the digest of the file `path` of the run in `folder`, unless the run has it already.

    Runs of earlier formats have no digests.

    Raises:
        BadInput: ``run.json`` is damaged or cannot be written.
    """
    files = RunFiles(folder)
    identity = identity_of(folder)
    name = files.link(path)
    if identity is None or identity.format < WITH_DIGESTS or name in identity.inputs:
        return
    inputs = {**identity.inputs, name: _digest(path)}
    _write(files, identity.model_copy(update={"inputs": inputs}))


def check_inputs(folder: Path) -> None:
    """Refuse the run in `folder` if its inputs are not those of its start.

    Raises:
        BadInput: names each input that was changed, removed or added; or one is not a regular file,
            or ``run.json`` is damaged.
    """
    identity = identity_of(folder)
    if identity is None or identity.format < WITH_DIGESTS:
        return
    wrong = list(_differences(RunFiles(folder), identity))
    if wrong:
        accepted = "the inputs of the start; fresh=true starts a new run"
        raise BadInput(*(InputError(f"{path}", "", found, accepted) for path, found in wrong))


def _differences(files: RunFiles, identity: Identity) -> Iterator[tuple[Path, str]]:
    for name, digest in identity.inputs.items():
        path = files.folder / name
        if not os.path.lexists(path):
            yield path, "removed after the start of the run"
        elif _digest(path) != digest:
            yield path, "changed after the start of the run"
    for path in sorted(files.benchmarks.glob("*.yml")):
        if files.link(path) not in identity.inputs:
            yield path, "added after the start of the run"


def _digest(path: Path) -> str:
    return hashlib.sha256(read_regular(path)).hexdigest()


def _write(files: RunFiles, identity: Identity) -> None:
    write_whole(files.identity, identity.model_dump_json(indent=1) + "\n")


def identity_of(folder: Path) -> Identity | None:
    """Return the content of ``run.json`` of the run in `folder`; None if there is no such file.

    Raises:
        BadInput: ``run.json`` is damaged, or has a format of a later version.
    """
    path = RunFiles(folder).identity
    if not path.exists():
        return None
    identity = read_json(path, Identity)
    if identity.format > FORMAT:
        raise bad_input(path, "format", f"{identity.format}, of a later version", f"1 to {FORMAT}")
    return identity


def format_of(folder: Path) -> int:
    """Return the format of the run in `folder`.

    Raises:
        BadInput: ``run.json`` is damaged, or has a format of a later version.
    """
    identity = identity_of(folder)
    return identity.format if identity else 1


def run_id_of(folder: Path) -> str | None:
    """Return the id in ``run.json``; None if the file is missing or damaged."""
    try:
        return Identity.model_validate_json(RunFiles(folder).identity.read_bytes()).run
    except (OSError, ValueError):
        return None
