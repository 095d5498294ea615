"""The rate of all pairs of a round that cross a level of the fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from proofmark.common.units import factor
from proofmark.judge.links.link_fit import Fit
from proofmark.records.columns import Floats, Numbers


@dataclass(frozen=True)
class Bisection:
    """The rates of the pairs of one round that cross a level, together.

    Attributes:
        level: the level whose switches they leave.
        case, benchmark, metric: what was measured.
        round: the step of the round.
        pairs: their number.
        bytes_per_s: the sum of their rates.
        share: of the rate that the links allow them; None if the rate of the links is not declared.
    """

    level: str
    case: str
    benchmark: str
    metric: str
    round: str
    pairs: int
    bytes_per_s: float
    share: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return asdict(self)


def bisections(fit: Fit, steps: Sequence[str]) -> Iterator[Bisection]:
    """Yield the rate across each level, by rate that was measured.

    The round with the most pairs that cross the level is used; of several, the first. What the
    links allow is computed from the declared uplinks. Uplinks that are not declared are assumed to
    limit no pair.

    Args:
        fit: the measurements of the run.
        steps: the step of each round.
    """
    samples, paths = fit.samples, fit.elements.paths
    distance = paths.distance(samples.pairs)
    for number, series in enumerate(samples.of):
        unit = factor(series.unit, "byte/s")
        if series.alone or not series.rate or unit is None:
            continue
        both = 1 if series.one_way else 2
        for level, tier in enumerate(paths.tiers):
            crosses = (samples.series == number) & (distance > level)
            if not crosses.any():
                continue
            fullest = int(np.argmax(np.bincount(samples.round[crosses])))
            chosen: Numbers = np.flatnonzero(crosses & (samples.round == fullest))
            total = float(samples.value[chosen].sum()) * unit
            yield Bisection(
                level=tier.name,
                case=series.case,
                benchmark=series.benchmark,
                metric=series.metric,
                round=steps[fullest],
                pairs=len(chosen),
                bytes_per_s=total,
                share=_share(total, fit.about.share[chosen], paths.node_rate, both),
            )


def _share(total: float, shares: Floats, link: float | None, both: int) -> float | None:
    return None if link is None else total / (float(shares.sum()) * link * both)
