"""Reads ``requirements/programs.yml``: the external programs, and their Debian packages.

The file describes the scripts of this package, so it is read from the same checkout
or collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import bad_input
from proofmark.common.kit import code_folder
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load

SCRIPT = "missing-programs.sh"
"""The file of ``machine/shell/`` that prints those of its arguments that cannot be executed."""
BOUND_MEMORY = "memory is bound"
"""The condition of a program that only steps with bound memory call."""


Place = Literal["controller", "node", "step", "rehearsal", "tests"]


class CalledProgram(StrictModel):
    """One program; the keys are explained in ``programs.yml``."""

    debian: str = ""
    essential: str = ""
    python: bool = False
    site: str = ""
    needed: tuple[Place, ...] = Field(min_length=1)
    only: str = ""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if sum(map(bool, (self.debian, self.essential, self.python, self.site))) != 1:
            raise ValueError("one of debian, essential, python and site")
        return self

    @property
    def package(self) -> str:
        """The Debian package; empty if no Debian package has the program."""
        return self.debian or self.essential


class Programs(StrictModel):
    """The content of ``programs.yml``."""

    programs: dict[str, CalledProgram]


def called(file: Path | None = None) -> dict[str, CalledProgram]:
    """Return every program that the kit calls, by its name. None is the file of this code.

    Raises:
        BadInput: the file is wrong.
    """
    return load(file or code_folder() / "requirements" / "programs.yml", Programs).programs


def step_programs(*, bound_memory: bool) -> dict[str, CalledProgram]:
    """Return the programs that a node needs for steps, by name.

    Args:
        bound_memory: whether a step binds memory.

    Raises:
        BadInput: ``programs.yml`` is wrong.
    """
    conditions = {"", BOUND_MEMORY} if bound_memory else {""}
    return {
        name: program
        for name, program in called().items()
        if "step" in program.needed and program.package and program.only in conditions
    }


def known_packages(names: Iterable[str]) -> list[str]:
    """Return `names`, which are Debian packages that steps need; root installs them.

    Raises:
        BadInput: ``programs.yml`` does not have one of them, or is wrong.
    """
    known = {program.debian for program in called().values() if "step" in program.needed}
    asked = sorted(set(names))
    if unknown := [name for name in asked if name not in known - {""}]:
        found = ", ".join(map(repr, unknown))
        raise bad_input("RUN", "step_packages", found, ", ".join(sorted(known - {""})))
    return asked


def lacking(printed: str, programs: Mapping[str, CalledProgram]) -> str:
    """Return the programs that a node cannot execute as one text; empty if it can execute all.

    Args:
        printed: the output of `SCRIPT` on the node.
        programs: the known programs, by name.
    """
    missing: dict[str, list[str]] = {}
    for line in printed.splitlines():
        reason, _, name = line.removeprefix("! ").partition(": ")
        if line.startswith("! ") and name:
            package = f" (Debian: {programs[name].package})" if name in programs else ""
            missing.setdefault(reason, []).append(f"{name}{package}")
    return "; ".join(f"{reason}: {', '.join(names)}" for reason, names in missing.items())
