"""The ``spack.yaml`` of a site: an environment of the kit with the parts that the site has."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from proofmark.software.spack.lock_file import NETWORK
from proofmark.software.spack.site_parts import SitePart

COMPILERS = "../common/compilers-$operating_system.yaml"
GENERIC = ("nfs", "ufs")
PARALLEL = ("gpfs", "lustre")
"""The drivers of ROMIO that an MPI of the kit can have."""

HEADER = """\
# What this site has, for the programs of environments/{arch} on {system}. Made by
#   proofmark lock {arch} -i SITE --find
# Edit it if needed; `proofmark lock {arch} -i SITE` then makes spack.lock from it.
# The paths of `include` start in environments/{arch} of the kit.
"""


@dataclass(frozen=True)
class SiteParts:
    """The parts of a site for one environment.

    Attributes:
        mpi: the MPI; None: the kit's own is built.
        blas: the BLAS; None: the kit's own is built.
        compiler: the entry of `externals` of another gcc than the kit's; None: the kit's.
        scratches: the types of the file systems to which the programs write.
        file_systems: those whose headers the system has.
    """

    mpi: SitePart | None
    blas: SitePart | None
    tools: Sequence[SitePart]
    compiler: Mapping[str, Any] | None = None
    scratches: Collection[str] = ()
    file_systems: Sequence[SitePart] = ()

    @property
    def drivers(self) -> list[str]:
        """The drivers of ROMIO for the scratches, those that every Unix has first."""
        with_headers = {each.package for each in self.file_systems}
        return [*GENERIC, *sorted(with_headers & set(self.scratches))]

    @property
    def without_headers(self) -> list[str]:
        """The parallel file systems of the scratches whose headers the system lacks."""
        with_headers = {each.package for each in self.file_systems}
        return sorted(set(self.scratches) & set(PARALLEL) - with_headers)


def site_environment(kit: Mapping[str, Any], parts: SiteParts) -> dict[str, Any]:
    """Return the ``spack`` mapping of a site.

    Args:
        kit: the ``spack`` mapping of the kit's environment.
        parts: what the site has.
    """
    made = copy.deepcopy(dict(kit))
    packages = made["packages"]
    for virtual, part in (("mpi", parts.mpi), ("blas", parts.blas)):
        if part:
            packages[virtual] = {"require": [f"{part.label} {part.variants}".strip()]}
    if parts.mpi:
        for name in NETWORK:  # requirements for them mean nothing beside the site's MPI
            packages.pop(name, None)
    else:
        _choose_drivers(packages, parts)
    for each in (parts.mpi, parts.blas, *parts.tools):
        if each:
            packages[each.package] = _external(each)
    if parts.compiler:
        made["include"] = [name for name in made["include"] if name != COMPILERS]
        version = str(parts.compiler["spec"]).partition("@")[2].split()[0].split("+")[0]
        packages["gcc"] = {
            "buildable": False,
            "require": [f"@{version}"],
            "externals": [dict(parts.compiler)],
        }
    return made


def _choose_drivers(packages: dict[str, Any], parts: SiteParts) -> None:
    """Give the kit's Open MPI the drivers for the scratches; the recipe of MPICH has no choice."""
    drivers, variants = parts.drivers, ("romio", "romio-filesystem", *PARALLEL)
    words = ["+romio", f"romio-filesystem={','.join(drivers)}"]
    words += [f"{'+' if name in drivers else '~'}{name}" for name in PARALLEL]
    required = packages["mpi"]["require"]
    of_kit = re.compile(rf"[+~]?({'|'.join(variants)})(=\S*)?")
    packages["mpi"]["require"] = [
        " ".join([*(word for word in each.split() if not of_kit.fullmatch(word)), *words])
        if is_open_mpi(each)
        else each
        for each in required
    ]
    for each in parts.file_systems:
        if each.package == "lustre" and "lustre" in drivers:
            packages["lustre"] = _external(each)


def is_open_mpi(requirement: str) -> bool:
    """Return whether a requirement is of Open MPI, whose recipe has variants for drivers."""
    return re.split(r"[^a-z0-9-]", requirement, maxsplit=1)[0] == "openmpi"


def _external(part: SitePart) -> dict[str, Any]:
    external: dict[str, Any] = {"spec": part.spec, "prefix": part.prefix}
    if part.modules:
        external["modules"] = list(part.modules)
    # It replaces the version that the kit requires.
    return {"buildable": False, "require": f"@{part.version}", "externals": [external]}


def environment_text(arch: str, system: str, environment: Mapping[str, Any]) -> str:
    """Return the text of the file ``spack.yaml``."""
    text = yaml.safe_dump({"spack": dict(environment)}, sort_keys=False, width=100)
    return HEADER.format(arch=arch, system=system) + text


def declared_externals(environment: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the prefixes of the externals of an environment, by package."""
    return {
        name: tuple(str(each["prefix"]) for each in entry.get("externals", ()))
        for name, entry in environment.get("packages", {}).items()
        if entry.get("externals")
    }
