"""The figures that a twin of the partition predicts: copies of them are an input of a run.

They are information. No figure passes or fails because of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from proofmark.common.files import read_json, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.runs.twin_files import AnyFigure, Assumption, ErrorRow

_Text = Annotated[str, Field(min_length=1)]


class PredictedFigure(AnyFigure):
    """One figure of the twin: the median of its repeats; `nodes` is a node set."""

    nodes: _Text


class Expected(StrictModel):
    """The predictions of one run of a twin.

    Attributes:
        run: the id of the run.
        site, partition: what was simulated.
        selector: SimGrid's imitation of an MPI library, for the algorithms of collectives.
        figures: the valid figures.
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


def read_expected(path: Path) -> Expected:
    """Return the predictions in a file of a run.

    Raises:
        BadInput: the file is damaged.
    """
    return read_json(path, Expected)


def write_expected(path: Path, expected: Expected) -> None:
    """Write predictions to a file in a new folder."""
    path.parent.mkdir(parents=True)
    write_whole(path, expected.model_dump_json(indent=1) + "\n")
