"""The noise of repeats, and findings that are made only if the noise cannot explain them.

All estimates are logarithms: a relative noise is the same for large and small figures. A finding is
yes (True), no (False) or hidden by the noise (None).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from proofmark.judge.confidence import quantile_of_t

Found = bool | None
"""A finding: None if the noise hides it."""

CONFIDENCE = 0.99
"""The confidence of the interval of an estimate."""
MEDIAN_VARIANCE = math.pi / 2
"""n times the variance of the median of n standard normal values, at most."""
BEST = 3
"""Number of figures of which the mean is the best value: a single one would be chosen by noise."""


@dataclass(frozen=True)
class Noise:
    """The noise of the figures of a sweep, pooled over like steps.

    Attributes:
        deviation: the standard deviation of the logarithm of one repeat: the coefficient of
            variation.
        repeats: the least number of repeats of a point.
        freedom: the degrees of freedom of `deviation`; 0 if no figure was measured twice.
    """

    deviation: float = 0.0
    repeats: int = 1
    freedom: int = 0

    @property
    def of_point(self) -> float:
        """The standard error of the logarithm of the median of a point."""
        return self.deviation * math.sqrt(MEDIAN_VARIANCE / self.repeats)

    def margin(self, weight: float, tests: int = 1) -> float:
        """Return half the width of the interval of a sum of weighted logarithms of points.

        Args:
            weight: the root of the sum of the squared weights.
            tests: the number of estimates of which any may be chosen (Bonferroni).
        """
        return margin((self, weight), tests=tests)


def margin(*parts: tuple[Noise, float], tests: int = 1) -> float:
    """Return half the width of the interval of a sum over several sweeps: `Noise.margin`."""
    error = math.sqrt(sum((noise.of_point * weight) ** 2 for noise, weight in parts))
    freedom = min(noise.freedom for noise, _ in parts)
    if not error or not freedom:
        return 0.0
    return float(quantile_of_t((1 - CONFIDENCE) / 2 / tests, float(freedom))) * error


@dataclass(frozen=True)
class Estimate:
    """The logarithm of a ratio: its true value lies within `margin` of `value`."""

    value: float
    margin: float

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return math.exp(self.value)

    def at_least(self, ratio: float) -> Found:
        """Return whether the ratio is at least `ratio`."""
        limit = math.log(ratio)
        if self.value - self.margin >= limit:
            return True
        return False if self.value + self.margin < limit else None

    def at_most(self, ratio: float) -> Found:
        """Return whether the ratio is at most `ratio`."""
        return Estimate(-self.value, self.margin).at_least(1 / ratio)

    def near(self, ratio: float, tolerance: float, *noises: Noise) -> Found:
        """Return whether the ratio equals `ratio` within a relative `tolerance`.

        Equality is not claimed if the noise of one figure (`noises`) is larger than the tolerance.
        """
        inside = every(
            self.at_least(ratio * (1 - tolerance)), self.at_most(ratio * (1 + tolerance))
        )
        too_noisy = any(noise.of_point > tolerance for noise in noises)
        return None if inside and too_noisy else inside


def every(*findings: Found) -> Found:
    """Return whether all findings are yes: no if one is no."""
    if False in findings:
        return False
    return None if None in findings else True


def either(*findings: Found) -> Found:
    """Return whether any finding is yes: no if all are no."""
    if True in findings:
        return True
    return None if None in findings else False


def mostly(findings: Iterable[Found], least: float) -> Found:
    """Return whether at least the part `least` of the findings is yes."""
    listed = list(findings)
    if sum(each is True for each in listed) >= least * len(listed):
        return True
    return False if sum(each is not False for each in listed) < least * len(listed) else None


def mean_of(logarithms: Sequence[float], *noises: Noise) -> Estimate:
    """Return the mean of logarithms of independent points.

    `noises` are those of the figures of which each logarithm is the ratio or the product.
    """
    weight = 1 / math.sqrt(len(logarithms))
    return Estimate(fmean(logarithms), margin(*((noise, weight) for noise in noises)))


def greatest(figures: Iterable[float], noise: Noise) -> Estimate:
    """Return the logarithm of the best of several figures: the mean of the `BEST` greatest.

    The interval allows for the choice among all figures.
    """
    logarithms = sorted(map(math.log, figures), reverse=True)
    best = logarithms[:BEST]
    return Estimate(fmean(best), noise.margin(1 / math.sqrt(len(best)), tests=len(logarithms)))


def over(one: Estimate, other: Estimate) -> Estimate:
    """Return the ratio of two independent estimates."""
    return Estimate(one.value - other.value, math.hypot(one.margin, other.margin))


@dataclass(frozen=True)
class Size:
    """The size of an effect whose sign may differ between points: least, likely and greatest.

    It is the root of the mean square of the logarithms of the ratios, less the part that the noise
    adds, as a relative difference.
    """

    least: float
    likely: float
    greatest: float


def effect_size(logs: Sequence[float], noise: Noise, averaged: int = 1) -> Size:
    """Return the size of the effect in logarithms of ratios of two points.

    Each may be the mean of `averaged` ratios.
    """
    by_noise = 2 * noise.of_point**2 / averaged
    square = fmean(log**2 for log in logs)
    likely = max(0.0, square - by_noise)
    # The variance of the mean of squares of normal values with this mean square.
    spread = math.sqrt((2 * by_noise**2 + 4 * by_noise * likely) / len(logs))
    known = noise.margin(1.0) / noise.of_point if noise.of_point else 0.0
    bounds = (max(0.0, likely - known * spread), likely, likely + known * spread)
    return Size(*(math.expm1(math.sqrt(bound)) for bound in bounds))


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
