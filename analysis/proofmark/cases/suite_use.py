"""How a case runs in a suite: its sweep, search and load."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from proofmark.cases.vocabulary import Name, Scalar, Slug, Sweep
from proofmark.common.input_limits import MAX_REPEATS, MAX_ROUNDS
from proofmark.common.shared_models import StrictModel

Scope = Literal["job", "each-node", "each-pair"]
"""What one step measures: its nodes together, each node alone, or disjoint pairs of nodes."""


class SearchRule(StrictModel):
    """The search for the best point of a sweep during the run (docs/design/cases.md).

    Points that differ only in ``axes`` are one search. ``stop: no-better`` varies one axis after
    another, with the best values of the others, until no axis gives a better value. ``stop:
    no-growth`` has one axis, and goes up its values until the metric stops growing.

    Attributes:
        metric: a metric of the case.
        axes: axes of the sweep, in the order in which they are varied.
        least_gain: the least relative gain that counts, in addition to the noise of the repeats.
        facts: facts of the partition that a site can accept: expressions over the values of the
            best step.
    """

    metric: Name
    axes: Annotated[list[Name], Field(min_length=1)]
    stop: Literal["no-better", "no-growth"] = "no-better"
    least_gain: float = Field(default=0.01, ge=0, lt=1)
    facts: dict[Name, Scalar] = {}

    @model_validator(mode="after")
    def _one_ordered_axis(self) -> Self:
        if len(set(self.axes)) < len(self.axes):
            raise ValueError("axes: each axis once")
        if self.stop == "no-growth" and len(self.axes) != 1:
            raise ValueError("axes: exactly one if stop is no-growth")
        return self


class Load(StrictModel):
    """A program that runs beside a step while it measures (docs/design/validity.md).

    Attributes:
        case: the case that defines the program.
        place: ``same-nodes``: on the cores of the step's nodes that the step leaves free;
            ``other-nodes``: on the nodes of the partition that the step leaves free.
        sweep: axes that replace those of the case. The load has exactly one point. ``nodes`` is
            the number of its nodes, and ``cores`` the number of cores that it may use on each.
        let: values that replace those of the case. The program must run until the kit ends it.
        warm_up_s: seconds from the start of its last rank to the start of the measured program.
        baseline: whether each step is first measured on the same nodes without the load.
    """

    case: Slug
    place: Literal["same-nodes", "other-nodes"]
    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    warm_up_s: float = Field(default=5, ge=0, le=600)
    baseline: bool = False


class SuiteUse(StrictModel):
    """How a case runs in one suite. An axis of its sweep replaces that of the case.

    ``when`` is evaluated once for the machine: if it is false, the suite leaves out this use.
    ``where`` selects points, in addition to the ``where`` of the case. ``modes`` are names of
    firmware modes; a partition with none of them runs the use in its current mode. ``repeats`` is
    the number of times that each step runs in each repeat of the suite. ``least_repeats`` is the
    number to which `Suite.within_s` may reduce ``repeats``. ``load`` is a program that runs beside
    each step.

    ``pairs`` chooses the pairs of the scope ``each-pair``: each node with its two neighbours in the
    list, or the ``rounds`` of `proofmark.plan.pairings.rounds` (docs/packages/fabric.md), of which
    all pairs measure at the same time; if they are ``alone``, only pairs without a common switch.
    ``rounds`` is the largest number of rounds, and of waves of pairs that are alone.

    ``search`` runs only the points that a search needs. ``name`` is the name of the use for
    ``reads`` of another use of the case: each step of that use reads the files that the step of the
    same point wrote, in another job and on other nodes (docs/packages/fabric.md).
    """

    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    when: str | None = None
    where: str | None = None
    modes: list[Slug] = []
    scope: Scope = "job"
    pairs: Literal["neighbours", "rounds", "alone"] = "neighbours"
    rounds: int = Field(default=16, ge=1, le=MAX_ROUNDS)
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    least_repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    search: SearchRule | None = None
    name: Slug | None = None
    reads: Slug | None = None
    load: Load | None = None

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        for key in ("search", "name", "reads"):
            if getattr(self, key) is not None and self.scope != "job":
                raise ValueError(f"{key}: only accepted if scope is job")
        if self.name is not None and self.reads is not None:
            raise ValueError("name and reads: a use has only one of them")
        if self.load and self.load.place == "other-nodes" and self.scope != "job":
            raise ValueError("load.place: other-nodes is only accepted if scope is job")
        return self

    @property
    def in_rounds(self) -> bool:
        """Whether its pairs are those of rounds, and have the parameter `MEASURED`."""
        return self.pairs != "neighbours"

    @model_validator(mode="after")
    def _of_pairs(self) -> Self:
        if self.in_rounds and self.scope != "each-pair":
            raise ValueError(f"pairs: {self.pairs} is only accepted if scope is each-pair")
        if not self.in_rounds and "rounds" in self.model_fields_set:
            raise ValueError("rounds: only accepted if pairs is rounds or alone")
        return self


def _as_list(given: Any) -> Any:
    return [given] if isinstance(given, dict) else given


Uses = Annotated[
    list[SuiteUse],
    Field(min_length=1),
    BeforeValidator(_as_list, json_schema_input_type=SuiteUse | list[SuiteUse]),
]
"""One use, or several uses that differ in more than one sweep can express."""
