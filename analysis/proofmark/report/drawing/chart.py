"""The content of a chart: its axes, its panels and their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from proofmark.report.drawing.series import Series

Scale = Literal["linear", "bytes", "doubling", "log"]


@dataclass(frozen=True)
class Axis:
    """Quantity, unit and scale of an axis.

    Attributes:
        scale: ``bytes`` and ``doubling`` are logarithmic to base 2, ``log`` to base 10.
        zero: a linear axis begins at 0.
        counted: returns an x in words: ``8 threads``.
    """

    label: str
    scale: Scale = "linear"
    zero: bool = True
    counted: Callable[[int], str] = str


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        level: the label and the x of a vertical line.
        marks: words by their x.
    """

    title: str
    lines: Sequence[Series]
    y: str | None = None
    level: tuple[str, float] | None = None
    marks: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chart:
    """Title, axes and style of a plot, without its data.

    Attributes:
        name: stem of its file names.
        title: paper, number of its figure, quantity and axes.
        unit: unit of the values in the text below the plot.
        columns: the largest number of panels in a row.
        ordered: lines are in the order of a growing number, and get colours from dark to light.
        signed: the y axis includes 0 and negative values.
        own_x: only lines with the same label, in any panel, have the same x values; else all lines
            of a panel.
        cases: the text below the plot counts the steps of these cases without a valid figure.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    unit: str
    columns: int = 2
    ordered: bool = False
    legend_columns: int = 2
    signed: bool = False
    own_x: bool = False
    cases: Sequence[str] = field(default_factory=tuple)


def expected_x(
    chart: Chart, content: Sequence[Panel], panel: Panel
) -> Mapping[str, Sequence[float]]:
    """Return each x that the lines of `panel` should have, by label."""

    def of(lines: Iterable[Series]) -> list[float]:
        found = set()
        for line in lines:
            found |= {point.x for point in line.points}
        return sorted(found)

    if not chart.own_x:
        return dict.fromkeys((line.label for line in panel.lines), of(panel.lines))
    return {
        line.label: of(o for each in content for o in each.lines if o.label == line.label)
        for line in panel.lines
    }
