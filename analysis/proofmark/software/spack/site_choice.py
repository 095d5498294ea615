"""The ``spack.yaml`` of a site: an environment of the kit with the parts that the site has.

It chooses the MPI and the BLAS among those that were found, and the compiler and build tools among
those that Spack itself finds at its pinned commit.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from proofmark.cases.vocabulary import Scalar
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.processes import environment_of, run_command
from proofmark.software.spack.installation import SpackInstallation
from proofmark.software.spack.lock_file import NETWORK, PARALLEL, AbstractSpec, abstract_specs
from proofmark.software.spack.lock_make import lock_variables
from proofmark.software.spack.site_parts import MPICC, Problem, SitePart, linked

KIT = "kit"
"""The choice of the kit's own library, which Spack builds."""

REMEDIES = {
    Problem.NO_HEADERS: "include/mpi.h in its prefix, or the package with its headers"
    " (libopenmpi-dev, libmpich-dev; openmpi-devel, mpich-devel)",
    Problem.NOT_SELECTED: "an MPI that is mpicc (as root: update-alternatives --set mpi {file})",
}


def wanted_blas(environment: Mapping[str, Any]) -> AbstractSpec:
    """Return the BLAS that the ``spack`` mapping of an environment requires."""
    (required,) = abstract_specs(environment["packages"]["blas"]["require"])
    return required


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


def lacking_wrappers(
    root: Path, part: SitePart, wrappers: Mapping[str, Collection[str]]
) -> Iterator[InputError]:
    """Yield a mistake for each compiler wrapper that is not beside the ``mpicc`` of an MPI.

    Args:
        wrappers: the packages whose builds call it, by wrapper.
    """
    folder = Path(part.file).parent
    for wrapper, callers in wrappers.items():
        if not linked(root, root / f"{folder / wrapper}"[1:]).is_file():
            found = f"{part.label} ({folder}): no {wrapper}"
            accepted = f"an MPI with it, for the build of {', '.join(callers)}"
            yield InputError("--mpi", "", found, accepted)


def _named(found: Sequence[SitePart], choice: str) -> list[SitePart]:
    """Return the MPIs that a choice names; a path can lead over links, and to the wrapper."""
    folder = programs_of_choice(choice)
    if folder is None:
        return _chosen("--mpi", found, choice)
    files = [part for part in found if part.file == choice]
    return files or [part for part in found if Path(part.file).parent.resolve() == folder.resolve()]


def choose_blas(found: Sequence[SitePart], wanted: AbstractSpec, choice: str) -> SitePart | None:
    """Return the BLAS to use; None for the kit's own.

    Without a choice, only a library of the same package and with the same threads is used.

    Raises:
        BadInput: several fit, the choice is none of `found`, or its threads are not those that HPL
            needs.
    """
    if choice == KIT:
        return None
    threads = wanted.value("threads") or "none"
    parts = _chosen("--blas", found, choice) if choice else list(found)
    fitting = [
        part
        for part in parts
        if (choice or part.package == wanted.package) and _threads(part) in ("", threads)
    ]
    if len(fitting) > 1:
        accepted = f"one of them as --blas PATH, or {KIT}"
        raise bad_input("--blas", choice, _listed(fitting), accepted)
    if fitting:
        (part,) = fitting
        stated = "" if _threads(part) else f"threads={threads}"
        return replace(part, variants=f"{stated} {part.variants}".strip())
    if choice:
        accepted = f"threads={threads}, which HPL of this environment needs"
        raise BadInput(
            *(InputError("--blas", part.file, part.variants, accepted) for part in parts)
        )
    return None


def _threads(part: SitePart) -> str:
    return AbstractSpec.parse(part.spec).value("threads")


COMPILERS = "../common/compilers-$operating_system.yaml"
GENERIC = ("nfs", "ufs")
"""The drivers of ROMIO that every MPI of the kit has."""

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
        facts: values of variants, by name.
    """

    mpi: SitePart | None
    blas: SitePart | None
    tools: Sequence[SitePart]
    compiler: Mapping[str, Any] | None = None
    scratches: Collection[str] = ()
    file_systems: Sequence[SitePart] = ()
    facts: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def drivers(self) -> list[str]:
        """The drivers of ROMIO for the scratches, those that every Unix has first."""
        with_headers = {each.package for each in self.file_systems}
        return [*GENERIC, *sorted(with_headers & set(self.scratches))]

    @property
    def without_headers(self) -> list[str]:
        """The parallel file systems of the scratches whose headers the system lacks."""
        return sorted({*self.scratches} & {*PARALLEL} - {*self.drivers})


def site_environment(kit: Mapping[str, Any], parts: SiteParts) -> dict[str, Any]:
    """Return the ``spack`` mapping of a site."""
    made = copy.deepcopy(dict(kit))
    made |= {key: _with_facts(made[key], parts.facts) for key in ("definitions", "specs")}
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
        packages["gcc"] = {
            "buildable": False,
            "require": [f"@{_version(parts.compiler)}"],
            "externals": [dict(parts.compiler)],
        }
    return made


def _with_facts(asked: Any, facts: Mapping[str, Scalar]) -> Any:
    """Return lists of specs in which each package has the facts as values of its variants."""
    if isinstance(asked, list):
        return [_with_facts(each, facts) for each in asked]
    if isinstance(asked, dict):
        return {key: _with_facts(each, facts) for key, each in asked.items()}
    spec = AbstractSpec.parse(asked)
    known = {name: f"{name}={facts[name]}" for name in facts if spec.value(name)}
    made = replace(spec, variants={**spec.variants, **known})
    return f"{made}" if known and spec.package else asked


def _choose_drivers(packages: dict[str, Any], parts: SiteParts) -> None:
    """Give the kit's Open MPI the drivers for the scratches; the recipe of MPICH has no choice."""
    drivers = parts.drivers
    chosen = {"romio": "+romio", "romio-filesystem": f"romio-filesystem={','.join(drivers)}"}
    chosen |= {name: f"{'+' if name in drivers else '~'}{name}" for name in PARALLEL}
    packages["mpi"]["require"] = [
        f"{replace(each, variants={**each.variants, **chosen})}"
        if each.package == "openmpi"
        else f"{each}"
        for each in abstract_specs(packages["mpi"]["require"])
    ]
    for each in parts.file_systems:
        if each.package == "lustre" and "lustre" in drivers:
            packages["lustre"] = _external(each)


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


TOOLS = (
    *("autoconf", "automake", "libtool", "m4", "perl", "pkgconf", "gmake", "file", "python"),
    *("diffutils", "findutils", "gettext", "tar", "sed", "cmake"),
)
"""Programs that only a build uses."""

ARCHIVE = Path("/usr/share/aclocal/ax_prog_cc_mpi.m4")
"""A file of autoconf-archive, which has no program by which Spack could find it."""


@dataclass(frozen=True)
class FoundTools:
    """Build tools, and the entries of `externals` of gcc."""

    tools: tuple[SitePart, ...]
    compilers: tuple[Mapping[str, Any], ...]


def find_tools(spack: SpackInstallation, folders: Sequence[str]) -> FoundTools:
    """Run ``spack external find`` with the folders of programs `folders`.

    Raises:
        BadInput: Spack failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        own = {**lock_variables(spack, folder), "PATH": ":".join(folders)}
        variables = environment_of("spack", own)
        words = ["external", "find", "gcc", *TOOLS]
        done = run_command(spack.command(*words), environment=variables)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise bad_input("spack external find", "", last, "build tools")
        packages = folder / "user/packages.yaml"
        text = packages.read_text(encoding="utf-8") if packages.is_file() else "packages: {}"
    return read_found(text, _archive_version())


def read_found(text: str, archive: str = "") -> FoundTools:
    """Return the tools and compilers of a ``packages.yaml`` of Spack, the newest of each tool.

    Args:
        archive: the version of the system's autoconf-archive; empty if it has none.
    """
    packages = yaml.load(text, Loader=yaml.CSafeLoader)["packages"]
    tools = [
        max(parts, key=lambda part: [int(number) for number in re.findall(r"\d+", part.version)])
        for name, entry in sorted(packages.items())
        if name in TOOLS and (parts := list(_parts(name, entry)))
    ]
    if archive:
        tools.append(SitePart("autoconf-archive", archive, "/usr", file=str(ARCHIVE)))
    compilers = packages.get("gcc", {}).get("externals", [])
    return FoundTools(tuple(tools), tuple(compilers))


def _parts(name: str, entry: Mapping[str, Any]) -> Iterator[SitePart]:
    for external in entry["externals"]:
        spec = AbstractSpec.parse(str(external["spec"]))
        if spec.version:
            rest = replace(spec, package="", version="")
            yield SitePart(name, spec.version, str(external["prefix"]), f"{rest}")


def _archive_version() -> str:
    if not ARCHIVE.is_file():
        return ""
    for command in (
        ["dpkg-query", "-W", "-f", "${Version}", "autoconf-archive"],
        ["rpm", "-q", "--qf", "%{VERSION}", "autoconf-archive"],
    ):
        if shutil.which(command[0]) and not (done := run_command(command)).returncode:
            return archive_version(done.stdout)
    return ""


def archive_version(package: str) -> str:
    """Return Spack's version of the version of a package: 2022.09.03 of ``20220903-3``."""
    digits = re.match(r"(\d{4})\.?(\d{2})\.?(\d{2})", package)
    return ".".join(digits.groups()) if digits else ""


def choose_compiler(
    found: Sequence[Mapping[str, Any]], kit: Mapping[str, Any] | None, choice: str
) -> Mapping[str, Any] | None:
    """Return the entry of the gcc to use; None for the one that the kit's file names.

    Args:
        kit: the kit's entry for this operating system; None if the kit has none.
        choice: ``gcc@<version>`` or a prefix; empty if the site chooses none.

    Raises:
        BadInput: the choice is not found, there is no gcc, or there are several.
    """
    listed = "; ".join(f"{each['spec']} ({each['prefix']})" for each in found) or "none"
    usable = [each for each in found if _version(each) and "fortran" in str(each["spec"])]
    if choice:
        usable = [each for each in found if choice in (f"gcc@{_version(each)}", each["prefix"])]
    elif kit and any(_same(each, kit) for each in usable):
        return None
    if len(usable) != 1:
        raise bad_input("--compiler", choice, listed, "one gcc with C, C++ and Fortran")
    return None if kit and _same(usable[0], kit) else usable[0]


def _version(entry: Mapping[str, Any]) -> str:
    return AbstractSpec.parse(str(entry["spec"])).version


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (_version(one), one["prefix"]) == (_version(other), other["prefix"])
