"""Chooses the MPI and the BLAS of a site's lock among those that were found."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.software.spack.site_parts import MPICC, Problem, SitePart

KIT = "kit"
"""The choice of the kit's own library, which Spack builds."""

REMEDIES = {
    Problem.NO_HEADERS: "include/mpi.h in its prefix, or the package with its headers"
    " (libopenmpi-dev, libmpich-dev; openmpi-devel, mpich-devel)",
    Problem.NOT_SELECTED: "an MPI that is mpicc (as root: update-alternatives --set mpi {file})",
}


@dataclass(frozen=True)
class WantedBlas:
    """The BLAS that an environment of the kit requires: package and ``threads=``."""

    package: str
    threads: str


def wanted_blas(environment: Mapping[str, Any]) -> WantedBlas:
    """Return the BLAS that the ``spack`` mapping of an environment requires."""
    required = " ".join(environment["packages"]["blas"]["require"])
    package = re.match(r"[\w-]+", required)
    threads = re.search(r"threads=(\w+)", required)
    return WantedBlas(package[0] if package else "", threads[1] if threads else "none")


def _chosen(option: str, found: Sequence[SitePart], choice: str) -> list[SitePart]:
    """Return the parts that `choice` names: a package, package@version, prefix or file.

    Raises:
        BadInput: it names none.
    """
    parts = [part for part in found if choice in (part.package, part.label, part.prefix, part.file)]
    if not parts:
        raise bad_input(option, "", choice, _listed(found) or f"{KIT}: nothing was found")
    return parts


def programs_of_choice(choice: str) -> Path | None:
    """Return the folder of the ``mpicc`` that a choice of an MPI names; None if it is no path.

    The path is a prefix, its folder of programs, or the wrapper itself.

    Raises:
        BadInput: there is no ``mpicc`` at the path.
    """
    if "/" not in choice:
        return None
    path = Path(os.path.abspath(Path(choice).expanduser()))  # noqa: PTH100 - keeps links
    for wrapper in (path / MPICC, path / "mpicc", path):
        if wrapper.is_file():
            return wrapper.parent
    kind = "no such folder" if not path.exists() else f"no {MPICC} in it"
    accepted = f"a prefix with {MPICC} and include/mpi.h, or its mpicc"
    raise bad_input("--mpi", "", f"{path}: {kind}", accepted)


def _listed(parts: Sequence[SitePart]) -> str:
    return "; ".join(f"{part.label} ({part.file})" for part in parts)


def choose_mpi(found: Sequence[SitePart], choice: str) -> SitePart | None:
    """Return the MPI to use; None for the kit's own. Without a choice it is the only usable one.

    Args:
        found: all that were found.
        choice: a package, ``package@version``, a prefix, its ``bin`` or a wrapper; `KIT`; empty if
            the site chooses none.

    Raises:
        BadInput: none or several were found, or the choice cannot be used.
    """
    if choice == KIT:
        return None
    if not found:
        looked = "no mpicc in PATH and in the usual folders of systems and vendors"
        accepted = (
            f"a prefix with {MPICC} and include/mpi.h, a module (--module), or {KIT}, which builds"
            " the MPI of the kit"
        )
        raise bad_input("--mpi", "", looked, accepted)
    parts = _named(found, choice) if choice else list(found)
    parts = [part for part in parts if not part.problem] or parts
    if len(parts) > 1:
        accepted = f"one of them as --mpi PACKAGE or PATH, or {KIT}"
        raise bad_input("--mpi", choice, _listed(parts), accepted)
    (part,) = parts
    if part.problem:
        found_text = f"{part.label} ({part.file}): {part.problem.value}"
        raise bad_input("--mpi", "", found_text, REMEDIES[part.problem].format(file=part.file))
    return part


def _named(found: Sequence[SitePart], choice: str) -> list[SitePart]:
    """Return the MPIs that a choice names; a path can lead over links, and to the wrapper."""
    folder = programs_of_choice(choice)
    if folder is None:
        return _chosen("--mpi", found, choice)
    files = [part for part in found if part.file == choice]
    return files or [part for part in found if _same_folder(Path(part.file).parent, folder)]


def _same_folder(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def choose_blas(found: Sequence[SitePart], wanted: WantedBlas, choice: str) -> SitePart | None:
    """Return the BLAS to use; None for the kit's own.

    Without a choice, only a library of the same package and with the same threads is used.

    Raises:
        BadInput: several fit, the choice is none of `found`, or its threads are not those that HPL
            needs.
    """
    if choice == KIT:
        return None
    parts = _chosen("--blas", found, choice) if choice else list(found)
    fitting = [
        part
        for part in parts
        if (choice or part.package == wanted.package)
        and ("threads=" not in part.variants or f"threads={wanted.threads}" in part.variants)
    ]
    if len(fitting) > 1:
        accepted = f"one of them as --blas PATH, or {KIT}"
        raise bad_input("--blas", choice, _listed(fitting), accepted)
    if fitting:
        (part,) = fitting
        threads = "" if "threads=" in part.variants else f"threads={wanted.threads}"
        variants = f"{threads} {part.variants}".strip()
        return SitePart(part.package, part.version, part.prefix, variants, part.file)
    if choice:
        raise BadInput(*(_wrong_threads(part, wanted) for part in parts))
    return None


def _wrong_threads(part: SitePart, wanted: WantedBlas) -> InputError:
    accepted = f"threads={wanted.threads}, which HPL of this environment needs"
    return InputError("--blas", part.file, part.variants, accepted)
