"""Change points of a line: the place of its steepest fall is searched over the whole sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from proofmark.packages.papers.repeat_noise import Estimate, Noise

Line = Sequence[tuple[float, float]]
EXACT = Noise()
"""The noise of a line that has none."""


@dataclass(frozen=True)
class Fall:
    """The steepest fall of a line.

    Attributes:
        before: x of the last point before the fall.
        after: x of the first point after the fall.
        size: level after ÷ level before, each of which may be the steepest; its ratio is 1 or more
            if the line falls nowhere.
        places: (before, after) of each fall that is not clearly less steep.
    """

    before: float
    after: float
    size: Estimate
    places: tuple[tuple[float, float], ...]

    @property
    def ratio(self) -> float:
        """Level after ÷ level before."""
        return self.size.ratio


def steepest_fall(line: Line, window: int, noise: Noise = EXACT) -> Fall:
    """Return the steepest fall of `line`: a change point of the mean of its logarithm.

    At each step between two neighbours, the geometric means of up to `window` points on either side
    are compared. Among the best step and its two neighbours, the largest single step is the fall.

    Raises:
        ValueError: `line` has fewer than two points.
    """
    if len(line) < 2:
        raise ValueError(f"a fall needs two points, not {len(line)}")
    logs = np.log([y for _, y in line])
    weights = _weights(len(line), window)
    depths, steps = weights @ logs, len(weights)
    best = int(np.argmax(depths))
    apart = np.linalg.norm(weights - weights[best], axis=1)
    unit = noise.margin(1.0, tests=steps)
    candidates = np.flatnonzero(depths[best] - depths <= unit * apart)

    def place(step: int) -> int:
        near = range(max(0, step - 1), min(steps, step + 2))
        return max(near, key=lambda one: float(logs[one] - logs[one + 1]))

    def ends(step: int) -> tuple[float, float]:
        return line[step][0], line[step + 1][0]

    places = dict.fromkeys(ends(place(int(step))) for step in candidates)
    size = Estimate(-float(depths[best]), unit * float(np.linalg.norm(weights[best])))
    return Fall(*ends(place(best)), size, tuple(places))


def fall_to(line: Line, after: float, window: int, noise: Noise) -> Estimate:
    """Return level after ÷ level before of the fall to the point `after`.

    Raises:
        ValueError: `line` has no such point, or none before it.
    """
    step = [x for x, _ in line].index(after) - 1
    if step < 0:
        raise ValueError(f"no point before {after:g}")
    weights = _weights(len(line), window)[step]
    depth = float(weights @ np.log([y for _, y in line]))
    return Estimate(-depth, noise.margin(float(np.linalg.norm(weights))))


def _weights(points: int, window: int) -> NDArray[np.float64]:
    """Return the weights of the points in the depth of each step; shape (points − 1, points)."""
    weights = np.zeros((points - 1, points))
    for step in range(points - 1):
        first, last = max(0, step - window + 1), min(points, step + 1 + window)
        weights[step, first : step + 1] = 1 / (step + 1 - first)
        weights[step, step + 1 : last] = -1 / (last - step - 1)
    return weights


def slope(line: Line) -> float:
    """Return the least-squares slope of y over x; 0 if all x are equal."""
    return sum(weight * y for weight, (_, y) in zip(slope_weights(line), line, strict=True))


def slope_weights(line: Line) -> list[float]:
    """Return the weight of each y in the slope."""
    middle = fmean(x for x, _ in line)
    spread = sum((x - middle) ** 2 for x, _ in line)
    return [(x - middle) / spread if spread else 0.0 for x, _ in line]


def log_slope(line: Line, noise: Noise = EXACT) -> Estimate:
    """Return the slope of log y over log x: the exponent with which y grows with x."""
    logs = [(math.log(x), math.log(y)) for x, y in line]
    return Estimate(slope(logs), noise.margin(math.hypot(*slope_weights(logs))))
