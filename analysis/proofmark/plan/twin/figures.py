"""Figures of a run in the form in which a twin keeps them: without nodes, repeats and programs."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from proofmark.common.strict_model import StrictModel

Distance = Literal["", "socket", "other-socket", "node"]
"""Where the two ranks of a message are: in one socket, in two sockets with a link between them, or
in two nodes. It is empty for other figures, and for ranks farther apart inside a node."""
Point = tuple[str, str, str, str, str]


class AnyFigure(StrictModel):
    """A value in `unit`, and what it is the value of.

    Attributes:
        parameters: of the step and of the row of its output.
    """

    case: str = Field(min_length=1)
    benchmark: str
    metric: str = Field(min_length=1)
    unit: str
    mode: str
    placement: str
    parameters: dict[str, str | int | float]
    value: float


class Figure(AnyFigure):
    """One figure of a run: the positive median of its nodes and repeats.

    Attributes:
        distance: of the two ranks.
        levels: the number of fabric levels at which the two nodes have different switches.
    """

    distance: Distance = ""
    levels: int = 0

    @property
    def point(self) -> Point:
        """What was measured. All metrics of one point come from the same messages."""
        parameters = json.dumps(self.parameters, sort_keys=True)
        return (self.case, self.benchmark, self.mode, self.placement, parameters)

    @property
    def key(self) -> tuple[Point, str, str]:
        """What figures of two runs have in common if they are comparable."""
        return (self.point, self.metric, self.unit)


class Measured(StrictModel):
    """The figures of the finished run with the id `run`."""

    run: str
    figures: tuple[Figure, ...]
