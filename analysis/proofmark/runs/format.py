"""``run.json``: the id of a run, and the format number of its folder.

Format 1 has no ``run.json``. Format 2 has it, and is signed by ``SHA256SUMS``. Format 3 has a
folder for each execution of a step (``execution-<n>``).
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.runs.files import RunFiles

FORMAT = 3
"""The format of new runs. Formats from 1 to this one are read."""


class Identity(StrictModel):
    """The content of ``run.json``."""

    run: str
    format: int = Field(ge=2)


def write_identity(folder: Path) -> None:
    """Write ``run.json`` of the run in `folder`."""
    identity = Identity(run=folder.name, format=FORMAT)
    write_whole(RunFiles(folder).identity, identity.model_dump_json(indent=1) + "\n")


def format_of(folder: Path) -> int:
    """Return the format of the run in `folder`.

    Raises:
        BadInput: ``run.json`` is damaged, or has a format of a later version.
    """
    path = RunFiles(folder).identity
    if not path.exists():
        return 1
    number = read_json(path, Identity).format
    if number > FORMAT:
        raise bad_input(path, "format", f"{number}, of a later version", f"1 to {FORMAT}")
    return number


def run_id_of(folder: Path) -> str | None:
    """Return the id in ``run.json``; None if the file is missing or damaged."""
    try:
        return Identity.model_validate_json(RunFiles(folder).identity.read_bytes()).run
    except (OSError, ValueError):
        return None
