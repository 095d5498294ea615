"""The noise of repeated measurements: intervals, the power of a comparison, and the true level.

A figure that is like its reference shows nothing if a change that matters would look the same. All
comparisons, of limits, baselines, like nodes and runs, use the power of this module.

The logarithms of the ratios measured ÷ reference have a mean with the standard error s ÷ √n. The
judged value is their median, whose variance is larger (`median_variance`). Student's t with n - 1
degrees of freedom gives the one-sided bound. A figure that was measured once shows no noise:
`OneRepeat` has the noise that other figures show, or that its case states.

Source: where noise is normal, the quantiles are those of Student's t distribution.
Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, volume 2, chapter 28.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import comb
from statistics import NormalDist, median
from typing import Literal, NamedTuple, TypeVar, cast

import numpy as np

from proofmark.cases.case import metrics_of
from proofmark.cases.reference import MATERIAL, NOISE, Metric
from proofmark.cases.suite import Benchmarks
from proofmark.common.message import NOTHING, Message
from proofmark.common.text import percent
from proofmark.plan.step import COUNTED
from proofmark.records.columns import Floats, Record

CONFIDENCE = 0.95
"""The confidence of an interval, if the number of repeats allows it."""
POWER = 0.95
"""The power of a test for the change that it is said to see."""
AGAIN: Literal["measure-again"] = "measure-again"
"""The code of a judgement that misses a limit, and whose repeats do not show it."""


class Interval(NamedTuple):
    """The bounds between which the true value lies with this `confidence`."""

    low: float
    high: float
    confidence: float


def interval(values: Sequence[float]) -> Interval | None:
    """Return the rank-based confidence interval of the median of `values`.

    It lies between the k-th smallest and the k-th greatest value. The median of a continuous
    distribution lies there with a probability that depends only on k and the number of values
    (Conover, Practical Nonparametric Statistics, section 3.2). k is the greatest for which that is
    at least `CONFIDENCE`.

    Returns:
        None for fewer than two values. For two to five values the whole range, with its true
        confidence, which is less than `CONFIDENCE`.
    """
    if len(values) < 2:
        return None
    ordered = sorted(values)
    rank, confidence = _rank(len(ordered))
    return Interval(ordered[rank - 1], ordered[-rank], confidence)


@lru_cache(maxsize=256)
def _rank(count: int) -> tuple[int, float]:
    """Return the rank of the bounds among `count` values, from 1, and the confidence."""
    below = 0  # of 2 ** count: fewer than `rank` values lie below the median
    rank = 1
    while True:
        below += comb(count, rank - 1)
        following = below + comb(count, rank)
        if 1 - 2 * following / 2**count < CONFIDENCE:
            return rank, 1 - 2 * below / 2**count
        rank += 1


Freedom = TypeVar("Freedom", float, Floats)


def quantile_of_t(level: float, freedom: Freedom) -> Freedom:
    """Return the value that Student's t exceeds with the probability `level`; NaN for no freedom.

    Args:
        freedom: degrees of freedom. Any shape.
    """
    from scipy.special import stdtrit  # 0.3 s, which a run without repeats does not need

    known = np.where(np.asarray(freedom) > 0, freedom, np.nan)
    return cast(Freedom, -stdtrit(known, level))


def noncentrality(critical: Floats, freedom: Floats, power: float) -> Floats:
    """Return the distance, in standard errors, that a test finds with the probability `power`.

    The statistic of a test of a level that is really so far away has the noncentral t distribution
    (Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, volume 2, chapter 31).

    Args:
        critical: the value of t from which the test finds a difference; shape (tests,).
        freedom: degrees of freedom of each test; shape (tests,). NaN or 0 gives NaN.
    """
    from scipy.special import nctdtrinc

    pairs, places = np.unique(np.stack([freedom, critical]), axis=1, return_inverse=True)
    known = np.where(pairs[0] > 0, pairs[0], np.nan)
    found = nctdtrinc(known, 1 - power, pairs[1])
    return cast(Floats, found[places.reshape(-1)])


MOST_REPEATS = 1000
"""The largest number of repeats that a reason recommends."""
NOISY = ("noisy", "noisy-once")
"""The codes of the statements that a comparison would not see a material change, or a miss."""

REPEATS: Literal["needs-repeats"] = "needs-repeats"
"""The code of a number of repeats of a run."""

MaterialOf = Callable[[Record], float]
"""Returns the least change of a figure that matters, as a part of its value."""
NoiseOf = Callable[[Record], float]
"""Returns the noise of one repeat of a figure that its case states, as a part of its value."""


def material_of(benchmarks: Benchmarks | None) -> MaterialOf:
    """Return the function with the material changes of the metrics of `benchmarks`."""

    def found(record: Record) -> float:
        metric = _metric(benchmarks, record)
        return metric.material_change if metric else MATERIAL

    return found


def _metric(benchmarks: Benchmarks | None, record: Record) -> Metric | None:
    case = benchmarks.cases.get(record.case) if benchmarks else None
    return metrics_of(case).get(record.metric) if case else None


def noise_of(benchmarks: Benchmarks) -> NoiseOf:
    """Return the function with the stated noises of the metrics of `benchmarks`."""

    def found(record: Record) -> float:
        case = benchmarks.cases.get(record.case)
        if case and case.launch == COUNTED:
            return 0.0  # a number of jobs is counted
        metric = _metric(benchmarks, record)
        return metric.noise if metric else NOISE

    return found


def too_noisy(
    change: float,
    material: float,
    repeats: float,
    what: Literal["needs-repeats", "needs-runs"] = REPEATS,
) -> Message:
    """Return that a material change would not be seen; `NOTHING` if it would be.

    Args:
        change: the change that would be seen, as a part of the value; of a limit how far the true
            level can be beyond it.
        material: the least change that matters, as a part of the value.
        repeats: with how many repeats it would be seen. Infinite if no number is enough; NaN if
            that is not known, because the noise of a repeat is not.
    """
    if change <= material:
        return NOTHING
    needed = _needed(repeats, what)
    return Message("noisy", change=percent(change), material=percent(material), needed=needed)


def measured_once(noise: float, change: float, repeats: float) -> Message:
    """Return that a figure that was measured once can miss its limit.

    Args:
        noise: the noise of a repeat that its case states, as a part of the value.
        change: the part of the limit by which the true level can miss it.
        repeats: with how many repeats that would be seen; infinite if no number is enough.
    """
    needed = _needed(repeats, REPEATS)
    return Message("noisy-once", noise=percent(noise), change=percent(change), needed=needed)


def _needed(repeats: float, what: str) -> Message:
    if math.isnan(repeats):
        return Message("needs-unknown")
    if repeats > MOST_REPEATS:
        return Message("needs-none", most=MOST_REPEATS)
    return Message(what, repeats=f"{repeats:.0f}")


def noise_in(message: Message) -> Message:
    """Return that a change or a miss would not be seen, if `message` states it, or `NOTHING`."""
    return next((each for each in message.nested() if each.code in NOISY), NOTHING)


def possible_repeats(repeats: float) -> int:
    """Return a number of repeats; 0 if it is not known, or more than `MOST_REPEATS`."""
    return 0 if math.isnan(repeats) or repeats > MOST_REPEATS else round(repeats)


def repeats_needed(
    ratio: Floats | float,
    variance: Floats | float,
    per_repeat: Floats | float,
    repeats: Floats | float,
) -> Floats:
    """Return with how many repeats a comparison would see a change that is `ratio` times as large.

    The variance of the comparison is a + b ÷ repeats. The change that is seen is proportional to
    its root. Infinite if a alone is too large; NaN if `per_repeat` is NaN. Arrays of one shape.
    """
    ratio, per_repeat = np.asarray(ratio, dtype=float), np.asarray(per_repeat, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = ratio**2 * variance - (variance - per_repeat / repeats)
        enough = np.where(wanted > 0, np.ceil(per_repeat / wanted), np.inf)
    return np.where(np.isnan(per_repeat), np.nan, enough)


def median_variance(count: int) -> float:
    """Return the variance of the median of normal values × their number ÷ their variance.

    An approximation within 3 %: π ÷ 2 for many values, and 1 for one and two (Hodges and Lehmann,
    The efficiency of some nonparametric competitors, Annals of Mathematical Statistics 27, 1956,
    give the first).
    """
    return math.pi / 2 * count / (count + (math.pi / 2 - 1) * (2 - count % 2))


SIGN_TEST = 5
"""Repeats that all miss a limit by chance with a probability of 1 / 32, if its level is at it."""
FACTOR_OF_ONE = 1.3
"""By this factor a single repeat misses a limit, and shows it. Single repeats of healthy nodes are
up to 20 % slow."""
AGREEING = 3
"""The least number of repeats that agree. Of two, both do."""
DOUBT = 0.05
"""The probability that the true level is further beyond the limit than stated."""
DOUBT_OF_FEW = {2: 0.005, 3: 0.02}
"""That probability for a FAIL of two and of three repeats, whose noise can be small by chance."""
MOST_LOGARITHM = math.log(1000)
"""By more than 1,000 times no miss is stated."""
FACTOR_AT_ANY_NOISE = 2.0
"""A figure whose every repeat is by this factor on the accepted side of its limit meets it at any
noise."""


class OneRepeat(NamedTuple):
    """The noise of a figure that was measured once.

    Attributes:
        spread: the standard deviation of the logarithm of one repeat.
        freedom: the degrees of freedom of `spread`; infinite for a stated noise.
    """

    spread: float
    freedom: float = math.inf

    @property
    def stated(self) -> bool:
        """Whether the noise is stated, and no figures show it."""
        return math.isinf(self.freedom)

    @property
    def interval(self) -> float:
        """The half width of the one-sided interval of the level, as a logarithm."""
        quantile = -NormalDist().inv_cdf(DOUBT) if self.stated else _quantile(self.freedom)
        return quantile * self.spread


def repeats_agree(values: Sequence[float], limit: float, level: float, *, below: bool) -> bool:
    """Return whether repeats agree that the level of a figure misses a limit.

    Those that miss it are at least `AGREEING`, or both of two: healthy nodes have single slow
    repeats. Besides, the interval of the level is beyond `level` (`DOUBT_OF_FEW`), or all of
    `SIGN_TEST` or more repeats miss the limit, or each repeat differs by the factor
    `FACTOR_OF_ONE`.

    Args:
        values: of the repeats, in one unit, not negative.
        level: what the level of the figure differs from: the limit, or what it follows from.
    """
    missed = missing(values, limit, below=below)
    if missed < min(AGREEING, max(len(values), 1)):
        return False
    if min(values) <= 0:
        return below
    if missed == len(values) >= SIGN_TEST:
        return True
    nearest = max(values) if below else min(values)
    if -_margin(nearest, level, least=below) >= math.log(FACTOR_OF_ONE):
        return True
    if len(values) < 2:
        return False
    count = len(values)
    quantile, error = _of_repeats(count, DOUBT_OF_FEW.get(count, DOUBT))
    return -_margin(median(values), level, least=below) >= quantile * (_spread(values) * error)


def missing(values: Sequence[float], limit: float, *, below: bool) -> int:
    """Return the number of values that miss `limit`."""
    return sum(value < limit if below else value > limit for value in values)


def within_by_factor(ratios: Sequence[float], limit: float, *, least: bool) -> bool:
    """Return whether each of `ratios` meets `limit` by the factor `FACTOR_AT_ANY_NOISE`."""
    return (
        min(ratios) >= FACTOR_AT_ANY_NOISE * limit
        if least
        else max(ratios) <= limit / FACTOR_AT_ANY_NOISE
    )


def possible_miss(
    ratios: Sequence[float],
    middle: float,
    limit: float,
    *,
    least: bool,
    once: OneRepeat | None = None,
) -> float | None:
    """Return the part of `limit` by which the true ratio can miss it; None if it is not known.

    If the ratio must be at least `limit`, a repeat of 0 misses it wholly. If it must be at most
    `limit`, the noise of a repeat of 0 is not known: it has no logarithm.

    Args:
        middle: the ratio that is judged.
        once: the noise of a single repeat; None if it is not known. Without noise, as of a number
            of jobs, nothing can be missed.
    """
    if len(ratios) < 2 and not (once and once.spread):
        return None
    if min(ratios) <= 0:
        return 1.0 if least else None
    if once and len(ratios) < 2:
        return _missed(_margin(middle, limit, least=least) - once.interval, least)
    quantile, error = _of_repeats(len(ratios))
    margin, spread = _margin(middle, limit, least=least), _spread(ratios)
    return _missed(margin - quantile * (spread * error), least)


def enough_repeats(
    ratios: Sequence[float],
    middle: float,
    limit: float,
    material: float,
    *,
    least: bool,
    once: OneRepeat | None = None,
) -> float:
    """Return the repeats with which `possible_miss` is at most `material`.

    Infinite if `MOST_REPEATS` are too few. The noise and the middle are taken as they are.

    Raises:
        ValueError: a single repeat without `once`.
    """
    if min(ratios) <= 0:
        return math.inf
    accepted = -math.log1p(-material) if least else math.log1p(material)
    margin = _margin(middle, limit, least=least)
    if len(ratios) > 1:
        spread = _spread(ratios)
    elif once is not None:
        spread = once.spread
    else:
        raise ValueError("a single repeat shows no noise")
    for count in range(len(ratios) + 1, MOST_REPEATS + 1):
        quantile, error = _of_repeats(count)
        if margin - quantile * (spread * error) >= -accepted:
            return count
    return math.inf


@lru_cache(maxsize=256)
def _quantile(freedom: float, doubt: float = DOUBT) -> float:
    return float(quantile_of_t(doubt, freedom))


@lru_cache(maxsize=2 * MOST_REPEATS)
def _of_repeats(count: int, doubt: float = DOUBT) -> tuple[float, float]:
    """Return the quantile of t, and the standard error of the median, of `count` repeats.

    The error is a part of the standard deviation of a repeat. The product of the three is the half
    width of the one-sided interval.
    """
    return _quantile(count - 1.0, doubt), math.sqrt(median_variance(count) / count)


def _spread(ratios: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms of at least two `ratios`.

    `statistics.stdev` computes with fractions, which takes ten times as long.
    """
    logarithms = list(map(math.log, ratios))
    mean = math.fsum(logarithms) / len(logarithms)
    squares = math.fsum((each - mean) ** 2 for each in logarithms)
    return math.sqrt(squares / (len(logarithms) - 1))


def _margin(middle: float, limit: float, *, least: bool) -> float:
    return math.log(middle / limit) if least else math.log(limit / middle)


def _missed(margin: float, least: bool) -> float:
    """Return a margin (logarithm) as the part of the limit that is missed, at least 0."""
    return max(0.0, -math.expm1(margin) if least else math.expm1(min(-margin, MOST_LOGARITHM)))
