"""The environments of the checkout: a folder of ``environments/`` for each architecture."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.software.spack.lock_check import similar_environment

FILES = ("spack.yaml", "system.yml")
"""The files of the providers in an environment; it has one or several of them."""
COMMON = "common"
"""The folder with the files that several environments share."""


def environments_with(folder: Path, *files: str) -> list[str]:
    """Return the environments in `folder` that have one of `files`."""
    found = set()
    for file in files:
        found |= {path.parent.name for path in folder.glob(f"*/{file}")}
    return sorted(found - {COMMON})


def check_environment(folder: Path, name: str) -> None:
    """Refuse a value of ``partition.environment`` that is no environment in `folder`.

    Raises:
        BadInput: there is no such environment.
    """
    if name not in (known := environments_with(folder, *FILES)):
        found = f"{name!r}{similar_environment(folder, name)}"
        raise bad_input("environment", "", found, ", ".join(known))


def file_of_environment(folder: Path, name: str, file: str) -> Path:
    """Return the path of `file` in the environment `name`.

    Raises:
        BadInput: the environment has no such file.
    """
    path = folder / name / file
    if not path.is_file():
        known = ", ".join(environments_with(folder, file))
        raise bad_input(path, "", "no such file", f"an environment with this file: {known}")
    return path
