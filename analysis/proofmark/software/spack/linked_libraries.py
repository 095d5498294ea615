"""Compares the MPI and the BLAS that programs load, and an MPI of the site, with a lock.

A lock names an external by what somebody has written: another version in its text, or an update of
the system, does not change its hash.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from proofmark.common.errors import BadInput, InputError
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.processes import run_command
from proofmark.software import mpi
from proofmark.software.spack.lock_file import Lock, Spec
from proofmark.software.spack.site_parts import find_mpis, openblas_of

BLAS_LIBRARIES = {
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

ROOT = Path("/")


def check_linked(lock: Lock, package: str, programs: Iterable[str]) -> tuple[Message, ...]:
    """Refuse programs that load another MPI or BLAS than their spec; return what is not known.

    A program that loads no BLAS, or no MPI, is not compared with it. Of a BLAS the threads are
    compared too.

    Raises:
        BadInput: names each such program, its library and the spec.
    """
    virtuals = lock.root(package).virtuals
    mistakes: list[InputError] = []
    unread: dict[Message, None] = {}
    for program in programs:
        libraries = loaded_libraries(program)
        if "blas" in virtuals:
            mistakes += blas_mistakes(program, libraries, lock.specs[virtuals["blas"]])
        if "mpi" in virtuals:
            wanted = lock.specs[virtuals["mpi"]]
            states = {file: mpi.library_states(file) for file in mpi_libraries(libraries)}
            mistakes += mpi_mistakes(program, states, wanted)
            for file, text in states.items():
                if not mpi.release_of(text)[0]:
                    unread[Message("mpi-unread", library=str(file), wanted=wanted.label)] = None
    if mistakes:
        raise BadInput(*mistakes)
    return tuple(unread)


def loaded_libraries(program: str) -> dict[str, Path]:
    """Return the libraries that the dynamic linker loads for `program`, by name."""
    return read_ldd(run_command(["ldd", program]).stdout)


def read_ldd(text: str) -> dict[str, Path]:
    """Return the libraries in an output of ``ldd`` that were found, by name."""
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", text, re.M)}


def blas_mistakes(program: str, libraries: Mapping[str, Path], wanted: Spec) -> list[InputError]:
    """Return how the BLAS among the libraries of a program differs from the spec `wanted`."""
    expected = f"{wanted.label} threads={wanted.threads}" if wanted.threads else wanted.label
    mistakes = []
    for name, path in sorted(libraries.items()):
        families = [each for each, file in BLAS_LIBRARIES.items() if re.match(file, name)]
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


def mpi_libraries(libraries: Mapping[str, Path]) -> list[Path]:
    """Return the files of the MPI among the libraries of a program."""
    return [path for name, path in sorted(libraries.items()) if mpi.LIBRARY.match(name)]


def mpi_mistakes(program: str, states: Mapping[Path, str], wanted: Spec) -> list[InputError]:
    """Return how the MPI of a program differs from the spec `wanted`.

    Args:
        states: what each of its MPI libraries states.
        wanted: the MPI of the lock; one of a package that states no release is not compared.
    """
    mistakes = []
    for file, text in states.items():
        package, version = mpi.release_of(text)
        if not package or wanted.name not in mpi.RELEASES:
            continue
        if package != wanted.name or not mpi.same_release(version, wanted.version):
            found = f"{package}@{version} ({file.resolve()})"
            accepted = f"{wanted.label}, the spec of the lock"
            mistakes.append(InputError(program, "MPI", found, accepted))
    return mistakes


def check_installed_mpi(lock: Lock, packages: Iterable[str], root: Path = ROOT) -> None:
    """Refuse a lock whose MPI of the site is another one in its prefix, before anything is built.

    Raises:
        BadInput: names the file, the MPI of the lock and what its prefix has.
    """
    hashes = {lock.root(package).virtuals.get("mpi", "") for package in packages}
    externals = [lock.specs[each] for each in sorted(hashes) if each and lock.specs[each].external]
    if mistakes := list(_installed_mistakes(lock, externals, root)):
        raise BadInput(*mistakes)


def _installed_mistakes(lock: Lock, externals: Iterable[Spec], root: Path) -> Iterator[InputError]:
    arch = of_person(lock.source.parents[1].name, "ARCH")
    command = PrintedCommand("proofmark", "lock", arch, "-i", "SITE", "--find")
    for spec in externals:
        prefix = os.path.normpath(spec.prefix)
        found = find_mpis(root, platform.machine(), [f"{prefix}/bin"])
        there = [part for part in found if os.path.normpath(part.prefix) == prefix]
        known = [part for part in there if part.package == spec.name]
        if any(mpi.same_release(part.version, spec.version) for part in known):
            continue
        if not known and spec.name not in mpi.RELEASES:
            continue  # no file states the release of this package
        listed = "; ".join(part.label for part in known or there) or "no MPI with bin/mpicc"
        accepted = f"{spec.label}, the spec of the lock; `{command}` makes it again"
        yield InputError(str(lock.source), f"{spec.name} in {prefix}", listed, accepted)
