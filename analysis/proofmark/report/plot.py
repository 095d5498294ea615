"""A plot: which records it wants, and what it draws from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from proofmark.common.plugins import Plugins
from proofmark.judge.claims.model import Machine
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.series import Sample


@dataclass(frozen=True)
class Context:
    """What is known of a run besides its records.

    Attributes:
        peak_gflops: Rpeak nominal of one node, None where it is not known.
        chosen: what a step's variant stands for there, by name and choice.
        machine: the node of the run's system, where it is known.
        lacking: by case, how many of its planned steps have no valid figure, and of how many.
    """

    peak_gflops: float | None
    chosen: Mapping[tuple[str, str], str]
    machine: Machine | None = None
    lacking: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Plot(ABC):
    """A plot of the report.

    Attributes:
        title: what it shows; it names the plot where a run has no records for it.
        suite: the suite of the paper whose figure it is; empty for the others, which are missing
            nowhere.
        position: plots appear in the report in this order.
    """

    title: ClassVar[str]
    suite: ClassVar[str] = ""
    position: ClassVar[int]

    @abstractmethod
    def wants(self, record: Record) -> bool:
        """Return whether `record` belongs into it."""

    @abstractmethod
    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw at least one point, all of one origin; return nothing if they are too few."""


PLOTS = Plugins(Plot, "proofmark.report.plots", "plots")
"""All plots; a site's own are entry points of this group."""


@cache
def plots() -> tuple[Plot, ...]:
    """Return all plots in the order of the report."""
    every = (PLOTS.get(name)() for name in PLOTS.names())
    return tuple(sorted(every, key=lambda plot: (plot.position, plot.title)))
