"""What a comparison would see, and with how many repeats it would see a material change.

A figure that is like its reference shows nothing if a change that matters would look the same.
All comparisons, of limits, baselines, like nodes, runs and trends, use the rule of this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np

from proofmark.cases.reference import MATERIAL, NOISE
from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import metrics_of
from proofmark.common.message import NOTHING, Message
from proofmark.common.text import percent
from proofmark.judge.intervals import CONFIDENCE, POWER, noncentrality, rank_of_bounds
from proofmark.plan.step import COUNTED
from proofmark.records.columns import Floats, Record

MOST_REPEATS = 1000
"""The largest number of repeats that a reason recommends."""
_SAMPLES, _SIMULATED_PAIRS, _SEED = 1_000_000, 100, 35

NOISY = ("noisy", "noisy-once")
"""The codes of the statements that a comparison would not see a material change, or a miss."""

REPEATS: Literal["needs-repeats"] = "needs-repeats"
"""The code of a number of repeats of a run."""

MaterialOf = Callable[[Record], float]
"""Returns the least change of a figure that matters, as a part of its value."""
NoiseOf = Callable[[Record], float]
"""Returns the noise of one repeat of a figure that its case states, as a part of its value."""


def material_of(benchmarks: Benchmarks | None = None) -> MaterialOf:
    """Return the function with the material changes of the metrics of `benchmarks`."""

    def found(record: Record) -> float:
        case = benchmarks.cases.get(record.case) if benchmarks else None
        metric = metrics_of(case).get(record.metric) if case else None
        return metric.material_change if metric else MATERIAL

    return found


def noise_of(benchmarks: Benchmarks | None = None) -> NoiseOf:
    """Return the function with the stated noises of the metrics of `benchmarks`."""

    def found(record: Record) -> float:
        case = benchmarks.cases.get(record.case) if benchmarks else None
        if case and case.launch == COUNTED:
            return 0.0  # a number of jobs is counted
        metric = metrics_of(case).get(record.metric) if case else None
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
        what: the code that says what is repeated.
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

    Args:
        ratio: the wanted change ÷ the change that would be seen.
        per_repeat: b, the part of one repeat.
        repeats: the number of repeats that were measured.
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


def change_seen(
    first: Sequence[float], later: Sequence[float], material: float
) -> tuple[float, float]:
    """Return the change between two samples of positive values that would be seen.

    The second number is that of the values of each sample with which `material` would be seen.
    """
    counts = len(first), len(later)
    logs = [np.log(first), np.log(later)]
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    spread = math.sqrt(squares / (sum(counts) - 2))
    shift = shift_seen(*counts)
    visible = shift if math.isinf(shift) else shift * spread
    wanted = -math.log1p(-material)
    most = math.isqrt(_SIMULATED_PAIRS)
    few = (each for each in range(min(counts), most + 1) if math.isfinite(shift_seen(each, each)))
    enough = (each for each in few if shift_seen(each, each) * spread <= wanted)
    of_many = math.ceil(2 * (_efficient_shift(1.0) * spread / wanted) ** 2)
    repeats = next(enough, max(of_many, *counts))
    return -math.expm1(-visible), float(repeats)


@lru_cache(maxsize=256)
def shift_seen(first: int, later: int) -> float:
    """Return the shift between two samples that their interval excludes with the power `POWER`.

    It is in standard deviations of a value. The interval is that of `judge.intervals`; infinite if
    the samples are too small for its confidence. Few pairs are simulated with normal values. For
    many the efficiency 3 ÷ π of the test is used (Hollander, Wolfe and Chicken, section 4.5).
    """
    if first * later > _SIMULATED_PAIRS:
        return _efficient_shift(1 / first + 1 / later)
    rank, confidence = rank_of_bounds(first, later)
    if confidence < CONFIDENCE:
        return math.inf
    random = np.random.default_rng(_SEED)
    trials = _SAMPLES // (first * later)
    values = random.standard_normal((trials, first + later))
    pairs = (values[:, first:, None] - values[:, None, :first]).reshape(trials, -1)
    bounds = np.partition(pairs, rank - 1, axis=1)[:, rank - 1]
    return float(-np.quantile(bounds, 1 - POWER))


def _efficient_shift(variance: float) -> float:
    """Return the shift of `shift_seen` for large samples whose means differ with `variance`."""
    normal = NormalDist()
    distance = normal.inv_cdf((1 + CONFIDENCE) / 2) + normal.inv_cdf(POWER)
    return distance * math.sqrt(math.pi / 3 * variance)


def step_seen(critical: float, freedom: float, length: int, share: float) -> float:
    """Return the step in the middle of `length` values of a series that is seen (`POWER`).

    It is in standard deviations of a value. The means must differ by more than `critical` standard
    errors, and a `share` of the values on either side must be on their own side of the middle. Each
    condition fails in half of the missed cases.
    """
    from scipy.special import betaincinv, ndtri

    half, each = length // 2, 1 - (1 - POWER) / 2
    of_means = noncentrality(np.array([critical]), np.array([freedom]), each)[0]
    least = math.ceil(share * half)
    of_shares = 2 * ndtri(betaincinv(least, half - least + 1, math.sqrt(each)))
    return float(max(of_means * math.sqrt(1 / half + 1 / (length - half)), of_shares))
