"""A plot: which records it wants, and how it draws them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from proofmark.packages.papers.charts import Drawing
from proofmark.packages.papers.claim import NodeHardware
from proofmark.packages.papers.series import Sample
from proofmark.records.columns import Record
from proofmark.report.page import Cell, Column


@dataclass(frozen=True)
class PlotContext:
    """Facts about a run besides its records.

    Attributes:
        machine: a node of the run's system as the site declares it; None if it does not.
        missing_steps: by case, the number of planned steps without a valid figure, and of planned
            steps.
        derived: by step, the values that its case computed (`proofmark.plan.step.Step.derived`).
    """

    machine: NodeHardware | None = None
    missing_steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    derived: Mapping[str, Mapping[str, str | int | float]] = field(default_factory=dict)


class Plot(ABC):
    """A plot of the report.

    Attributes:
        name: of a plot of the kit; that of a site has the name of its entry point.
        title: quantity and axes.
        suite: suite of the paper that has the plot as a figure, or empty; only runs of this suite
            list the plot as INVALID.
        position: sort key of the plot in the report.
        exclusive: whether plots without a suite leave out the records of this one.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suite: ClassVar[str] = ""
    position: ClassVar[int]
    exclusive: ClassVar[bool] = False

    @abstractmethod
    def wants(self, record: Record) -> bool:
        """Return whether the plot shows `record`."""

    @abstractmethod
    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Return the drawings of `samples`; nothing if the samples are too few.

        Args:
            samples: at least one sample that the plot wants; all have the same origin.
            context: facts about the run.
        """

    def table(self, samples: Sequence[Sample]) -> PlotTable | None:
        """Return the table of `samples`, all of the same origin; None if the plot has none."""
        return None


@dataclass(frozen=True)
class PlotTable:
    """A table of a plot.

    Attributes:
        name: of its file, without ending.
        about: a sentence about its cells.
        csv: the rows of the file, the first with the names of the columns.
    """

    name: str
    title: str
    about: str
    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell | str]]
    csv: Sequence[Sequence[object]]
