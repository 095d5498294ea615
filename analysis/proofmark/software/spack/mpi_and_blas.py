"""The MPI and the BLAS of a lock, and those that programs load.

A lock names an external by what somebody has written: another version in its text, or an update of
the system, does not change its hash. The linker of EasyBuild gets a folder (``-L``), and the loader
does not: on Debian it takes the library behind the alternatives, which can have other threads than
the one that was linked. So the libraries that a program loads are compared with the lock or with
what was linked.

Some variants decide what is measured: the network, the scheduler, the drivers of files and the GPU
of an MPI, and the threads of a BLAS. The facts of the site choose a variant, or the environment
does; else it is the default of a recipe, which knows neither, and a plan and a report name it.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proofmark.common.errors import InputError, refuse
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.processes import run_command
from proofmark.software import mpi
from proofmark.software.spack.lock_file import (
    PARALLEL,
    VIRTUALS,
    AbstractSpec,
    Lock,
    Spec,
    abstract_specs,
    asked_beside,
    closure,
    read_lock,
    variant_word,
)
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
            files = [path for name, path in sorted(libraries.items()) if mpi.LIBRARY.match(name)]
            states = {file: mpi.library_states(file) for file in files}
            mistakes += mpi_mistakes(program, states, wanted)
            for file, text in states.items():
                if not mpi.release_of(text)[0]:
                    unread[Message("mpi-unread", library=str(file), wanted=wanted.label)] = None
    refuse(mistakes)
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
            if mpi.same_release(version, wanted.version) and wanted.threads in ("", threads):
                continue
            found = f"openblas@{version} threads={threads} ({path.resolve()})"
        else:
            continue
        mistakes.append(InputError(program, "BLAS", found, f"{expected}, the spec of the lock"))
    return mistakes


def mpi_mistakes(program: str, states: Mapping[Path, str], wanted: Spec) -> list[InputError]:
    """Return how the MPI of a program differs from the spec `wanted`.

    Args:
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
    mistakes = []
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
        key = f"{spec.name} in {prefix}"
        mistakes.append(InputError(str(lock.source), key, listed, accepted))
    refuse(mistakes)


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
    """Return the shared BLAS that the linker takes for `words`, as it says; None if it takes none.

    A static one is not loaded.
    """
    command = ["gcc", "-shared", "-Wl,--trace", "-o", os.devnull, *shlex.split(words)]
    read = [Path(line) for line in run_command(command).stdout.splitlines()]
    return next((path for path in read if _is_blas(path.name) and ".so" in path.suffixes), None)


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


_GPU = ("cuda", "rocm")
ROMIO, DRIVERS = "romio", "romio-filesystem"
"""The variants of Open MPI and MPICH for ROMIO, and for its drivers."""
DECIDING: Mapping[str, tuple[str, ...]] = {
    "openmpi": (
        *("fabrics", "schedulers", "pmi", ROMIO, DRIVERS, "lustre", "gpfs"),
        *_GPU,
    ),
    "mpich": ("device", "netmod", "slurm", "pmi", ROMIO, DRIVERS, *_GPU),
    "mvapich": ("netmod", "process_managers", "threads", "file_systems"),
    "mvapich2": ("fabrics", "process_managers", "threads", "file_systems", "cuda"),
    "ucx": ("verbs", "rc", "ud", "dc", "mlx5_dv", "cma", *_GPU),
    "libfabric": ("fabrics", *_GPU),
    **dict.fromkeys(BLAS_LIBRARIES.keys() - {"cray-libsci"}, ("threads",)),
}
"""The variants that decide, by package of Spack."""

CONDITIONAL = frozenset({"pmi", DRIVERS})
"""Variants that a package has only beside a value of another one: their absence is no lack."""


def lock_at(kit: Path, site: Path, arch: str, system: str) -> Lock | None:
    """Return the lock of the site `site`, else that of the kit; None if there is none.

    Raises:
        BadInput: the file is no lock.
    """
    folders = (site / "locks" / arch / system, kit / "environments" / arch / system)
    found = next((each for each in folders if (each / "spack.lock").is_file()), None)
    return read_lock(found / "spack.lock") if found else None


def virtuals_of(lock: Lock, *names: str) -> list[Spec]:
    """Return the MPI and the BLAS of the programs of a lock."""
    hashes = set[str]()
    for root in lock.roots.values():
        hashes.update(filter(None, map(lock.specs[root].virtuals.get, names)))
    return sorted((lock.specs[each] for each in hashes), key=lambda spec: spec.label)


def unchosen_variants(lock: Lock, packages: Iterable[str] | None = None) -> list[Message]:
    """Return what neither the site nor the environment chose of what decides a measurement.

    Args:
        packages: only what these roots load; None: all roots.

    Raises:
        BadInput: the file from which the lock was made is missing.
    """
    folder = lock.source.parent
    asked = asked_beside(folder) or asked_beside(folder.parent)  # the kit: of its environment
    roots = lock.roots if packages is None else {name: lock.roots[name] for name in packages}
    found = []
    chosen = virtuals_of(Lock(lock.source, lock.specs, dict(roots)), *VIRTUALS)
    for spec in closure(lock, [each.hash for each in chosen]):
        stated = set().union(*(each.variants for each in _asked_of(asked, spec.name)))
        free = [each for each in DECIDING.get(spec.name, ()) if each not in stated]
        known = spec.variants
        default = [variant_word(each, known[each]) for each in free if each in known]
        unknown = [each for each in free if each not in known and each not in CONDITIONAL]
        if default:
            found.append(Message("variants-default", part=spec.label, variants=", ".join(default)))
        if spec.external and unknown:
            found.append(Message("variants-unknown", part=spec.label, variants=", ".join(unknown)))
        drivers = spec.variants.get(DRIVERS, ()) if spec.variants.get(ROMIO) else ()
        if drivers and not spec.external and not {*PARALLEL} & {*drivers}:
            names = ", ".join(drivers)
            found.append(Message("drivers-generic", part=spec.label, drivers=names))
    return found


def _asked_of(packages: Mapping[str, Any], package: str) -> Iterator[AbstractSpec]:
    """Yield the requirements and externals of a configuration about a package."""
    for key in ("require", "prefer", "variants", "externals"):
        yield from abstract_specs(packages.get(package, {}).get(key, ()))
        for virtual in VIRTUALS:
            for spec in abstract_specs(packages.get(virtual, {}).get(key, ())):
                if spec.package == package:
                    yield spec
