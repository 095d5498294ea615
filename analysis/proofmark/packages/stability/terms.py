"""What a contract says about the stability phase: the key ``stability`` of ``contract.yml``.

The model of a contract loads this module while it is made, so it imports no room above `common`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import KeyMistake
from proofmark.common.shared_models import StrictModel

if TYPE_CHECKING:
    from proofmark.site.contract_document import Contract

JobCause = Literal["node", "fabric", "file-system", "scheduler", "program", "unknown"]
"""Why a job of a stability run failed."""
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
            raise KeyMistake("a smaller failure rate than bad", "good")
        return self


class ContractKeys(StrictModel):
    """The keys of a contract that this package adds.

    Attributes:
        stability: the terms of the phase ``stability``; None if the parties agreed on none.
    """

    stability: StabilityTerms | None = Field(default=None, exclude_if=lambda terms: terms is None)


def terms_of(contract: Contract | None) -> StabilityTerms | None:
    """Return the terms that the parties agreed on; None without terms or a contract."""
    return contract.stability if isinstance(contract, ContractKeys) else None
