"""The programs of a plan before they are installed: what the inventory and the environment state.

A probe reads the rest from the installed programs: the folders, the BLAS, the changes by modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from proofmark.common.yaml_models import load
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site
from proofmark.software.installed import Spelling, spellings, with_facts
from proofmark.software.probed_programs import program_path
from proofmark.software.program import LAUNCHERS, unprobed
from proofmark.software.provider import SYSTEM
from proofmark.software.software import Package, Software
from proofmark.software.spack.lock_check import read_spack_yaml
from proofmark.software.spack.measured_variants import lock_at, unchosen_variants
from proofmark.software.spack.system import this_system
from proofmark.software.system_file import System

PREFIX = "@PREFIX@"
"""Stands for a folder of a package, or of its MPI, that only an installation knows.

A shell needs no quotes for it.
"""
PREINSTALLED = "preinstalled"
SPACK = "spack"
ASSUMED_MPI = "openmpi"
EASYBUILD_MPI = "openmpi"
"""The MPI of EasyBuild's toolchains foss and gompi (docs.easybuild.io, "Common toolchains")."""
_FAMILY = re.compile(r"openmpi|mvapich|mpich|\bimpi|intel(?=[^,]*mpi)", re.IGNORECASE)


Stated = tuple[Mapping[str, str], Mapping[str, str], str]
"""The known paths by program, the known variables, and the family of the MPI or ""."""


def planned_software(kit: Path, site: Site, plan: Plan) -> tuple[Software, list[str]]:
    """Return the programs of `plan`, and a line for each fact of them that is not known yet.

    Folders that only an installation knows are `PREFIX`. The origin may lack programs of the plan.

    Raises:
        BadInput: a file of the environment is wrong.
    """
    packages, unknown = {}, []
    parallel = {step.package for step in plan.programs() if step.launch == "mpi"}
    chosen = {step.package for step in plan.programs() if step.variants}
    for name, programs in plan.packages().items():
        paths, environment, family = _stated(kit / "environments", site, name, programs)
        if name not in parallel:
            family = ""
        elif not family and not site.partition.launch.launcher:
            family = ASSUMED_MPI
            unknown.append(f"{name}: the MPI, which a probe reads; {family} is assumed")
        entry = site.partition.preinstalled.get(name)
        if entry and entry.modules and site.partition.provision_from == PREINSTALLED:
            unknown.append(f"{name}: the variables of the modules {', '.join(entry.modules)}")
        if name in chosen:
            unknown.append(f"{name}: the variables that select the kernel of its BLAS")
        packages[name] = Package(
            origin=site.partition.provision_from,
            version="",
            prefix=PREFIX,
            launcher=LAUNCHERS.get(family, "plain"),
            environment=dict(environment),
            programs={
                each: unprobed(each, paths.get(each, f"{PREFIX}/bin/{each}"), family)
                for each in programs
            },
        )
    if site.partition.provision_from == SPACK:
        unknown += _unchosen(kit, site, packages)
    return Software(packages=packages), unknown


def _unchosen(kit: Path, site: Site, packages: Iterable[str]) -> list[str]:
    """Return a line for what nobody chose of what decides a measurement; nothing without a lock."""
    lock = lock_at(kit, site.inventory, site.partition.environment, this_system().name)
    if lock is None:
        return []
    return [*map(str, unchosen_variants(lock, lock.roots.keys() & set(packages)))]


def _stated(environments: Path, site: Site, package: str, programs: Iterable[str]) -> Stated:
    partition = site.partition
    folder, origin = environments / partition.environment, partition.provision_from
    if origin == PREINSTALLED and (entry := partition.preinstalled.get(package)):
        words = ",".join([*entry.modules, entry.prefix, *entry.environment])
        paths = {name: program_path(entry, name) for name in programs}
        return paths, entry.environment, _family(words)
    if origin == SYSTEM and (folder / "system.yml").is_file():
        source = load(folder / "system.yml", System).packages.get(package)
        if source:
            return source.paths(PREFIX), source.variables(PREFIX), source.mpi
    if origin in (SPACK, "easybuild"):
        known = getattr(spellings(environments), origin).get(package, Spelling()).programs
        facts = partition.facts
        paths = {name: f"{PREFIX}/bin/{with_facts(file, facts)}" for name, file in known.items()}
        return paths, {}, _spack_mpi(folder, site) if origin == SPACK else EASYBUILD_MPI
    return {}, {}, ""


def _spack_mpi(folder: Path, site: Site) -> str:
    """Return the family of the MPI that the environment of the site, or else `folder`, requires."""
    own = site.inventory / "locks" / folder.name
    files = [*sorted(own.glob("*/spack.yaml")), folder / "spack.yaml"]
    return _family(f"{read_spack_yaml(files[0])['packages'].get('mpi', {}).get('require', '')}")


def _family(words: str) -> str:
    """Return the family of the MPI that `words` name; empty if they name none."""
    found = _FAMILY.search(words)
    name = found[0].lower() if found else ""
    return {"impi": "intel"}.get(name, name)
