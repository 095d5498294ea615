"""Suites, all cases of one folder, and the alternative of a suite for an origin of programs.

docs/design/cases.md has the reasons for alternatives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from proofmark.cases.case import Case
from proofmark.cases.vocabulary import SUITES_FILE, Name, Parameters, Slug, Text
from proofmark.common.errors import KeyMistake, bad_input, nearest
from proofmark.common.grouping import flat
from proofmark.common.input_limits import MAX_REPEATS
from proofmark.common.shared_models import StrictModel

Item = TypeVar("Item")


class Required(StrictModel):
    """Metrics of a case that must be judged on each class of nodes.

    Attributes:
        where: parameters of the results that are required.
    """

    case: Slug
    metrics: Annotated[list[Name], Field(min_length=1)]
    where: Parameters = {}


class Alternative(StrictModel):
    """Cases of a suite that run only if the programs come from certain origins.

    Attributes:
        title: their programs, in words.
        origins: values of ``partition.provision_from``; the last alternative has none, and is for
            all other origins.
        cases: cases of the suite. Cases that no alternative names run with each of them.
    """

    title: Text
    origins: list[Slug] = []
    cases: Annotated[list[Slug], Field(min_length=1)]


class Suite(StrictModel):
    """A named selection of cases, and the number of repeats of each step.

    Attributes:
        kind: ``acceptance`` measures a machine for an acceptance. ``sanity`` only looks for faults:
            floors and peers suffice for exit code 0. ``practice`` finds nothing about a machine: it
            is never offered in place of another suite. ``study`` repeats the measurements of a
            paper. Lists of suites have neither of the last two; they run by their names.
        within_s: the seconds in which the suite ends on each machine: for it the plan repeats steps
            less often (`SuiteUse.least_repeats`).
        required_metrics: each needs PASS or FAIL in an acceptance by the suite.
        alternatives: for the origins of programs (`proofmark.cases.suite`).
    """

    title: Text
    kind: Literal["acceptance", "sanity", "practice", "study"] = "acceptance"
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    within_s: float | None = Field(default=None, gt=0)
    required_metrics: list[Required] = []
    alternatives: list[Alternative] = []

    @property
    def measures_all(self) -> bool:
        """Whether it measures a machine for an acceptance, and does not only look for faults."""
        return self.kind == "acceptance"

    @property
    def listed(self) -> bool:
        """Whether lists of suites have this one: it is part of an acceptance."""
        return self.kind in ("acceptance", "sanity")

    @model_validator(mode="after")
    def _one_for_each_origin(self) -> Self:
        if not self.alternatives:
            return self
        *named, last = self.alternatives
        if not named or last.origins or not all(each.origins for each in named):
            raise KeyMistake("at least two; each but the last has origins", "alternatives")
        origins = flat(each.origins for each in named)
        if twice := sorted({origin for origin in origins if origins.count(origin) > 1}):
            raise KeyMistake(f"each origin once: {', '.join(twice)}", "alternatives")
        return self


class Benchmarks(StrictModel):
    """All cases and suites of one folder.

    ``own_lines`` are the patterns of lines that only outputs of a case have, if several read alike.
    ``unnamed`` are the cases whose outputs do not differ from those of the case that they read as.
    ``alone`` are suites of one case with its name: what one measures on one node.
    """

    folder: Path
    cases: dict[str, Case]
    suites: dict[str, Suite]
    own_lines: dict[str, str] = {}
    unnamed: frozenset[str] = frozenset()
    alone: dict[str, Suite] = {}

    def case(self, name: str) -> Case:
        """Return the case `name`.

        Raises:
            BadInput: there is no such case; the message has the nearest name.
        """
        return _pick(self.cases, name, self.folder, "case", self.cases)

    def suite(self, name: str) -> Suite:
        """Return the suite `name`, or that of one case.

        Raises:
            BadInput: there is no such suite; the message has the nearest name.
        """
        return _pick(
            {**self.alone, **self.suites}, name, self.folder / SUITES_FILE, "suite", self.listed()
        )

    def listed(self) -> list[str]:
        """Return the names of the suites that lists of suites have."""
        return [name for name, suite in self.suites.items() if suite.listed]

    def members(self, suite: str) -> dict[str, Case]:
        """Return the cases of `suite`, by id; those of all its alternatives."""
        return {name: case for name, case in self.cases.items() if suite in case.suites}


def _pick(items: Mapping[str, Item], name: str, file: Path, key: str, named: Iterable[str]) -> Item:
    if name not in items:
        hint = nearest(name, items)
        raise bad_input(file, key, f"unknown {key} {name!r}{hint}", ", ".join(named))
    return items[name]


def members_from(
    benchmarks: Benchmarks, suite: str, origin: str, named: Collection[str] = ()
) -> dict[str, Case]:
    """Return the cases of `suite` that run with the programs of `origin`, by id.

    Args:
        benchmarks: all cases and suites.
        origin: the value of ``partition.provision_from``.
        named: the packages that the inventory names (``partition.preinstalled``), if they are those
            of the origin.

    Raises:
        BadInput: there is no such suite.
    """
    chosen = alternative(benchmarks, suite, origin, named)
    alternatives = benchmarks.suite(suite).alternatives
    others = set[str]().union(*(each.cases for each in alternatives if each is not chosen))
    others.difference_update(chosen.cases if chosen else ())
    members = benchmarks.members(suite)
    return {name: case for name, case in members.items() if name not in others}


def alternative(
    benchmarks: Benchmarks, suite: str, origin: str, named: Collection[str] = ()
) -> Alternative | None:
    """Return the alternative of `suite` for the programs of `origin`; None if it has none.

    If the inventory names packages and they do not suffice for the alternative of the origin,
    another one is returned for which they suffice. For the arguments see `members_from`.
    """
    alternatives = benchmarks.suite(suite).alternatives
    usual = next(
        (each for each in alternatives if origin in each.origins or not each.origins), None
    )
    if usual is None or not named:
        return usual
    cases = benchmarks.cases
    for each in [usual, *alternatives]:
        if {cases[name].package for name in each.cases if name in cases} <= set(named):
            return each
    return usual
