"""The terms of the stability phase of an acceptance, and the causes of failed jobs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from proofmark.common.strict_model import StrictModel

JobCause = Literal["node", "fabric", "file-system", "scheduler", "program", "unknown"]
"""Why a job of a stability run failed."""
CAUSES: tuple[JobCause, ...] = (
    *("node", "fabric", "file-system", "scheduler", "program", "unknown"),
)
MAX_DAYS = 3660.0


class StabilityTerms(StrictModel):
    """What the parties agreed for the stability phase. Its limits are items of the contract.

    Attributes:
        days: how long the run lasts; None: ``-e stability_days=`` states it.
        load: the share of the nodes that jobs use.
        restart_on: the causes of failed jobs after which the time begins again.
        good: the failure rate of a machine that the vendor wants to be accepted, as a multiple of
            the rate that an item allows: at it the producer's risk is stated.
        bad: the same of a machine that the buyer wants to be refused: the consumer's risk.
    """

    days: Annotated[float, Field(gt=0, le=MAX_DAYS)] | None = None
    load: Annotated[float, Field(gt=0, le=1)] = 0.9
    restart_on: list[JobCause] = []
    good: Annotated[float, Field(gt=0)] = 0.5
    bad: Annotated[float, Field(gt=0)] = 2.0

    @model_validator(mode="after")
    def _good_is_better(self) -> Self:
        if self.good >= self.bad:
            raise ValueError("good: a smaller failure rate than bad")
        return self


def weaker_terms(
    agreed: StabilityTerms, days: float, load: float, restart_on: Collection[JobCause]
) -> list[tuple[str, str, str]]:
    """Return which terms of a run are weaker than `agreed`: the name, the run's, the agreed one.

    A run of no stated duration (0 days) is weaker than none.
    """
    found = []
    if days and days < (agreed.days or 0.0):
        found.append(("days", f"{days:.4g} days", f"{agreed.days:g} days"))
    if load < agreed.load:
        found.append(("load", f"{load:g}", f"{agreed.load:g}"))
    if lacking := [cause for cause in agreed.restart_on if cause not in restart_on]:
        found.append(("restart_on", f"not {', '.join(lacking)}", ", ".join(agreed.restart_on)))
    return found
