"""Change points of a line: the place of its steepest fall is searched over the whole sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Fall:
    """The steepest fall of a line.

    Attributes:
        before: x of the last point before the fall.
        after: x of the first point after the fall.
        ratio: level after ÷ level before; 1 or more if the line falls nowhere.
    """

    before: float
    after: float
    ratio: float


def steepest_fall(line: Line, window: int) -> Fall:
    """Return the steepest fall of `line`: a change point of the mean of its logarithm.

    At each step between two neighbours, the geometric means of up to `window` points on either side
    are compared. Among the best step and its two neighbours, the largest single step is the fall.

    Raises:
        ValueError: `line` has fewer than two points.
    """
    if len(line) < 2:
        raise ValueError(f"a fall needs two points, not {len(line)}")
    logs = [math.log(y) for _, y in line]
    steps = range(len(line) - 1)

    def depth(step: int) -> float:
        before = fmean(logs[max(0, step - window + 1) : step + 1])
        return before - fmean(logs[step + 1 : step + 1 + window])

    best = max(steps, key=depth)
    near = [step for step in (best - 1, best, best + 1) if step in steps]
    place = max(near, key=lambda step: logs[step] - logs[step + 1])
    return Fall(line[place][0], line[place + 1][0], math.exp(-depth(place)))


def slope(line: Line) -> float:
    """Return the least-squares slope of y over x; 0 if all x are equal."""
    middle_x, middle_y = fmean(x for x, _ in line), fmean(y for _, y in line)
    spread = sum((x - middle_x) ** 2 for x, _ in line)
    return sum((x - middle_x) * (y - middle_y) for x, y in line) / spread if spread else 0.0


def log_slope(line: Line) -> float:
    """Return the slope of log y over log x: the exponent with which y grows with x."""
    return slope([(math.log(x), math.log(y)) for x, y in line])
