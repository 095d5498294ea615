"""The packages that a provider installed or found, in one form for all providers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field

from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load

PROGRAM_FOLDERS = ("bin", "libexec")
"""Folders of a prefix that contain programs; those of OSU are deep in the second."""


class DerivedPart(StrictModel):
    """A part of a program that is not the kit's.

    Attributes:
        package: Spack's name.
        role: ``mpi`` or ``blas``; empty for other parts.
        kit: name and version in the kit's lock; empty if the kit has no such part.
        version: the version that was used.
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
        version: the version of the package.
        spec: the request to the provider: a Spack spec, a module, or the names of modules.
        hash: the hash of Spack, empty for other providers.
        target: archspec's name of the processor it was built for; empty if not known.
        prefix: the folder of the package.
        programs: absolute path by the name that the cases use.
        environment: the variables that every program of the package needs.
        site_parts: its parts that are not the kit's; None if it is exactly the kit's program.
        findings: what the site should know.
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

    `easybuild_gcc` is the version of gcc in the toolchain of the easystack.
    """

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
    if mistakes:
        raise BadInput(*mistakes)
    return {name: str(paths[file]) for name, file in wanted.items()}


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = sorted(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "") or "programs"
