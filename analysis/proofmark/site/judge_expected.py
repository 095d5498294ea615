"""Whether expected values judge, as a site decides it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from proofmark.common.strict_model import StrictModel

OFF = "off"
ElsewhereFile = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.ya?ml$", max_length=100)
]
"""The name of a file, without a folder."""


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"each file once; twice: {', '.join(twice)}")
    return names


class JudgeExpected(StrictModel):
    """The key ``expected`` of a partition: ``off``, or settings.

    Attributes:
        wanted: whether a figure below its expected value by more than the tolerance is FAIL.
        tolerance: a part of each expected value; None is the tolerance of its source.
        elsewhere: files of other sites, in ``baselines/elsewhere`` of the inventory
            (`proofmark baseline export`): what they accepted is an expected value.
    """

    wanted: bool = True
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = None
    elsewhere: Annotated[tuple[ElsewhereFile, ...], AfterValidator(_once)] = ()

    @model_validator(mode="before")
    @classmethod
    def _off(cls, given: Any) -> Any:
        # YAML 1.1 reads off as false.
        return {"wanted": False} if given == OFF or given is False else given

    @model_validator(mode="after")
    def _one(self) -> Self:
        if not self.wanted and (self.tolerance is not None or self.elsewhere):
            raise ValueError("nothing else is accepted if expected values do not judge")
        return self


JUDGE_EXPECTED = JudgeExpected()
