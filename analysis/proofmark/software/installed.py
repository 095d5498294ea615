"""What an origin provided: the one form in which all of them answer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.software.software import Origin

PROGRAM_FOLDERS = ("bin", "libexec")
"""Where a prefix keeps programs; OSU's lie deep in the second."""


class Provided(StrictModel):
    """One package as it was provided.

    Attributes:
        spec: what was asked for, in the words of the origin.
        hash: Spack's, empty where the origin has none.
        target: archspec's name of the processor it was built for; empty where nobody told.
        programs: absolute path by the name that the cases use.
        environment: what every program of it needs.
        findings: what the site should know, in whole sentences.
    """

    version: str
    spec: str = ""
    hash: str = ""
    target: str = ""
    prefix: str
    programs: dict[str, str]
    environment: dict[str, str] = {}
    findings: tuple[str, ...] = ()


class Installed(StrictModel):
    """All the packages of a plan, by the name that the cases use."""

    origin: Origin
    packages: dict[str, Provided]

    def needs(self) -> list[dict[str, object]]:
        """Return what the role `provision` probes: programs and their environment, by package."""
        return [
            {
                "package": name,
                "programs": sorted(package.programs.values()),
                "environment": package.environment,
            }
            for name, package in self.packages.items()
        ]


class Spelling(StrictModel):
    """What an origin calls a package and its programs, where it is not what the cases call them."""

    name: str = ""
    programs: dict[str, str] = {}


class Spellings(StrictModel):
    """The file ``environments/common/programs.yml``; `optarch` is EasyBuild's, by environment."""

    optarch: dict[str, str]
    spack: dict[str, Spelling]
    easybuild: dict[str, Spelling]


def spellings(environments: Path) -> Spellings:
    """Read how the builders spell packages and programs.

    Raises:
        BadInput: the file is wrong.
    """
    return load(environments / "common/programs.yml", Spellings)


def find_programs(prefix: Path, names: Iterable[str], spelt: Mapping[str, str]) -> dict[str, str]:
    """Return where the programs `names` lie under `prefix`, by name.

    `spelt` is the file's name where it is another than the program's.

    Raises:
        BadInput: a program is not there, or cannot be executed; all such are named.
    """
    there = {
        path.name: path
        for folder in PROGRAM_FOLDERS
        for path in sorted((prefix / folder).rglob("*"))
        if path.is_file() and os.access(path, os.X_OK)
    }
    wanted = {name: spelt.get(name, name) for name in sorted(names)}
    mistakes = [
        InputError(str(prefix), name, f"no program {file!r}{nearest(file, there)}", _some(there))
        for name, file in wanted.items()
        if file not in there
    ]
    if mistakes:
        raise BadInput(*mistakes)
    return {name: str(there[file]) for name, file in wanted.items()}


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = sorted(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "") or "programs"
