"""The environments of the checkout: a folder of ``environments/`` for each architecture.

An environment has the files of the providers. ``system.yml`` lists packages of the distribution.
Programs of the kit itself are one C file each, which the controller compiles for every provider:
they use only the C library and OpenMP, and a change of one needs no new lock of Spack
(docs/design/validity.md).
"""

from __future__ import annotations

import hashlib
import platform
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load, parse_yaml
from proofmark.software.installed import Installed, Provided, spellings
from proofmark.software.spack.lock_check import similar_environment

FILES = ("spack.yaml", "system.yml")
"""The files of the providers in an environment; it has one or several of them."""
GENERIC = "local"
"""The environment for a processor without one of its own."""
COMMON = "common"
"""The folder with the files that several environments share."""


def environments_with(folder: Path, *files: str) -> list[str]:
    """Return the environments in `folder` that have one of `files`."""
    found = set()
    for file in files:
        found |= {path.parent.name for path in folder.glob(f"*/{file}")}
    return sorted(found - {COMMON})


def check_environment(folder: Path, name: str) -> None:
    """Refuse a value of ``partition.environment`` that is no environment in `folder`.

    Raises:
        BadInput: there is no such environment.
    """
    if name not in (known := environments_with(folder, *FILES)):
        found = f"{name!r}{similar_environment(folder, name)}"
        raise bad_input("environment", "", found, ", ".join(known))


def file_of_system(folder: Path, name: str) -> Path:
    """Return the ``system.yml`` of the environment `name`, or else that of `GENERIC`.

    The packages of a distribution are built for all processors of its architecture.
    """
    own = folder / name / "system.yml"
    return own if own.is_file() else folder / GENERIC / "system.yml"


SUITE = Path("common/suite.yaml")
"""In ``environments/``: the packages of Spack and their versions."""
SOURCES = Path("common/sources")
"""In ``environments/``: a folder for each package, with the C file of its program."""
COMPILE = ("gcc", "-std=c11", "-O2", "-fopenmp")
TIMEOUT_S = 120.0


def own_packages(environments: Path) -> frozenset[str]:
    """Return the packages that the kit compiles itself, by the names of the cases."""
    return frozenset(path.name for path in (environments / SOURCES).glob("*/"))


def own_prefix(environments: Path, package: str, prefixes: Path) -> Path:
    """Return the folder of a package below `prefixes`. Other sources have another folder.

    Raises:
        BadInput: the kit has no such package.
    """
    digest = hashlib.sha256(f"{COMPILE} {platform.machine()}".encode())
    digest.update(_source(environments, package).read_bytes())
    return prefixes / f"{package}-{digest.hexdigest()[:12]}"


def build(environments: Path, package: str, prefixes: Path) -> Provided:
    """Compile the program of a package, if that is not done, and return the package.

    The program is for any processor of the architecture of this machine.

    Raises:
        BadInput: the kit has no such package, or the program cannot be compiled.
    """
    source, prefix = _source(environments, package), own_prefix(environments, package, prefixes)
    program = prefix / "bin" / source.stem
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=prefix) as folder:
            made = Path(folder) / program.name
            _compile([*COMPILE, f"{source}", "-o", f"{made}"], source)
            made.rename(program)
    return Provided(
        version=prefix.name.rpartition("-")[2],
        spec=" ".join(COMPILE),
        target=platform.machine(),
        prefix=f"{prefix}",
        programs={source.stem: f"{program}"},
    )


def with_own(
    installed: Installed, environments: Path, packages: Collection[str], prefixes: Path
) -> Installed:
    """Return `installed` with the own `packages`, which are compiled if that is not done.

    Raises:
        BadInput: see `build`.
    """
    built = {name: build(environments, name, prefixes) for name in sorted(packages)}
    return installed.model_copy(update={"packages": {**installed.packages, **built}})


def not_built(environments: Path, packages: Iterable[str], prefixes: Path) -> list[str]:
    """Return those of the own `packages` that are not compiled."""
    return [
        name
        for name in sorted(packages)
        if not any(own_prefix(environments, name, prefixes).glob("bin/*"))
    ]


def _source(environments: Path, package: str) -> Path:
    found = sorted((environments / SOURCES / package).glob("*.c"))
    if len(found) != 1:
        known = ", ".join(sorted(own_packages(environments)))
        raise bad_input(environments / SOURCES, package, f"{len(found)} C files", f"one of {known}")
    return found[0]


def _compile(words: list[str], source: Path) -> None:
    """Raise BadInput if `words` do not compile `source`."""
    accepted = "a C compiler with OpenMP and the headers of the C library"
    try:
        done = run_command(words, timeout_s=TIMEOUT_S)
    except FileNotFoundError:
        found = f"no {words[0]} on the controller"
        raise bad_input(source, "", found, accepted) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        found = f"{words[0]} ended with {done.returncode}: {last}"
        raise bad_input(source, "", found, accepted)


PREFIX = "{prefix}"
"""In paths and variables: the folder into which pip installs."""

DebianName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]


class Pip(StrictModel):
    """A lock of hashes, relative to the checkout, and one distribution in it."""

    lock: str = Field(pattern=r"^[^/].*\.txt$")
    distribution: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")


class Source(StrictModel):
    """The source of one package of the cases; ``system.yml`` explains the keys."""

    apt: tuple[DebianName, ...] = ()
    pip: Pip | None = None
    own: bool = False
    programs: dict[str, str] = Field(min_length=1)
    environment: dict[str, str] = {}
    mpi: Literal["", "openmpi", "intel", "mpich", "mvapich"] = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.apt and self.pip is None:
            raise ValueError("a package needs apt, pip or both")
        if self.own and self.pip is not None:
            raise ValueError("own: only accepted without pip, because each has a prefix")
        for text in (*self.programs.values(), *self.environment.values()):
            if braces := set(re.findall(r"\{.*?\}", text)) - {PREFIX}:
                raise ValueError(f"{', '.join(sorted(braces))}: only {PREFIX} is replaced")
            if PREFIX in text and self.pip is None and not self.own:
                raise ValueError(f"{text}: {PREFIX} needs pip or own")
        for path in self.programs.values():
            if not path.startswith(("/", f"{PREFIX}/")):
                raise ValueError(f"{path}: not an absolute path")
        return self

    def paths(self, prefix: str) -> dict[str, str]:
        """Return the paths of the programs, by the names that the cases use."""
        return {name: path.replace(PREFIX, prefix) for name, path in self.programs.items()}

    def variables(self, prefix: str) -> dict[str, str]:
        """Return the variables that every program of the package needs."""
        return {name: value.replace(PREFIX, prefix) for name, value in self.environment.items()}


class System(StrictModel):
    """The content of a ``system.yml``."""

    packages: dict[str, Source]


class PlannedPackage(StrictModel):
    """One package of a plan for the role `provision`.

    `lock` is empty if pip installs nothing. `prefix` is empty if neither pip installs nor the kit
    compiles something. `own` is whether the kit compiles it.
    """

    package: str
    apt: tuple[str, ...]
    lock: str
    prefix: str
    own: bool
    programs: tuple[str, ...]
    environment: dict[str, str]


def system_needs(
    environments: Path, environment: str, packages: Iterable[str], prefixes: Path
) -> list[PlannedPackage]:
    """Return the entries of `packages` in the ``system.yml`` of an environment.

    The folders of pip are ``<prefixes>/<distribution>``; for programs of the kit see `own_prefix`.

    Raises:
        BadInput: the file is wrong, or has no entry of a package.
    """
    entries = []
    file = file_of_system(environments, environment)
    for name, source in sources_of(file, packages).items():
        prefix = f"{prefixes / source.pip.distribution}" if source.pip else ""
        if source.own:
            prefix = f"{own_prefix(environments, name, prefixes)}"
        entry = PlannedPackage(
            package=name,
            apt=source.apt,
            lock=source.pip.lock if source.pip else "",
            prefix=prefix,
            own=source.own,
            programs=tuple(source.paths(prefix).values()),
            environment=source.variables(prefix),
        )
        entries.append(entry)
    return entries


def programs_of_system(environments: Path, name: str) -> Mapping[str, Collection[str]]:
    """Return the programs in the ``system.yml`` of the environment `name`, by package.

    Raises:
        BadInput: the file is wrong.
    """
    packages = load(file_of_system(environments, name), System).packages
    return {package: source.programs.keys() for package, source in packages.items()}


def provided(environments: Path) -> dict[str, Collection[str]]:
    """Return all packages of `environments`, each with its programs; empty if they are not listed.

    A checkout without the list of the packages has none.

    Raises:
        BadInput: a file is wrong.
    """
    if not (environments / SUITE).is_file():
        return {}
    every = parse_yaml((environments / SUITE).read_text(encoding="utf-8"), SUITE)["packages"]
    known: dict[str, Collection[str]] = dict.fromkeys((*every, *own_packages(environments)), ())
    for name in environments_with(environments, "system.yml"):
        known |= programs_of_system(environments, name)
    return known | spellings(environments).programs


def sources_of(file: Path, packages: Iterable[str]) -> dict[str, Source]:
    """Return the sources of `packages` in the ``system.yml`` `file`.

    Raises:
        BadInput: the file is wrong, or has no entry of a package.
    """
    known = load(file, System).packages
    for name in packages:
        if name not in known:
            found = f"no package {name!r}"
            raise bad_input(file, "packages", found, ", ".join(known))
    return {name: known[name] for name in packages}
