"""Whether expected values judge, as a site decides it."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from proofmark.common.strict_model import StrictModel

OFF = "off"


class JudgeExpected(StrictModel):
    """The key ``expected`` of a partition: ``off``, or settings.

    Attributes:
        wanted: whether a figure below its expected value by more than the tolerance is FAIL.
        tolerance: a part of each expected value; None is the tolerance of its source.
    """

    wanted: bool = True
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _off(cls, given: Any) -> Any:
        # YAML 1.1 reads off as false.
        return {"wanted": False} if given == OFF or given is False else given

    @model_validator(mode="after")
    def _one(self) -> Self:
        if not self.wanted and self.tolerance is not None:
            raise ValueError("tolerance: not accepted if expected values do not judge")
        return self


JUDGE_EXPECTED = JudgeExpected()
