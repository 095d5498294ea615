"""The change of each figure against the baseline, and the largest change that noise explains.

The logarithm of a value is the level of its figure plus noise. The level of a node in the run is
compared with its own level in the baseline, and with the levels of like nodes there. The test is
Student's t with a moderated variance (`pooled_noise`). The noise is taken from:

- one accepted run: the repeats in that run and in the new run;
- several accepted runs: also the differences between these runs;
- like nodes: the differences between these nodes.

A variance of three repeats is itself uncertain. The variances of like figures scatter around a
common one, and a figure has a mean of both: its own variance, weighted by its degrees of freedom,
and the common variance, weighted by the degrees of freedom that the scatter shows.

Source: Smyth, Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments, Statistical Applications in Genetics and Molecular Biology 3 (2004) 1,
sections 3 and 6.2.

A baseline stores the valid values of a run as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

import numpy as np
import polars as pl

from proofmark.cases.case import TELEMETRY
from proofmark.cases.reference import Metric
from proofmark.cases.suite import Benchmarks
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.confidence import POWER, noncentrality, quantile_of_t
from proofmark.judge.fleet.critical_values import LEAST_NODES, level_of_one
from proofmark.judge.fleet.populations import Kinds
from proofmark.records.columns import Floats, Measurand
from proofmark.site.accepted_baseline import COLUMNS
from proofmark.software.software import Software

Value = TypeVar("Value", float, Floats)
LEAST_LIKE = 8
"""The least number of like figures from which the scatter of variances is estimated."""
LEAST_PART = 1e-5
"""The least variance of a figure, as a part of the median variance of like figures (Smyth)."""


@dataclass(frozen=True)
class PooledNoise:
    """The common variance of like figures.

    Attributes:
        variance: the common variance, in the square of the unit of the values.
        freedom: the degrees of freedom of the common variance in a figure. They are those of all
            figures together if the variances scatter no more than by chance, and 0 if there are
            too few figures.
    """

    variance: float = 0.0
    freedom: float = 0.0

    def moderated(self, variance: Value, freedom: Value) -> tuple[Value, Value]:
        """Return the variance of each figure and its degrees of freedom.

        Args:
            variance: the variance of each figure, from its own values. Shape (figures,), or one.
            freedom: the degrees of freedom of `variance`, in the same shape.
        """
        total = freedom + self.freedom
        with np.errstate(invalid="ignore"):
            mean = (self.freedom * self.variance + freedom * variance) / total
        return mean, total


def pooled_noise(
    variance: Floats, freedom: Floats, *, least: int = LEAST_LIKE, caution: float = 0.0
) -> PooledNoise:
    """Return the common variance of like figures.

    Args:
        variance: the variance of each figure. Shape (figures,).
        freedom: the degrees of freedom of each variance. Shape (figures,).
        caution: standard errors that are added to the scatter. With them, few figures that differ
            by chance less than they should do not share their noise.
    """
    from scipy.special import digamma, polygamma  # 0.3 s, which runs without a baseline do not need

    known = freedom > 0
    variance, freedom = variance[known], freedom[known]
    positive = variance[variance > 0]
    if len(variance) < least or not len(positive):
        return PooledNoise()
    variance = np.maximum(variance, LEAST_PART * np.median(positive))
    half = freedom / 2
    logs = np.log(variance) - digamma(half) + np.log(half)
    centre = float(np.mean(logs))
    expected = float(np.mean(polygamma(1, half)))
    wider = 1 + caution * np.sqrt(2 / (len(logs) - 1))
    scatter = float(np.var(logs, ddof=1)) * wider - expected
    if scatter <= 0:
        return PooledNoise(float(np.average(variance, weights=freedom)), float(freedom.sum()))
    half_prior = _inverse_trigamma(scatter)
    common = np.exp(centre + digamma(half_prior) - np.log(half_prior))
    return PooledNoise(float(common), min(2 * half_prior, float(freedom.sum())))


def _inverse_trigamma(value: float) -> float:
    """Return x with ψ'(x) = `value` > 0, by the bounds 1 / x < ψ'(x) < 1 / x + 1 / x²."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    most = (1 + np.sqrt(1 + 4 * value)) / (2 * value)
    return float(brentq(lambda x: polygamma(1, x) - value, 1 / value, most, xtol=1e-300))


FIGURE, LOWER, MATERIAL = "figure", "lower", "material"
"""Columns of the table of a run: the number of the figure; whether lower values are better; the
least change that matters, as a part of the value."""


def values_table(
    figures: Aggregates, benchmarks: Benchmarks, kinds: Kinds, programs: Mapping[str, str]
) -> pl.DataFrame:
    """Return the values of the valid figures whose speed can be compared.

    Digits of a result, sensors, metrics without `better`, and figures with a value that is not
    positive are left out.

    Args:
        benchmarks: the cases; their metrics state whether higher or lower is better.
        programs: the digests of the programs by environment hash; a hash that it lacks stands for
            itself.

    Returns:
        `COLUMNS`, `FIGURE`, `LOWER` and `MATERIAL`, one row per value.
    """
    records = figures.records
    about = [compared_metric(benchmarks, each.case, each.metric) for each in records.measurands]
    comparable = np.array([each is not None for each in about], dtype=bool)
    least, _ = figures.ranges
    chosen = np.flatnonzero(figures.valid & comparable[figures.measurand] & (least > 0))
    members = np.concatenate([figures.members(int(each)) for each in chosen] or [figures.order[:0]])
    number = np.repeat(chosen, figures.count[chosen])
    kind, names = kinds.numbers(records.nodes)
    texts = [f"{count} × {hardware}" for hardware, count in names]
    values = {"run": records.run, "value": records.value[members], FIGURE: number}
    of_node = {"node": records.nodes, "kind": [texts[each] for each in kind]}
    of_measurand = pl.DataFrame(
        records.measurands, dict.fromkeys(Measurand._fields, pl.String), orient="row"
    ).with_columns(
        pl.col("environment_hash").replace(programs).alias("program"),
        pl.Series(LOWER, [each is not None and each.better == "lower" for each in about]),
        pl.Series(MATERIAL, [each and each.material_change for each in about], pl.Float64),
    )
    found: pl.DataFrame = pl.concat(
        [
            pl.DataFrame(values),
            pl.DataFrame(of_node)[records.node[members]],
            of_measurand[records.measurand[members]],
        ],
        how="horizontal",
    )
    schema = {**COLUMNS, FIGURE: pl.Int64, LOWER: pl.Boolean, MATERIAL: pl.Float64}
    return found.select(*schema).cast(pl.Schema(schema))


def programs_of(software: Software) -> dict[str, str]:
    """Return the digest of the programs of each package, by its environment hash."""
    return {each.environment_hash: each.program_hash for each in software.packages.values()}


def compared_metric(benchmarks: Benchmarks, case: str, metric: str) -> Metric | None:
    """Return a metric; None if its values are not compared."""
    found = benchmarks.cases.get(case)
    about = found.metrics.get(metric) if found else None
    if about is None or about.same_digits or not about.peers or metric in TELEMETRY:
        return None
    return about


QUANTITY = ("case", "benchmark", "metric", "unit", "origin", "mode", "placement", "parameters")
"""What two figures must share, besides program and hardware, to be comparable."""
LIKE = (*QUANTITY, "program", "kind")
"""What a figure shares with that of like nodes in the baseline."""
OWN = (*LIKE, "node")
"""What a figure shares with that of the same node in the baseline."""
POOLS = (("case", "metric", "kind"), ("case", "unit", "kind"))
"""Figures that share the first of these keys with enough others have a common noise."""
POOL = ("case", "metric", "unit", "kind")
"""The columns of `POOLS`."""
_LOG, _MEAN, _VARIANCE, _COUNT, _REST = "log", "mean", "variance", "count", "rest"


@dataclass(frozen=True, eq=False)
class Limits:
    """Figures of a run that the baseline has too. All arrays have the shape (compared,).

    Attributes:
        reference: the level in the baseline, in the unit of the figure: the geometric mean.
        change: the logarithm of the level in the run ÷ that in the baseline, with the sign that
            makes a worse figure positive.
        noise: the standard deviation of one value, as a part of it; NaN if it is not known.
        error: the standard error of `change`; NaN if the noise is not known.
        material: the least change that matters, as a part of the value.
        per_repeat: the variance of `change` that repeats of the run make smaller, for one repeat.
    """

    figure: Floats
    reference: Floats
    change: Floats
    noise: Floats
    error: Floats
    freedom: Floats
    lower: Floats
    material: Floats
    per_repeat: Floats
    repeats: Floats
    count: Floats

    def largest(self, family_level: float, tests: int) -> Floats:
        """Return the largest `change` that noise explains; NaN if the noise is not known.

        Args:
            family_level: probability that any of `tests` figures is worse by chance.
        """
        return quantile_of_t(level_of_one(family_level, tests), self.freedom) * self.error

    def visible(self, largest: Floats) -> Floats:
        """Return the `change` of which 95 of 100 exceed `largest`; NaN if the noise is not known.

        A change that is as large as `largest` exceeds it in one of two runs only.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            critical = np.where(self.error > 0, largest / self.error, 0.0)
        found = noncentrality(critical, self.freedom, POWER) * self.error
        return np.where(self.error > 0, found, largest)


def limits_of(run: pl.DataFrame, baseline: pl.DataFrame) -> tuple[Limits, Limits]:
    """Return the figures of `run` that `baseline` has of the same nodes, and of like nodes."""
    digits = pl.col("value").cast(pl.String).str.extract(r"\.(\d+)$").str.len_chars()
    decimals = pl.when(pl.col("value") == pl.col("value").floor()).then(0).otherwise(digits)
    resolution = (
        pl.concat([run.select(baseline.columns), baseline])
        .group_by("case", "metric")
        .agg((10.0 ** -decimals.fill_null(99).max().cast(pl.Float64)).alias("resolution"))
    )
    now = _levels(run, (*OWN, FIGURE, LOWER, MATERIAL), resolution)
    runs = _levels(baseline, (*OWN, "run"), resolution)
    repeats = pl.concat([each.select(*POOL, _VARIANCE, _REST) for each in (now, runs)])
    nodes = runs.group_by(OWN, maintain_order=True).agg(pl.col(_MEAN).mean())
    before = (
        nodes.group_by(LIKE, maintain_order=True)
        .agg(
            pl.col(_MEAN).mean().alias("level"),
            pl.col(_MEAN).var().alias("between"),
            pl.len().cast(pl.Float64).alias("nodes"),
        )
        .filter(pl.col("nodes") >= LEAST_NODES)
    )
    both = now.join(before, on=LIKE, how="inner", maintain_order="left")
    count = _array(both, "nodes")
    scatter = before.select(*POOL, pl.col("between").alias(_VARIANCE), pl.col("nodes") - 1)
    between, freedom = _moderated(
        both, _array(both, "between"), count - 1, scatter.rename({"nodes": _REST})
    )
    within, _ = _moderated(both, _array(both, _VARIANCE), _array(both, _REST), repeats)
    # The levels of the baseline contain the noise of their repeats.
    error = between * (1 + 1 / count) + np.nan_to_num(within) / _array(both, _COUNT)
    noise = _Noise(np.sqrt(between), np.sqrt(error), freedom, np.nan_to_num(within))
    return _own_limits(now, runs, repeats), _limits(both, noise, count)


def _own_limits(now: pl.DataFrame, runs: pl.DataFrame, repeats: pl.DataFrame) -> Limits:
    """Return the figures of the run that the same nodes have in the baseline."""
    before = runs.group_by(OWN, maintain_order=True).agg(
        pl.col(_MEAN).mean().alias("level"),
        pl.col(_MEAN).var().fill_null(0.0).alias("between"),
        pl.len().cast(pl.Float64).alias("runs"),
        (pl.col(_VARIANCE) * pl.col(_REST)).sum().alias("squares"),
        pl.col(_REST).sum().alias("rest_before"),
        pl.col(_COUNT).sum().alias("count_before"),
    )
    both = now.join(before, on=OWN, how="inner", maintain_order="left")
    rest = _array(both, _REST) + _array(both, "rest_before")
    squares = _array(both, _VARIANCE) * _array(both, _REST) + _array(both, "squares")
    own = np.divide(squares, rest, out=np.zeros_like(rest), where=rest > 0)
    within, freedom = _moderated(both, own, rest, repeats)
    error = within * (1 / _array(both, _COUNT) + 1 / _array(both, "count_before"))
    several = _array(both, "runs")
    scatter = before.select(*POOL, pl.col("between").alias(_VARIANCE), pl.col("runs") - 1)
    between, freedom_between = _moderated(
        both, _array(both, "between"), several - 1, scatter.rename({"runs": _REST})
    )
    wider = between * (1 + 1 / several)
    # The noise between runs contains that of repeats. Its estimate from few runs may be smaller.
    use = (several > 1) & ~(wider < error)
    return _limits(
        both,
        _Noise(
            np.sqrt(within),
            np.sqrt(np.where(use, wider, error)),
            np.where(use, freedom_between, freedom),
            np.where(use, 0.0, within),
        ),
        several,
    )


class _Noise(NamedTuple):
    """Arrays of `Limits`, of the same shape."""

    noise: Floats
    error: Floats
    freedom: Floats
    per_repeat: Floats


def _limits(both: pl.DataFrame, noise: _Noise, count: Floats) -> Limits:
    lower = both[LOWER].to_numpy()
    sign = np.where(lower, 1.0, -1.0)
    level = _array(both, "level")
    change = sign * (_array(both, _MEAN) - level)
    unknown = ~(noise.freedom > 0)
    return Limits(
        figure=both[FIGURE].to_numpy(),
        reference=np.exp(level),
        change=change,
        noise=np.where(unknown, np.nan, noise.noise),
        error=np.where(unknown, np.nan, noise.error),
        freedom=noise.freedom,
        lower=lower,
        material=_array(both, MATERIAL),
        per_repeat=noise.per_repeat,
        repeats=_array(both, _COUNT),
        count=count,
    )


def _levels(table: pl.DataFrame, key: Sequence[str], resolution: pl.DataFrame) -> pl.DataFrame:
    """Return mean, variance, count and degrees of freedom of the logarithms of each `key`.

    The variance is at least that of rounding to the printed digits.
    """
    with_resolution = table.join(resolution, on=resolution.columns[:2], maintain_order="left")
    return with_resolution.group_by(key, maintain_order=True).agg(
        pl.col("value").log().mean().alias(_MEAN),
        pl.max_horizontal(
            pl.col("value").log().var().fill_null(0.0),
            (pl.col("resolution") ** 2 / 12 / pl.col("value").mean() ** 2).first(),
        ).alias(_VARIANCE),
        pl.len().cast(pl.Float64).alias(_COUNT),
        (pl.len() - 1).cast(pl.Float64).alias(_REST),
    )


def _moderated(
    both: pl.DataFrame, variance: Floats, freedom: Floats, known: pl.DataFrame
) -> tuple[Floats, Floats]:
    """Return the moderated variance of each row of `both`, and its degrees of freedom.

    Args:
        known: the columns `POOL`, `_VARIANCE` and `_REST` of all like figures. The noise of a row
            is pooled with those that share the first key of `POOLS` for which there are enough.
    """
    moderated, total = variance.copy(), freedom.copy()
    left = np.ones(len(variance), dtype=bool)
    for key in POOLS:
        pools = {names: pool for names, pool in known.group_by(key)}
        rows = both.with_row_index("row").group_by(key, maintain_order=True).agg("row")
        for *names, members in rows.iter_rows():
            pool = pools[tuple(names)]
            variances, freedoms = _array(pool, _VARIANCE), _array(pool, _REST)
            if (freedoms > 0).sum() < LEAST_LIKE and key != POOLS[-1]:
                continue
            chosen = np.array(members)[left[members]]
            noise = pooled_noise(variances, freedoms)
            moderated[chosen], total[chosen] = noise.moderated(variance[chosen], freedom[chosen])
            left[members] = False
    return moderated, total


def _array(table: pl.DataFrame, column: str) -> Floats:
    return cast(Floats, table[column].to_numpy().astype(np.float64))
