"""The variants of a lock that decide what is measured, and who chose them.

They are the network, the scheduler, the drivers of files and the GPU of an MPI, and the threads of
a BLAS. The facts of the site choose a variant, or the environment does; else it is the default of
a recipe, which knows neither, and a plan and a report name it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proofmark.cases.vocabulary import ROMIO
from proofmark.common.message import Message
from proofmark.software.spack.lock_check import read_spack_yaml
from proofmark.software.spack.lock_file import VIRTUALS, Lock, Spec, read_lock, states
from proofmark.software.spack.site_environment import PARALLEL

_GPU = ("cuda", "rocm")
DRIVERS = "romio-filesystem"
"""The variant of Open MPI for the drivers of its ROMIO."""
DECIDING: Mapping[str, tuple[str, ...]] = {
    "openmpi": (
        *("fabrics", "schedulers", "pmi", ROMIO, DRIVERS, "lustre", "gpfs"),
        *_GPU,
    ),
    "mpich": ("device", "netmod", "slurm", "pmi", ROMIO, *_GPU),
    "mvapich": ("netmod", "process_managers", "threads", "file_systems"),
    "mvapich2": ("fabrics", "process_managers", "threads", "file_systems", "cuda"),
    "ucx": ("verbs", "rc", "ud", "dc", "mlx5_dv", "cma", *_GPU),
    "libfabric": ("fabrics", *_GPU),
    **{name: ("threads",) for name in ("openblas", "blis", "amdblis", "essl", "armpl-gcc")},
    **{name: ("threads",) for name in ("nvpl-blas", "intel-oneapi-mkl")},
}
"""The variants that decide, by package of Spack."""

WITHOUT_DRIVERS = frozenset({"mpich"})
"""Packages with ROMIO whose recipe has no variant for its drivers of files."""

CONDITIONAL = frozenset({"pmi", DRIVERS})
"""Variants that a package has only beside a value of another one: their absence is no lack."""


def lock_at(kit: Path, site: Path, arch: str, system: str) -> Lock | None:
    """Return the lock of the site `site`, else that of the kit; None if there is none.

    Args:
        system: the operating system, as Spack names it.

    Raises:
        BadInput: the file is no lock.
    """
    folders = (site / "locks" / arch / system, kit / "environments" / arch / system)
    found = next((each for each in folders if (each / "spack.lock").is_file()), None)
    return read_lock(found / "spack.lock") if found else None


def environment_of(lock: Lock) -> dict[str, Any]:
    """Return the ``spack`` mapping from which a lock was made; empty if its file is gone.

    Raises:
        BadInput: the file is damaged.
    """
    beside = lock.source.with_name("spack.yaml")
    source = beside if beside.is_file() else lock.source.parents[1] / "spack.yaml"
    return read_spack_yaml(source) if source.is_file() else {}


def parts_of_mpi(lock: Lock) -> Collection[str] | None:
    """Return ``romio`` if the MPI of a lock has it; None if that is not known."""
    known = {spec.hash: spec.variants.get(ROMIO) for spec in _virtuals(lock, "mpi")}
    values = set(known.values())
    if values == {True}:
        return (ROMIO,)
    return () if False in values else None


def _virtuals(lock: Lock, *names: str) -> list[Spec]:
    """Return the MPI and the BLAS of the programs of a lock."""
    hashes = {
        virtuals[name]
        for root in lock.roots.values()
        for virtuals in (lock.specs[root].virtuals,)
        for name in names
        if name in virtuals
    }
    return sorted((lock.specs[each] for each in hashes), key=lambda spec: spec.label)


def unchosen_variants(lock: Lock, packages: Iterable[str] | None = None) -> list[Message]:
    """Return what neither the site nor the environment chose of what decides a measurement.

    Args:
        packages: only what these roots load; None: all roots.

    Raises:
        BadInput: the file from which the lock was made is missing.
    """
    environment = environment_of(lock)
    roots = lock.roots if packages is None else {name: lock.roots[name] for name in packages}
    found = []
    for spec in _below(Lock(lock.source, lock.specs, dict(roots))):
        words = " ".join(_words(environment, spec.name))
        deciding = DECIDING[spec.name]
        free = [each for each in deciding if not states(words, each)]
        default = [_text(each, spec.variants[each]) for each in free if each in spec.variants]
        unknown = [each for each in free if each not in spec.variants and each not in CONDITIONAL]
        if default:
            found.append(Message("variants-default", part=spec.label, variants=", ".join(default)))
        if spec.external and unknown:
            found.append(Message("variants-unknown", part=spec.label, variants=", ".join(unknown)))
        if spec.name in WITHOUT_DRIVERS and not spec.external and spec.variants.get(ROMIO):
            found.append(Message("drivers-default", part=spec.label))
        if (drivers := _drivers(spec)) and not spec.external and not {*PARALLEL} & {*drivers}:
            names = ", ".join(drivers)
            found.append(Message("drivers-generic", part=spec.label, drivers=names))
    return found


def _drivers(spec: Spec) -> Collection[str]:
    """Return the drivers of ROMIO that a variant chose; nothing without ROMIO or choice."""
    drivers = spec.variants.get(DRIVERS) if spec.variants.get(ROMIO) else None
    return drivers if isinstance(drivers, list) and drivers != ["none"] else ()


def _below(lock: Lock) -> Iterator[Spec]:
    """Yield MPI and BLAS of a lock, and what they load of `DECIDING`, each once."""
    waiting = _virtuals(lock, *VIRTUALS)
    seen: dict[str, Spec] = {}
    while waiting:
        spec = waiting.pop(0)
        if spec.hash not in seen and spec.name in DECIDING:
            seen[spec.hash] = spec
            waiting += [lock.specs[each] for each in spec.run]
    yield from seen.values()


def _words(environment: Mapping[str, Any], package: str) -> Iterator[str]:
    """Yield the requirements and externals of an environment about a package."""
    packages = environment.get("packages", {})
    own = packages.get(package, {})
    for key in ("require", "prefer", "variants"):
        yield from _listed(own.get(key, ()))
    yield from (str(each["spec"]) for each in own.get("externals", ()))
    for virtual in VIRTUALS:
        for text in _listed(packages.get(virtual, {}).get("require", ())):
            if re.match(rf"{re.escape(package)}(?![\w-])", text):
                yield text


def _listed(value: str | Iterable[Any]) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value]


def _text(variant: str, value: str | bool | list[str]) -> str:
    if isinstance(value, bool):
        return f"{'+' if value else '~'}{variant}"
    return f"{variant}={','.join(value) if isinstance(value, list) else value}"
