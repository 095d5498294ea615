"""Change points and slopes of many series over time, with one false alarm level for all of them.

The model of a series is a mean of the logarithm that is constant, changes in steps, or changes
linearly with time, and independent noise. At each position with at least `LEAST_RUNS` runs on
either side, the means before and after are compared. The position with the greatest ratio of
difference to standard error is a change point if this ratio exceeds the quantile of Student's t,
corrected for all positions and all series. The parts on either side are then searched in the same
way (binary segmentation).

The variance is that of successive differences, without the one across the change point. Other
change points hardly add to it. It is moderated by like series (`judge.change_limits.pooled_noise`).

Sources: Worsley, On the likelihood ratio test for a shift in location of normal populations,
Journal of the American Statistical Association 74 (1979); Vostrikova, Detecting disorder in
multidimensional random processes, Soviet Mathematics Doklady 24 (1981); von Neumann, Annals of
Mathematical Statistics 12 (1941).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from proofmark.common.message import NOTHING, Message
from proofmark.judge.change_limits import PooledNoise, pooled_noise
from proofmark.judge.confidence import quantile_of_t
from proofmark.judge.fleet.critical_values import level_of_one
from proofmark.packages.history.two_samples import step_seen
from proofmark.records.columns import Floats, Numbers

LEAST_RUNS = 3
"""The least number of runs on either side of a change point."""
LEAST_FAMILY = 3
"""The least number of series from which a common variance is estimated."""
LEAST_LENGTH = 2 * LEAST_RUNS
LEAST_CHANGE = math.log(1.01)
"""A change of less than 1 % is accepted at any noise."""
LEAST_SHARE = 0.8
"""The part of the runs on either side that are on their own side of the middle of both levels. A
few outliers make no change point."""
_REACH = -2 * math.log(1 - math.sqrt(0.95))
"""The greatest drop of twice the log likelihood within the confidence set of a change point, at a
confidence of 95 % (Siegmund, Confidence sets in change-point problems, International Statistical
Review 56, 1988)."""


@dataclass(frozen=True, eq=False)
class LevelSeries:
    """The values of one figure: days since any date, and logarithms of values. Shapes (runs,)."""

    days: Floats
    logs: Floats
    family: int


@dataclass(frozen=True)
class LevelStep:
    """A change of the level of a series.

    Attributes:
        place: the index of the first run after the change.
        earliest, latest: the bounds of `place` with a confidence of 95 %.
    """

    place: int
    earliest: int
    latest: int


@dataclass(frozen=True)
class Course:
    """What a series does over time.

    Attributes:
        steps: its change points, in the order of time.
        slope: the change of the logarithm per day if that is what the series does, else 0.
        deviation: the standard deviation of the logarithm of one run; NaN if it is not tested.
        visible: the logarithm of a step in the middle of its runs that would be seen, with a power
            of 95 %; NaN if it is not tested.
        noise: why a material change would not be seen; `NOTHING` if it would be.
    """

    steps: tuple[LevelStep, ...] = ()
    slope: float = 0.0
    deviation: float = math.nan
    visible: float = math.nan
    noise: Message = NOTHING

    @property
    def tested(self) -> bool:
        """Whether the series has enough runs."""
        return not math.isnan(self.deviation)


@dataclass(frozen=True, eq=False)
class _Search:
    """The best step and the slope of each series of one length. Shapes (series,).

    Attributes:
        place: index of the first run after the best step.
        step, slope: the sums of squares that the step and the slope explain.
    """

    place: Numbers
    step: Floats
    slope: Floats
    variance: Floats


def courses(series: Sequence[LevelSeries], level: float) -> list[Course]:
    """Return the course of each series.

    Args:
        series: the series. Those with fewer than `LEAST_LENGTH` runs are not tested.
        level: the probability that any of the series has a step or slope if none has one.
    """
    of_length: dict[int, list[int]] = {}
    for number, each in enumerate(series):
        of_length.setdefault(len(each.logs), []).append(number)
    found = {
        length: _search(
            np.stack([series[number].days for number in numbers]),
            np.stack([series[number].logs for number in numbers]),
        )
        for length, numbers in of_length.items()
        if length >= LEAST_LENGTH
    }
    priors = _priors(series, of_length, found)
    tests = sum(len(of_length[length]) for length in found)
    one = level_of_one(level, tests)
    result = [Course()] * len(series)
    for length, search in found.items():
        best = np.maximum(search.step, search.slope)
        for row, number in enumerate(of_length[length]):
            prior = priors[series[number].family]
            variance, freedom = prior.moderated(float(search.variance[row]), _freedom(length))
            critical = _critical(length, freedom, one)
            seen = max(
                LEAST_CHANGE,
                step_seen(critical, freedom, length, LEAST_SHARE) * math.sqrt(variance),
            )
            result[number] = Course(deviation=math.sqrt(variance), visible=seen)
            if best[row] > variance * critical**2:
                course = _course(series[number], prior, one, math.sqrt(variance))
                result[number] = replace(course, visible=seen)
    return result


def _priors(
    series: Sequence[LevelSeries], of_length: dict[int, list[int]], found: dict[int, _Search]
) -> dict[int, PooledNoise]:
    variances: dict[int, list[tuple[float, float]]] = {}
    for length, search in found.items():
        for row, number in enumerate(of_length[length]):
            pair = float(search.variance[row]), _freedom(length)
            variances.setdefault(series[number].family, []).append(pair)
    return {family: _noise_of(np.array(pairs).T) for family, pairs in variances.items()}


def _noise_of(pairs: Floats) -> PooledNoise:
    """Return the common variance of a family from variances and freedoms. Shape (2, series)."""
    variances, freedoms = pairs[:, pairs[0] > 0]
    # One standard error is added: a small family shows badly how much its variances differ.
    return pooled_noise(variances, freedoms, least=LEAST_FAMILY, caution=1.0)


def _freedom(length: int) -> float:
    """Return the degrees of freedom of the variance of `length` − 2 successive differences.

    The variance of von Neumann's estimate of n values has the factor (3n − 4) ÷ (n − 1)².
    """
    return 2 * (length - 2) ** 2 / (3 * (length - 1) - 4)


def _critical(length: int, freedom: float, level: float) -> float:
    """Return the limit of the ratio for all positions of a series, and for its slope."""
    tests = length - LEAST_LENGTH + 2
    return quantile_of_t(level / 2 / tests, max(1.0, math.floor(freedom)))


def _search(days: Floats, logs: Floats) -> _Search:
    """Return the best step and the slope of each series. Both arguments: (series, runs)."""
    length = logs.shape[1]
    centred = logs - logs.mean(axis=1, keepdims=True)
    explained = _explained(centred)
    best = explained.argmax(axis=1)
    rows = np.arange(len(logs))
    place = best + LEAST_RUNS
    differences = np.diff(logs, axis=1) ** 2
    across = differences[rows, place - 1]
    variance = (differences.sum(axis=1) - across) / (2 * (length - 2))
    times = days - days.mean(axis=1, keepdims=True)
    spread = (times**2).sum(axis=1)
    product = (times * centred).sum(axis=1)
    slope = np.divide(product**2, spread, out=np.zeros(len(logs)), where=spread > 0)
    floor = (_resolution(logs) / 2) ** 2
    return _Search(place, explained[rows, best], slope, np.maximum(variance, floor))


def _explained(centred: Floats) -> Floats:
    """Return the sum of squares that a step explains, by position; (series, positions)."""
    length = centred.shape[1]
    before = np.arange(LEAST_RUNS, length - LEAST_RUNS + 1)
    sums = np.cumsum(centred, axis=1)[:, LEAST_RUNS - 1 : length - LEAST_RUNS]
    result: Floats = sums**2 * (length / (before * (length - before)))
    return result


def _resolution(logs: Floats) -> Floats:
    """Return the least difference of two different values of each series: its printed digits."""
    gaps = np.diff(np.sort(logs, axis=1), axis=1)
    least = np.where(gaps > 1e-9, gaps, np.inf).min(axis=1)
    result: Floats = np.where(np.isfinite(least), least, 0.0)
    return result


def _course(series: LevelSeries, prior: PooledNoise, level: float, deviation: float) -> Course:
    """Return the course of a series that is not constant: steps or a slope, whichever fits."""
    logs = series.logs
    places = _places(logs, prior, level)
    steps = tuple(_step(logs, places, number, deviation) for number in range(len(places)))
    slope = _slope(series)
    if not _slopes(series, slope, prior, level):
        return Course(steps, 0.0, deviation)
    if steps and _misfit(logs, places) <= _misfit_of_line(series, slope):
        return Course(steps, 0.0, deviation)
    return Course((), slope, deviation)


def _places(logs: Floats, prior: PooledNoise, level: float) -> list[int]:
    """Return the change points; each is the best one between its neighbours, and clear there.

    The one with the least difference of medians is removed until all are clear. The split of a fall
    that was repaired is not clear before both of its ends are found.
    """
    places = sorted(_split(logs, 0, prior, level))
    while places:
        bounds = [0, *places, len(logs)]
        for number in range(1, len(bounds) - 1):
            first, last = bounds[number - 1], bounds[number + 1]
            part = logs[first:last]
            best = int(_explained((part - part.mean())[None, :])[0].argmax())
            bounds[number] = first + best + LEAST_RUNS
        places = bounds[1:-1]
        parts = [logs[first:last] for first, last in pairwise(bounds)]
        unclear = {
            abs(float(np.median(before) - np.median(after))): number
            for number, (before, after) in enumerate(pairwise(parts))
            if not (_significant(before, after, prior, level) and _separate(before, after))
        }
        if not unclear:
            break
        del places[unclear[min(unclear)]]
    return places


def _split(logs: Floats, offset: int, prior: PooledNoise, level: float) -> Iterator[int]:
    """Yield the change points of a part of a series that begins at `offset`."""
    length = len(logs)
    if length < LEAST_LENGTH:
        return
    search = _search(np.zeros((1, length)), logs[None, :])
    place = int(search.place[0])
    if not _significant(logs[:place], logs[place:], prior, level):
        return
    yield offset + place
    yield from _split(logs[:place], offset, prior, level)
    yield from _split(logs[place:], offset + place, prior, level)


def _significant(before: Floats, after: Floats, prior: PooledNoise, level: float) -> bool:
    """Return whether the means of two neighbouring parts differ by more than noise."""
    logs = np.concatenate((before, after))
    differences = np.diff(logs) ** 2
    own = float(differences.sum() - differences[len(before) - 1]) / (2 * (len(logs) - 2))
    floor = (float(_resolution(logs[None, :])[0]) / 2) ** 2
    variance, freedom = prior.moderated(max(own, floor), _freedom(len(logs)))
    error = variance * (1 / len(before) + 1 / len(after))
    difference = float(after.mean() - before.mean())
    return difference**2 > error * _critical(len(logs), freedom, level) ** 2


def _separate(before: Floats, after: Floats) -> bool:
    """Return whether the medians differ enough, and most values are near their own median.

    The medians differ by at least half as much as the means: outliers move only the means.
    """
    first, last = float(np.median(before)), float(np.median(after))
    of_means = abs(float(after.mean() - before.mean()))
    if abs(last - first) < max(LEAST_CHANGE, of_means / 2):
        return False
    middle, sign = (first + last) / 2, math.copysign(1.0, last - first)
    shares = np.mean(sign * (before - middle) < 0), np.mean(sign * (after - middle) > 0)
    return bool(min(shares) >= LEAST_SHARE)


def _step(logs: Floats, places: Sequence[int], number: int, deviation: float) -> LevelStep:
    """Return a change point with its confidence set between its neighbours."""
    bounds = [0, *places, len(logs)]
    first, last = bounds[number], bounds[number + 2]
    part = logs[first:last]
    explained = _explained((part - part.mean())[None, :])[0]
    inside = np.flatnonzero(explained.max() - explained <= _REACH * deviation**2)
    positions = inside + LEAST_RUNS + first
    return LevelStep(places[number], int(positions[0]), int(positions[-1]))


def _slope(series: LevelSeries) -> float:
    """Return the least-squares slope of the logarithm per day; 0 if all runs have one time."""
    times = series.days - series.days.mean()
    spread = float((times**2).sum())
    return float((times * series.logs).sum()) / spread if spread else 0.0


def _slopes(series: LevelSeries, slope: float, prior: PooledNoise, level: float) -> bool:
    """Return whether a slope is more than noise, and its first and last runs differ clearly."""
    length, third = len(series.logs), len(series.logs) // 3
    search = _search(series.days[None, :], series.logs[None, :])
    variance, freedom = prior.moderated(float(search.variance[0]), _freedom(length))
    if search.slope[0] <= variance * _critical(length, freedom, level) ** 2:
        return False
    span = abs(slope) * float(np.ptp(series.days))
    return span >= LEAST_CHANGE and _separate(series.logs[:third], series.logs[-third:])


def _misfit(logs: Floats, places: Sequence[int]) -> float:
    """Return the Bayesian information criterion of steps: two parameters for each."""
    parts = np.split(logs, list(places))
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return _criterion(squares, len(logs), 2 * len(places))


def _misfit_of_line(series: LevelSeries, slope: float) -> float:
    """Return the Bayesian information criterion of a slope."""
    times = series.days - series.days.mean()
    rest = series.logs - series.logs.mean() - slope * times
    return _criterion(float((rest**2).sum()), len(rest), 1)


def _criterion(squares: float, length: int, parameters: int) -> float:
    return length * math.log(max(squares, 1e-300) / length) + parameters * math.log(length)
