"""The BLAS of a program that EasyBuild linked, compared with the one that the loader takes.

The linker gets a folder (``-L``), and the loader does not: on Debian it takes the library behind
the alternatives, which can have other threads than the one that was linked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from proofmark.common.errors import InputError
from proofmark.common.processes import run_command
from proofmark.software.spack.linked_libraries import BLAS_LIBRARIES
from proofmark.software.spack.site_parts import openblas_of

LIBBLAS = "LIBBLAS"
"""The variable with the words of the linker for the BLAS, of the toolchain of the system."""
DEFAULT_BLAS = "-lopenblas"
"""The words without `LIBBLAS`, as the easyconfig of HPL has them."""
FLEXIBLAS = r"libflexiblas\w*\."
"""The BLAS of the toolchain foss, which loads an OpenBLAS of the toolchain."""
UNKNOWN = "unknown"
"""The version that `openblas_of` gives a file of another library."""
CODE = "OTHER_BLAS"
"""The code of a program that loads another BLAS than it was linked with."""


def linked_file(words: str) -> Path | None:
    """Return the shared BLAS that the linker takes for `words`; None if it takes none.

    The first library of the words that is a BLAS by its name counts. A static one is not loaded.
    """
    folders: list[Path] = []
    for word in shlex.split(words):
        if word.startswith("-L"):
            folders.append(Path(word[len("-L") :]))
        elif word.startswith("-l"):
            name = f"lib{word[len('-l') :]}.so"
            if _is_blas(name) and (found := _found(name, folders)):
                return found
        elif _is_blas(Path(word).name) and ".so" in Path(word).suffixes and Path(word).is_file():
            return Path(word)
    return None


def _found(name: str, folders: list[Path]) -> Path | None:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    printed = run_command(["gcc", f"-print-file-name={name}"]).stdout.strip()
    return Path(printed) if printed.startswith("/") else None


def _is_blas(name: str) -> bool:
    return any(re.match(rule, name) for rule in (*BLAS_LIBRARIES.values(), FLEXIBLAS))


def blas_among(libraries: Mapping[str, Path]) -> Iterator[Path]:
    """Yield each BLAS among the loaded libraries of a program."""
    for name, path in sorted(libraries.items()):
        if _is_blas(name):
            yield path


def other_blas(
    program: str, libraries: Mapping[str, Path], linked: Path | None
) -> Iterator[InputError]:
    """Yield a mistake for each loaded BLAS that is not `linked`, nor the same OpenBLAS as it."""
    for path in blas_among(libraries):
        if linked is None or not _same(path, linked):
            wanted = _named(linked) if linked else "no shared BLAS"
            accepted = f"{wanted}, which {LIBBLAS} gives to the linker"
            yield InputError(program, "BLAS", _named(path), accepted, CODE)


def outside_blas(program: str, libraries: Mapping[str, Path], prefix: Path) -> Iterator[InputError]:
    """Yield a mistake for each loaded BLAS that is not below `prefix`, and one if there is none."""
    found = [*blas_among(libraries)]
    accepted = f"a BLAS of the toolchain, below {prefix}"
    for path in found:
        if not path.resolve().is_relative_to(prefix.resolve()):
            yield InputError(program, "BLAS", _named(path), accepted, CODE)
    if not found:
        yield InputError(program, "BLAS", "none", accepted, CODE)


def _same(one: Path, other: Path) -> bool:
    if one.resolve() == other.resolve():
        return True
    facts = [openblas_of(path.read_bytes()) for path in (one, other)]
    return facts[0][0] != UNKNOWN and facts[0] == facts[1]


def _named(path: Path) -> str:
    version, threads = openblas_of(path.read_bytes())
    if version == UNKNOWN:
        return f"{path.resolve()}"
    return f"openblas@{version} threads={threads} ({path.resolve()})"
