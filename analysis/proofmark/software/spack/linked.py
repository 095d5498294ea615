"""Compares the BLAS that an installed program loads with the BLAS of its spec."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from proofmark.common.errors import BadInput, InputError
from proofmark.common.processes import run_command
from proofmark.software.spack.lock_file import Lock, Spec
from proofmark.software.spack.site_parts import openblas_of

LIBRARIES = {
    "openblas": r"libopenblas\w*\.",
    "blis": r"libblis[\w-]*\.",
    "amdblis": r"libblis[\w-]*\.",
    "armpl-gcc": r"libarmpl\w*\.",
    "nvpl-blas": r"libnvpl_blas_core\.",
    "essl": r"libessl\w*\.",
    "intel-oneapi-mkl": r"libmkl_core\.",
    "cray-libsci": r"libsci_\w+\.",
}
"""The file name of the library of a BLAS, by Spack's package."""


def check_blas(lock: Lock, package: str, programs: Iterable[str]) -> None:
    """Refuse programs that load another BLAS than their spec, or one with other threads.

    Only a program that loads a BLAS is compared. An MPI or a compiler is not a BLAS.

    Raises:
        BadInput: names each such program, its library and the spec.
    """
    spec_hash = lock.root(package).virtuals.get("blas")
    if spec_hash is None:
        return
    mistakes = [
        mistake
        for program in programs
        for mistake in blas_mistakes(program, loaded_libraries(program), lock.specs[spec_hash])
    ]
    if mistakes:
        raise BadInput(*mistakes)


def loaded_libraries(program: str) -> dict[str, Path]:
    """Return the libraries that the dynamic linker loads for `program`, by name."""
    return read_ldd(run_command(["ldd", program]).stdout)


def read_ldd(text: str) -> dict[str, Path]:
    """Return the libraries in an output of ``ldd`` that were found, by name."""
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", text, re.M)}


def blas_mistakes(program: str, libraries: dict[str, Path], wanted: Spec) -> list[InputError]:
    """Return how the BLAS among the libraries of a program differs from the spec `wanted`."""
    expected = f"{wanted.label} threads={wanted.threads}" if wanted.threads else wanted.label
    mistakes = []
    for name, path in sorted(libraries.items()):
        families = [each for each, file in LIBRARIES.items() if re.match(file, name)]
        if not families:
            continue
        if wanted.name not in families:
            found = f"{families[0]} ({path})"
        elif wanted.name == "openblas":
            version, threads = openblas_of(path.read_bytes())
            if (version, threads) == (wanted.version, wanted.threads or threads):
                continue
            found = f"openblas@{version} threads={threads} ({path.resolve()})"
        else:
            continue
        mistakes.append(InputError(program, "BLAS", found, f"{expected}, the spec of the lock"))
    return mistakes
