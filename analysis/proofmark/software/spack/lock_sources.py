"""The sources of a lock: address, checksum and place in a mirror of each archive and patch.

They are in the file ``sources.json`` beside the lock, so that they can be listed without Spack and
without a network. `proofmark lock` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from proofmark.common.errors import InputError, bad_input
from proofmark.common.strict_model import StrictModel
from proofmark.software.spack.installation import CopiedEnvironment
from proofmark.software.spack.lock_file import Lock

FILE = "sources.json"
SCRIPT = Path(__file__).with_name("source_script.py")


def _below(path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or f"{parts}" in ("", "."):
        raise ValueError("a path that leaves the mirror")
    return path


RelativePath = Annotated[str, AfterValidator(_below)]


class SourceFile(StrictModel):
    """One file that a build needs.

    Attributes:
        addresses: where the recipe gets it, in the order in which Spack tries them; of a file in
            PyPI its package URL (``pkg:pypi/cython@3.1.7``).
        name: the name that Spack gives to its copy; ``ior-4.0.0.tar.gz``.
        place: the path of the file in a mirror of Spack.
        sha256: its checksum; None if the recipe has none, so that Spack refuses the file.
    """

    addresses: tuple[str, ...]
    name: RelativePath
    place: RelativePath
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None


SourcesOfLock = dict[str, tuple[SourceFile, ...]]
"""The files of each spec, by ``name@version``. A spec without sources has none."""
_SOURCES: TypeAdapter[SourcesOfLock] = TypeAdapter(SourcesOfLock)


def read_sources(lock: Lock) -> SourcesOfLock:
    """Return the sources of `lock`.

    Raises:
        BadInput: ``sources.json`` beside the lock is missing, has another form, or lacks a package
            that the lock builds.
    """
    path = lock.source.with_name(FILE)
    sources = _parse(_content(path), path)
    if missing := sorted(_built(lock) - sources.keys()):
        raise bad_input(path, ", ".join(missing), "nothing", "the packages of the lock: make lock")
    return sources


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        accepted = "the file that `make lock` writes beside the lock"
        raise bad_input(path, "", error.strerror or "unreadable", accepted) from None


def _parse(text: str, path: Path) -> SourcesOfLock:
    try:
        return _SOURCES.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise bad_input(path, key, str(first["msg"]), "the sources of a lock") from None


def _built(lock: Lock) -> set[str]:
    return {spec.label for spec in lock.specs.values() if not spec.external}


def canonical(sources: SourcesOfLock) -> str:
    """Return the canonical text of ``sources.json``."""
    content = _SOURCES.dump_python(sources, mode="json")
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def check_sources(lock: Lock) -> Iterator[InputError]:
    """Yield the errors of ``sources.json`` beside `lock`.

    Raises:
        BadInput: see `read_sources`.
    """
    path, sources = lock.source.with_name(FILE), read_sources(lock)
    if _content(path) != canonical(sources):
        yield InputError(str(path), "", "a file that is not canonical", "the text of `make lock`")
    for label in sorted(sources.keys() - _built(lock)):
        yield InputError(str(path), label, "a package that the lock does not build", "its packages")
    for label, files in sources.items():
        for file in files:
            if file.sha256 and file.sha256 not in file.place:
                yield InputError(str(path), label, file.place, f"a place with {file.sha256}")


def sources_from_spack(environment: CopiedEnvironment) -> str:
    """Return the canonical text of ``sources.json`` for the lock in an environment.

    Raises:
        BadInput: Spack failed.
    """
    return canonical(_parse(environment.output_of(SCRIPT), SCRIPT))
