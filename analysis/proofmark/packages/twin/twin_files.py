"""The files that a twin writes into its run: its platform, its model, the figures of a real run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.runs.run_files import Files, RunFile, SealRule

Distance = Literal["", "socket", "other-socket", "node"]
"""Where the two ranks of a message are: in one socket, in two sockets with a link between them, or
in two nodes. It is empty for other figures, and for ranks farther apart inside a node."""
Point = tuple[str, str, str, str, str]


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


class TwinFigure(StrictModel):
    """One figure of a run, in `unit`: the positive median of its nodes and repeats.

    Attributes:
        parameters: of the step and of the row of its output.
        distance: of the two ranks.
        levels: the number of fabric levels at which the two nodes have different switches.
    """

    case: str = Field(min_length=1)
    benchmark: str
    metric: str = Field(min_length=1)
    unit: str
    mode: str
    placement: str
    parameters: dict[str, str | int | float]
    value: float
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


class MeasuredFigures(StrictModel):
    """The figures of the finished run with the id `run`."""

    run: str
    figures: tuple[TwinFigure, ...]


class ModelFit(StrictModel):
    """Figures of a model that were fitted; None: not fitted, the model has that of the tables.

    Attributes:
        run: the id of the run whose messages they were fitted to.
        software_s, line_s, lines_in_flight: as in `Interconnect`.
        socket_latency_s: of the link between two sockets.
        socket_bytes_per_s: of that link, if messages are faster than the table has it.
        adapters_s: between two adapters with one switch between them.
        link_bytes_per_s: of the link of a node.
        points: what the figures were fitted to. The error of the model leaves them out.
        notes: what could not be fitted, each with the reason.
    """

    run: str
    software_s: float | None = None
    line_s: float | None = None
    lines_in_flight: float | None = None
    socket_latency_s: float | None = None
    socket_bytes_per_s: float | None = None
    adapters_s: float | None = None
    link_bytes_per_s: float | None = None
    points: tuple[Point, ...] = ()
    notes: tuple[Message, ...] = ()

    @property
    def source(self) -> Message:
        """The source of the fitted figures."""
        return Message("model-fitted", run=self.run)


class ModelError(StrictModel):
    """The error of a model.

    Attributes:
        run: the id of the measured run.
        rows: one for each case and metric.
        typical: the median of the factors between predicted and measured figures, from 1; None if
            the runs have no figure in common.
        fitted: the number of figures of both runs that were left out: the model was fitted to them.
    """

    run: str
    rows: tuple[ErrorRow, ...]
    typical: float | None
    fitted: int


class TwinFacts(StrictModel):
    """How a twin simulates.

    Attributes:
        selector: SimGrid's imitation of an MPI library, for the algorithms of collectives.
        selectors: all selectors that are possible for the partition.
        settings: of SimGrid, by name.
        assumptions: what the model contains.
        fit: what was fitted to a real run; None if no run was given.
    """

    selector: str
    selectors: tuple[str, ...]
    settings: dict[str, str]
    assumptions: tuple[Assumption, ...]
    fit: ModelFit | None = None


class TwinFiles(Files):
    """The files of a twin in the folder of the inputs of its run."""

    platform = RunFile("twin/platform.xml", SealRule.FIXED)
    """The model, for SimGrid."""
    facts = RunFile("twin/twin.json", SealRule.FIXED)
    """The settings and the assumptions."""
    measured = RunFile("twin/measured.json", SealRule.FIXED)
    """The figures of the real run to compare with; missing if there is none."""


@dataclass(frozen=True)
class SimulatedRun:
    """The files of a simulation.

    Attributes:
        platform: as SimGrid's XML.
        facts: for the report.
        measured: the figures of the real run to compare with; None if no run was given.
    """

    platform: str
    facts: TwinFacts
    measured: MeasuredFigures | None = None

    @property
    def inputs(self) -> dict[str, str]:
        """The texts of the files, by their path below the folder of the inputs."""
        texts = {TwinFiles.platform.path: self.platform, TwinFiles.facts.path: _json(self.facts)}
        if self.measured is not None:
            texts[TwinFiles.measured.path] = _json(self.measured)
        return texts


def _json(model: StrictModel) -> str:
    return model.model_dump_json(indent=1) + "\n"
