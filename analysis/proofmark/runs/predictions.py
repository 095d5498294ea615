"""``inputs/expected``: the figures that a model predicts for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from proofmark.common.files import read_json, write_atomic
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel

_Text = Annotated[str, Field(min_length=1)]


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


class Assumption(StrictModel):
    """One figure or property of the model, with its source or assumption.

    Attributes:
        value: with its unit.
        why: the source, or what was assumed.
        sourced: whether `why` is a source.
    """

    what: Message
    value: Message
    why: Message
    sourced: bool

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            **self.what.as_json("what"),
            **self.value.as_json("value"),
            **self.why.as_json("why"),
            "sourced": self.sourced,
        }


class ErrorRow(StrictModel):
    """The ratios predicted ÷ measured of one metric of a case.

    Attributes:
        figures: the number of figures that both runs have.
        median, smallest, largest: of the ratios.
    """

    case: str
    metric: str
    figures: int
    median: float
    smallest: float
    largest: float

    def range_of(self, predicted: float) -> tuple[float, float]:
        """Return the smallest and the largest real value that the ratios allow for `predicted`."""
        return predicted / self.largest, predicted / self.smallest


class PredictedFigure(AnyFigure):
    """One figure of the twin: the median of its repeats; `nodes` is a node set."""

    nodes: _Text


class Predictions(StrictModel):
    """The predictions of one run of a twin.

    Attributes:
        site, partition: what was simulated.
        selector: SimGrid's imitation of an MPI library, for the algorithms of collectives.
        assumptions: what the model contains.
        errors: the errors of the model; empty if they are not known.
    """

    format: Literal[1] = 1
    run: _Text
    site: _Text
    partition: _Text
    selector: _Text
    figures: tuple[PredictedFigure, ...]
    assumptions: tuple[Assumption, ...]
    errors: tuple[ErrorRow, ...] = ()


def read_predictions(path: Path) -> Predictions:
    """Return the predictions in a file of a run.

    Raises:
        BadInput: the file is damaged.
    """
    return read_json(path, Predictions)


def write_predictions(path: Path, expected: Predictions) -> None:
    """Write predictions to a file in a new folder."""
    path.parent.mkdir(parents=True)
    write_atomic(path, expected.model_dump_json(indent=1) + "\n")
