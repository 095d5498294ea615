"""The sources of a lock, and their files in folders.

The address, checksum and place in a mirror of each archive and patch are in ``sources.json`` beside
the lock, so that they can be listed without Spack and without a network. `proofmark lock` writes
it. Files are found in the folders of a site also under other names, and linked for Spack.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from proofmark.common.errors import InputError, bad_input, refuse
from proofmark.common.shared_models import StrictModel, first_mistake
from proofmark.software.installed import Sources
from proofmark.software.spack.bundle import digest
from proofmark.software.spack.installation import CopiedEnvironment, SpackInstallation
from proofmark.software.spack.lock_file import Lock

SOURCES_FILE = "sources.json"


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
        sha256: its checksum; None if the recipe has none: then no file serves.
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
    path = lock.source.with_name(SOURCES_FILE)
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
        raise bad_input(path, *first_mistake(error), "the sources of a lock") from None


def _built(lock: Lock) -> set[str]:
    return {spec.label for spec in lock.specs.values() if not spec.external}


def canonical_sources(sources: SourcesOfLock) -> str:
    """Return the canonical text of ``sources.json``."""
    content = _SOURCES.dump_python(sources, mode="json")
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def check_sources(lock: Lock) -> Iterator[InputError]:
    """Yield the errors of ``sources.json`` beside `lock`.

    Raises:
        BadInput: see `read_sources`.
    """
    path, sources = lock.source.with_name(SOURCES_FILE), read_sources(lock)
    if _content(path) != canonical_sources(sources):
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
    return canonical_sources(_parse(environment.output_of("sources"), environment.folder))


SourceState = Literal["found", "missing", "other-checksum"]
"""Whether a folder has a source; the last one: under its name it has another content."""


@dataclass(frozen=True)
class Located:
    """A source of the package `label` and its file in a folder, if one was found."""

    label: str
    source: SourceFile
    state: SourceState
    file: Path | None


def locate(sources: SourcesOfLock, labels: Iterable[str], folders: Sequence[Path]) -> list[Located]:
    """Search the sources of the packages `labels` in `folders` by their checksums.

    The name of a file has no importance, but a file of the right name is named if nothing else is
    found.
    """
    files = []
    for folder in folders:
        files += [path for path in sorted(folder.rglob("*")) if path.is_file()]
    by_checksum = {digest(path): path for path in reversed(files)}
    by_name = {path.name: path for path in reversed(files)}
    found = []
    for label in sorted(set(labels)):
        for source in sources[label]:
            state: SourceState = "found"
            if (file := by_checksum.get(source.sha256 or "")) is None:
                places = (source.place, source.name, *source.addresses)
                names = (each.rpartition("/")[2] for each in places)
                file = next((by_name[name] for name in names if name in by_name), None)
                state = "other-checksum" if file else "missing"
            found.append(Located(label, source, state, file))
    return found


def link(located: Iterable[Located], folder: Path) -> None:
    """Replace `folder` by a mirror of Spack: it has one link for each usable file of `located`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for each in located:
        if each.file and each.state == "found":
            path = folder / each.source.place
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_symlink():
                path.symlink_to(each.file.resolve())


def refuse_missing(located: Iterable[Located], folder: Path) -> None:
    """Refuse sources that no folder has, because no other address is asked.

    Raises:
        BadInput: it names each file to bring, with its checksum and its address.
    """
    mistakes = []
    for each in located:
        if each.state == "found":
            continue
        source, file = each.source, each.file
        found = f"{file} with another checksum" if file else "no file of this source"
        checksum = f"SHA-256 {source.sha256}" if source.sha256 else "no known checksum"
        address = source.addresses[0] if source.addresses else "no address"
        accepted = f"{source.name} ({checksum}) from {address}"
        mistakes.append(InputError(str(folder), each.label, found, accepted))
    refuse(mistakes)


def located_sources(
    lock: Lock, packages: Collection[str], installation: SpackInstallation, sources: Sources
) -> list[Located]:
    """Return the sources of `packages` in the mirror of the unpacked bundle or of the site.

    Raises:
        BadInput: the mirror is no folder; or no other address is asked and a source is missing.
    """
    if sources.mirror and not sources.mirror.is_dir():
        raise bad_input("provision_sources", "", f"{sources.mirror}", "a folder")
    folder = sources.bundle / "mirror" if sources.bundle else sources.mirror
    if not folder:
        return []
    labels = {spec.label for spec in lock.missing(packages, ())}
    located = locate(read_sources(lock), labels, [folder, installation.root / "source"])
    if sources.offline:
        needed = {spec.label for spec in lock.missing(packages, installation.installed())}
        refuse_missing((each for each in located if each.label in needed), folder)
    return located
