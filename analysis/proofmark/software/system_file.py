"""The packages of the distribution in ``environments/<environment>/system.yml``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import bad_input
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.software.environments import file_of_environment
from proofmark.software.own_programs import own_prefix

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


def system_needs(file: Path, packages: Iterable[str], prefixes: Path) -> list[PlannedPackage]:
    """Return the entries of `packages` in the ``system.yml`` `file`.

    The folders of pip are ``<prefixes>/<distribution>``; for programs of the kit see `own_prefix`.

    Raises:
        BadInput: the file is wrong, or has no entry of a package.
    """
    entries = []
    for name, source in sources_of(file, packages).items():
        prefix = f"{prefixes / source.pip.distribution}" if source.pip else ""
        if source.own:
            prefix = f"{own_prefix(file.parents[1], name, prefixes)}"
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
        BadInput: there is no such file, or it is wrong.
    """
    packages = load(file_of_environment(environments, name, "system.yml"), System).packages
    return {package: source.programs.keys() for package, source in packages.items()}


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
