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
SCRIPT = "missing-commands.sh"
"""The file of ``machine/shell/`` that prints which of its words are no program of the node."""
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


def lacking(printed: str, programs: Mapping[str, str]) -> str:
    """Return the programs that a node lacks, with their packages, from what `SCRIPT` printed."""
    missing = [line.removeprefix("! ") for line in printed.splitlines() if line.startswith("! ")]
    return ", ".join(f"{name} (Debian: {programs[name]})" for name in missing if name in programs)
