"""The request to a provider, and the packages that it installed or found, in one form for all."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pydantic import Field

from proofmark.common.errors import InputError, nearest, refuse
from proofmark.common.message import Message
from proofmark.common.processes import is_secret
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load
from proofmark.site.partition import Preinstalled, Toolchain

PROGRAM_FOLDERS = ("bin", "libexec")
"""Folders of a prefix that contain programs; those of OSU are deep in the second."""


class DerivedPart(StrictModel):
    """A part of a program that is not the kit's.

    Attributes:
        role: ``mpi`` or ``blas``; empty for other parts.
        kit: name and version in the kit's lock; empty if the kit has no such part.
        prefix: the folder of the site's installation; empty if Spack built it.
    """

    package: str
    role: str = ""
    kit: str = ""
    version: str
    prefix: str = ""

    def __str__(self) -> str:
        """Return package, version and place, and what the kit has instead."""
        place = f"of the site in {self.prefix}" if self.prefix else "built by Spack"
        instead = f", instead of {self.kit}" if self.kit else ""
        role = f"{self.role.upper()} " if self.role else ""
        return f"{role}{self.package} {self.version} {place}{instead}"


class Provided(StrictModel):
    """One package of a provider.

    Attributes:
        spec: the request to the provider: a Spack spec, a module, or the names of modules.
        target: archspec's name of the processor it was built for; empty if not known.
        site_parts: its parts that are not the kit's; None if it is exactly the kit's program.
        built: how Spack built it, by ``variants``, ``flags``, ``compiler``, ``mpi`` and ``blas``;
            empty for other providers.
    """

    version: str
    spec: str = ""
    hash: str = ""
    target: str = ""
    prefix: str
    programs: dict[str, str]
    environment: dict[str, str] = {}
    site_parts: tuple[DerivedPart, ...] | None = None
    findings: tuple[Message, ...] = ()
    built: dict[str, str] = Field(default={}, exclude_if=lambda given: not given)


class Installed(StrictModel):
    """All packages of a plan, by the name that the cases use: ``installed.json``."""

    origin: str
    packages: dict[str, Provided]

    def probe_requests(self) -> list[dict[str, object]]:
        """Return the programs that the role `provision` probes, and their variables, by package."""
        return [
            {
                "package": name,
                "programs": sorted(package.programs.values()),
                "environment": package.environment,
            }
            for name, package in self.packages.items()
        ]


class Spelling(StrictModel):
    """The names that a builder uses for a package and its programs, if the cases use others."""

    name: str = ""
    programs: dict[str, str] = {}


class Spellings(StrictModel):
    """The file ``environments/common/programs.yml``.

    `easybuild_gcc` is the version of gcc in the toolchain of the easystack. `programs` are all
    programs of a package. `mpi_wrappers` has the packages whose builds call a compiler wrapper.
    """

    programs: dict[str, tuple[str, ...]]
    mpi_wrappers: dict[str, tuple[str, ...]]
    easybuild_gcc: str
    spack: dict[str, Spelling]
    easybuild: dict[str, Spelling]


def spellings(environments: Path) -> Spellings:
    """Return the names that the builders use for packages and programs.

    Raises:
        BadInput: the file is wrong.
    """
    return load(environments / "common/programs.yml", Spellings)


def with_facts(file: str, facts: Mapping[str, object]) -> str:
    """Return the name of a program of a builder, with the value of each ``{fact}``."""
    return re.sub(r"\{(\w+)\}", lambda key: str(facts.get(key[1], key[0])), file)


def find_programs(prefix: Path, names: Iterable[str], files: Mapping[str, str]) -> dict[str, str]:
    """Return the absolute paths of the programs `names` under `prefix`, by name.

    `files` has the name of the file, by program, if the two names differ.

    Raises:
        BadInput: programs are missing or not executable; names all of them.
    """
    paths: dict[str, Path] = {}
    for folder in PROGRAM_FOLDERS:
        for path in sorted((prefix / folder).rglob("*")):
            if path.is_file() and os.access(path, os.X_OK):
                paths[path.name] = path
    wanted = {name: files.get(name, name) for name in sorted(names)}
    mistakes = [
        InputError(str(prefix), name, f"no program {file!r}{nearest(file, paths)}", _some(paths))
        for name, file in wanted.items()
        if file not in paths
    ]
    refuse(mistakes)
    return {name: str(paths[file]) for name, file in wanted.items()}


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = sorted(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "") or "programs"


def preinstalled(
    entries: Mapping[str, Preinstalled],
    programs: Mapping[str, Collection[str]],
    module_output: Mapping[str, str],
) -> Installed:
    """Return the packages in `programs` as the inventory describes them.

    Raises:
        BadInput: the inventory does not name a package.
    """
    found = "no entry for this package"
    accepted = f"its prefix and version (entries: {', '.join(entries) or 'none'})"
    lacking = (name for name in programs if name not in entries)
    refuse(InputError("partition.preinstalled", name, found, accepted) for name in lacking)
    packages = {
        name: _provided(name, entries[name], programs[name], module_output.get(name, ""))
        for name in programs
    }
    return Installed(origin="preinstalled", packages=packages)


def _provided(
    name: str, entry: Preinstalled, programs: Collection[str], module_output: str
) -> Provided:
    paths = {name: program_path(entry, name) for name in programs}
    variables, secrets = module_variables(module_output)
    hidden = sorted(set(secrets) - entry.environment.keys())
    findings = (
        [Message("modules-secret", package=name, variables=", ".join(hidden))] if hidden else []
    )
    return Provided(
        version=entry.version,
        spec=" ".join(entry.modules),
        target=entry.target,
        prefix=entry.prefix,
        programs=paths,
        environment={**variables, **entry.environment},
        findings=tuple(findings),
    )


def program_path(entry: Preinstalled, program: str) -> str:
    """Return the path of `program` of a package of the site."""
    return str(PurePosixPath(entry.prefix) / entry.programs.get(program, f"bin/{program}"))


def module_variables(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables that modules set or change, and the names of secrets among them.

    `text` is the output of ``modules.sh``. It has no values of secrets.
    """
    variables: dict[str, str] = {}
    secrets: list[str] = []
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")
        name, sign, value = rest.partition("=")
        if kind == "secret" or (kind == "set" and is_secret(name)):
            secrets.append(name)
        elif kind == "set" and sign:
            variables[name] = value.replace("\x01", "\n")
    return variables, secrets


@dataclass(frozen=True)
class Sources:
    """Sources of Spack and of what it installs; None is the public address.

    Attributes:
        bundle: an unpacked bundle; nothing then comes from the network.
        upstream: whether the addresses of the recipes are asked too, if `bundle` or `mirror` is
            given.
    """

    spack: Path | None = None
    packages: Path | None = None
    bundle: Path | None = None
    mirror: Path | None = None
    upstream: bool = False

    @property
    def offline(self) -> bool:
        """Whether the sources of programs come from `bundle` and `mirror` only."""
        return bool(self.bundle or self.mirror) and not self.upstream


@dataclass(frozen=True)
class ProvisionRequest:
    """The programs that are needed, and the inputs of a provider.

    Attributes:
        arch: the environment's folder in ``environments/``.
        sources: the sources of Spack; EasyBuild reads only its mirror.
        site_locks: the folder of the site's own locks, ``<arch>/<os>/spack.lock``.
        jobs: the number of processes of a build; 0 is the default of the builder.
        facts: the facts of the partition, for the names of programs.
        module_output: the output of ``modules.sh``, by package.
    """

    kit: Path
    arch: str
    programs: Mapping[str, Collection[str]]
    prefixes: Path
    sources: Sources = field(default_factory=Sources)
    site_locks: Path | None = None
    bundle: Path | None = None
    toolchain: Toolchain = Toolchain.FOSS
    jobs: int = 0
    facts: Mapping[str, object] = field(default_factory=dict)
    preinstalled: Mapping[str, Preinstalled] = field(default_factory=dict)
    module_output: Mapping[str, str] = field(default_factory=dict)
