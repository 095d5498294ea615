"""Field types of a `read:` block: patterns and expressions, compiled when a case is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from proofmark.common.arithmetic import Arithmetic, arithmetic
from proofmark.common.errors import nearest
from proofmark.common.strict_model import StrictModel

CACHED = 4096
"""Size of a cache of lines or of parameters of rows. Outputs of all nodes share some hundred."""


def _pattern(value: object) -> re.Pattern[str]:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a regular expression in quotes")
    try:
        return re.compile(value, re.ASCII)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None


Pattern = Annotated[
    re.Pattern[str],
    PlainValidator(_pattern),
    PlainSerializer(lambda pattern: pattern.pattern, return_type=str),
    WithJsonSchema({"type": "string", "format": "regex"}),
]


class Agreement(StrictModel):
    """Numbers of one row that determine each other; readings of a row that contradicts are INVALID.

    Attributes:
        metric: the number that is computed from the others.
        at_most: arithmetic as that of `equals`, whose value the metric cannot exceed.
        equals: arithmetic over the metrics, the parameters and the numbers of `aside`; or
            several ones for programs that differ by version, of which one must fit. A `printed`
            number of `aside` can be half of its last digit larger or smaller.
        rounding: the largest difference by the printed digits, in the unit of the metric.
        within: the largest relative difference besides.
        rounded: half of the last printed digit of other metrics in `equals`.
        benchmark: the rule holds for the benchmarks of this name only.
        unless: the rule does not hold for a row with this parameter.
    """

    metric: str
    at_most: str = ""
    equals: str | tuple[str, ...] = ()
    rounding: float = Field(ge=0)
    within: float = Field(ge=0, lt=1)
    rounded: Mapping[str, float] = {}
    benchmark: Pattern | None = None
    unless: str = ""

    @model_validator(mode="after")
    def _computable(self) -> Agreement:
        if bool(self.at_most) == bool(self.expressions_of_equals):
            raise ValueError("exactly one of equals and at_most is required")
        _ = self.expressions
        return self

    @property
    def expressions_of_equals(self) -> tuple[str, ...]:
        """The texts of `equals`."""
        return (self.equals,) if isinstance(self.equals, str) else self.equals

    @cached_property
    def expressions(self) -> tuple[Arithmetic, ...]:
        """The expressions of which one must fit."""
        return tuple(map(arithmetic, self.expressions_of_equals or (self.at_most,)))


def check_known(names: Iterable[str], known: Iterable[str], where: str, kind: str) -> None:
    """Raise ValueError for the first of `names` that is not one of `known`."""
    words = set(known)
    for name in names:
        if name not in words:
            raise ValueError(f"{where}: {name!r} is not a {kind}{nearest(name, words)}")
