"""What a figure module is: which records it wants, and what it draws from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.judge.claims.model import Machine
from proofmark.records.read import Record
from proofmark.report.plots.charts import Drawing
from proofmark.report.plots.series import Point


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


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    Attributes:
        title: what it shows; it names the figure where a run has no records for it.
        wants: whether a record belongs into it.
        suite: the paper's, where it is a figure of a paper; elsewhere nobody misses it.
        draw: gets at least one point, all of one origin; may find that they do not make a figure.
    """

    title: str
    wants: Callable[[Record], bool]
    draw: Callable[[Sequence[Point], Context], list[Drawing]]
    suite: str = ""
