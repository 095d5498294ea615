"""The model of the claims of papers: the sweep that a claim needs, and its decision."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import NOTHING, Message
from proofmark.common.translation import N_
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


Point = tuple[Scalar, ...]
Word = Literal["holds", "does not hold", "cannot be told"]
WORDS: tuple[Word, ...] = get_args(Word)
_SHOWN = (N_("holds"), N_("does not hold"), N_("cannot be told"))  # for the catalogue


@dataclass(frozen=True)
class NodeHardware:
    """The hardware of one node of a system.

    Attributes:
        tiles: the number of pairs of cores that share a level 2 cache; 0 if there are none.
        peak_gflops: Rpeak nominal in GFlop/s (P1, equations 1 and 2); None if unknown.
    """

    cores: int
    tiles: int = 0
    peak_gflops: float | None = None


Machines = Mapping[str, NodeHardware]
"""Machines by system."""


PAPERS: Machines = {
    "knl": NodeHardware(cores=68, tiles=34, peak_gflops=68 * 32 * 1.4),
    "skl": NodeHardware(cores=40, peak_gflops=40 * 32 * 2.4),
    "tachyon1": NodeHardware(cores=16),
    "tachyon2": NodeHardware(cores=8),
    "p595": NodeHardware(cores=64),
}
"""The systems as the papers describe them."""


@dataclass(frozen=True)
class SweepNeed:
    """A sweep that a claim needs: every combination of `axes`, with the traits `fixed`.

    With `points` only these combinations are needed; a simulation has fewer sizes with more ranks.

    A trait is a parameter of a record, or its ``benchmark``, ``metric``, ``mode`` or
    ``placement``. Other traits may differ. Of figures that differ in them the median is used, or
    with `best` the greatest (the Rmax of HPL is the best of its settings).
    """

    system: str
    case: str
    unit: str
    fixed: Mapping[str, Scalar]
    axes: Mapping[str, Sequence[Scalar]]
    best: bool = False
    points: tuple[Point, ...] = ()

    def _values(self) -> Mapping[str, Sequence[Scalar]]:
        """Return the values of each axis that are needed at any point."""
        if not self.points:
            return self.axes
        columns = (tuple(dict.fromkeys(column)) for column in zip(*self.points, strict=True))
        return dict(zip(self.axes, columns, strict=True))

    @property
    def text(self) -> str:
        """Return the need in words."""
        fixed = ", ".join(f"{name} {value}" for name, value in self.fixed.items())
        axes = "; ".join(f"{name}: {folded(values)}" for name, values in self._values().items())
        return f"{self.case} on {self.system} ({fixed}) at {axes}"


def folded(values: Sequence[Scalar]) -> str:
    """Return values as text: ``1 … 68`` for four or more consecutive integers."""
    whole = [value for value in values if isinstance(value, int)]
    if len(set(whole)) == len(values) > 3 and max(whole) - min(whole) + 1 == len(values):
        return f"{min(whole)} … {max(whole)}"
    return ", ".join(str(value) for value in values)


Values = Mapping[Point, float]
"""The figures of a need by their point: one value for each axis, in the order of the axes."""


@dataclass(frozen=True)
class Measured:
    """The figures of a need, and the noise of their repeats."""

    values: Values
    noise: Noise = field(default_factory=Noise)


@dataclass(frozen=True)
class ClaimDecision:
    """Whether a claim holds, with a sentence and the numbers of the decision.

    `holds` is None if the noise of the repeats hides the answer.
    """

    holds: Found
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that can be checked on records.

    Attributes:
        id: ``C1.1`` … ``C5.4``, of paper P1 … P5.
        statement: the claim of the paper.
        needs: returns its minimum sweep on these machines.
        decide: returns the decision from the complete figures of each need.
        of_twin: returns the minimum sweep in a simulation; None if a simulation cannot answer.
        decide_of_twin: returns the decision from the figures of `of_twin`; None: as `decide`.
        follows_from: the figures of the model from which a predicted answer follows.
        input_of_twin: the input of a model that a predicted answer would only repeat; empty if no
            suite of a twin has the sweep.
    """

    id: str
    statement: str
    systems: tuple[str, ...]
    needs: Callable[[Machines], Sequence[SweepNeed]]
    decide: Callable[[Sequence[Measured], Machines], ClaimDecision]
    of_twin: Callable[[Machines], Sequence[SweepNeed]] | None = None
    decide_of_twin: Callable[[Sequence[Measured], Machines], ClaimDecision] | None = None
    follows_from: str = ""
    input_of_twin: str = ""

    @property
    def paper(self) -> str:
        """The paper, ``P1`` … ``P5``."""
        return f"P{self.id[1]}"


@dataclass(frozen=True)
class Answer:
    """The answer to a claim from figures of one origin.

    Attributes:
        missing: the gaps of the sweep.
        elsewhere: whether the claim is about a system without figures.
    """

    claim: Claim
    origin: str
    word: Word
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[Message, ...] = ()
    elsewhere: bool = False

    def as_json(self) -> dict[str, object]:
        """Return the form of ``proofmark verdict --claims --json``."""
        return {
            "claim": self.claim.id,
            "paper": self.claim.paper,
            "statement": self.claim.statement,
            "systems": list(self.claim.systems),
            "origin": self.origin,
            "answer": self.word,
            "sentence": self.sentence,
            "numbers": dict(self.numbers),
            "missing": list(self.missing),
        }


LIKE = (
    "system",
    "case",
    "benchmark",
    "metric",
    "unit",
    "mode",
    "placement",
    "environment_hash",
    "parameters",
)
"""Columns in which the repeats of one figure agree, on one node or several."""


@dataclass(frozen=True)
class _Figure:
    """The median of the repeats of a figure.

    Attributes:
        traits: the values that a need can ask for.
        repeats: the number of values.
        squares: the sum of the squared deviations of their logarithms from the mean.
    """

    traits: dict[str, Any]
    value: float
    repeats: int
    squares: float


class ClaimFigures:
    """The figures of a table of records, by system, case and unit."""

    def __init__(self, records: pl.DataFrame, origin: str) -> None:
        """Aggregate the valid records of `origin`.

        `records` has the columns of records.parquet. Values that are not positive and finite do not
        count.
        """
        counting = (
            pl.col("valid")
            & (pl.col("origin") == origin)
            & pl.col("value").is_finite()
            & (pl.col("value") > 0)
        )
        logarithm = pl.col("value").log()
        self._figures: dict[tuple[str, str, str], list[_Figure]] = {}
        # Groups of all cases at once would need as much memory as the table.
        for case in records.get_column("case").unique().to_list():
            of_case = records.lazy().filter(counting & (pl.col("case") == case))
            figures = of_case.group_by(LIKE, maintain_order=True).agg(
                pl.col("value").median(),
                pl.len().alias("repeats"),
                (logarithm - logarithm.mean()).pow(2).sum().alias("squares"),
            )
            for row in figures.collect().iter_rows(named=True):
                traits = {
                    **json.loads(row["parameters"]),
                    **{name: row[name] for name in ("benchmark", "metric", "mode", "placement")},
                }
                key = (row["system"], row["case"], row["unit"])
                figure = _Figure(traits, row["value"], row["repeats"], row["squares"])
                self._figures.setdefault(key, []).append(figure)

    def of(self, need: SweepNeed) -> Measured:
        """Return the figures of `need` by point, also at points that it does not name.

        Their noise is pooled over like steps: all figures of the same system, case and metric.
        """
        like = self._figures.get((need.system, need.case, need.unit), [])
        by_point: dict[Point, list[_Figure]] = {}
        for figure in like:
            traits = figure.traits
            if all(traits.get(name) == wanted for name, wanted in need.fixed.items()) and all(
                name in traits for name in need.axes
            ):
                by_point.setdefault(tuple(traits[name] for name in need.axes), []).append(figure)
        if need.best:
            by_point = {
                point: [max(figures, key=lambda figure: figure.value)]
                for point, figures in by_point.items()
            }
        if need.points:
            by_point = {point: by_point[point] for point in need.points if point in by_point}
        values = {point: median(each.value for each in of) for point, of in by_point.items()}
        counts = [sum(figure.repeats for figure in of) for of in by_point.values()]
        metrics = set()
        for of in by_point.values():
            metrics |= {figure.traits["metric"] for figure in of}
        pooled = [figure for figure in like if figure.traits["metric"] in metrics]
        freedom = sum(figure.repeats - 1 for figure in pooled)
        squares = sum(figure.squares for figure in pooled)
        deviation = math.sqrt(squares / freedom) if freedom else 0.0
        return Measured(values, Noise(deviation, min(counts, default=1), freedom))


def origins(records: pl.DataFrame) -> list[str]:
    """Return the origins of the records, in order."""
    return sorted(records.get_column("origin").unique().to_list())


def missing_points(need: SweepNeed, values: Values) -> Message:
    """Return the points of `need` that `values` lack; `NOTHING` if they lack none."""
    wanted = list(_points(need))
    missing = [point for point in wanted if point not in values]
    if not missing:
        return NOTHING
    if len(missing) == len(wanted):
        return Message("claim-all-points", points=len(wanted), sweep=need.text)
    named = "; ".join(_named(need, point) for point in missing[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    sweep = f"{need.text}: {named}{more}"
    return Message("claim-points", missing=len(missing), points=len(wanted), sweep=sweep)


def _points(need: SweepNeed) -> Iterator[Point]:
    if need.points:
        yield from need.points
        return
    points: list[Point] = [()]
    for values in need.axes.values():
        points = [(*point, value) for point in points for value in values]
    yield from points


def _named(need: SweepNeed, point: Point) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(need.axes, point, strict=True))


def curve(values: Values, place: int, *fixed: Scalar) -> list[tuple[float, float]]:
    """Return the points (x, value) over the axis at `place`, sorted by x.

    `fixed` are the values of the other axes, in order.
    """
    line = []
    for point, value in values.items():
        x = point[place]
        if (*point[:place], *point[place + 1 :]) == fixed and not isinstance(x, str):
            line.append((float(x), value))
    return sorted(line)


def ratio_curve(
    over: Sequence[tuple[float, float]], under: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the ratio of two lines at each x that both have."""
    divisors = dict(under)
    return [(x, y / divisors[x]) for x, y in over if x in divisors]
