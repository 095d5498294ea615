"""The ``spack.yaml`` of a site: an environment of the kit with the parts that the site has."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from proofmark.software.spack.site_parts import SitePart

COMPILERS = "../common/compilers-$operating_system.yaml"
NETWORK = ("libfabric", "ucx", "rdma-core")
"""Libraries below the kit's MPI; requirements for them mean nothing beside the site's MPI."""

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
        tools: build tools.
        compiler: the entry of `externals` of another gcc than the kit's; None: the kit's.
    """

    mpi: SitePart | None
    blas: SitePart | None
    tools: Sequence[SitePart]
    compiler: Mapping[str, Any] | None = None


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
        for name in NETWORK:
            packages.pop(name, None)
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
