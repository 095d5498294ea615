"""External programs by ``requirements/programs.yml``: who needs them, and their Debian packages.

The file describes the scripts that stand in this package, so it is read from the same checkout.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.plan.plan import Plan

FILE = Path(__file__).parents[3] / "requirements" / "programs.yml"
SCRIPT = "missing-programs.sh"
"""The file of ``machine/shell/`` that prints which of its words the node cannot execute."""
BOUND_MEMORY = "memory is bound"
"""The condition of programs that only steps with bound memory call."""


Place = Literal["controller", "node", "step", "rehearsal", "tests"]


class Called(StrictModel):
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
        """The Debian package; empty where a program comes from elsewhere."""
        return self.debian or self.essential


class Programs(StrictModel):
    """The whole of ``programs.yml``."""

    programs: dict[str, Called]


def called(file: Path = FILE) -> dict[str, Called]:
    """Return every program that is called, by its name.

    Raises:
        BadInput: the file is wrong.
    """
    return load(file, Programs).programs


def step_programs(programs: Mapping[str, Called], *, bound: bool) -> dict[str, Called]:
    """Return what a node must have to run steps; `bound` says whether one of them binds memory."""
    conditions = {"", BOUND_MEMORY} if bound else {""}
    return {
        name: each
        for name, each in programs.items()
        if "step" in each.needed and each.package and each.only in conditions
    }


def plan_programs(plan: Plan) -> dict[str, str]:
    """Return what a node must have to run the steps of `plan`: the Debian package by program.

    Raises:
        BadInput: ``programs.yml`` is wrong.
    """
    bound = any(step.membind for step in plan.steps())
    return {name: each.package for name, each in step_programs(called(), bound=bound).items()}


def lacking(printed: str, packages: Mapping[str, str]) -> str:
    """Return what a node cannot execute, from what `SCRIPT` printed; empty if nothing is missing.

    `packages` are the Debian packages of programs, by name.
    """
    missing: dict[str, list[str]] = {}
    for line in printed.splitlines():
        why, _, name = line.removeprefix("! ").partition(": ")
        if line.startswith("! ") and name:
            package = f" (Debian: {packages[name]})" if name in packages else ""
            missing.setdefault(why, []).append(f"{name}{package}")
    return "; ".join(f"{why}: {', '.join(names)}" for why, names in missing.items())
