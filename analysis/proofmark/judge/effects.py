"""How figures change while a run lasts, and beside a load."""

from __future__ import annotations

from dataclasses import dataclass, field

from proofmark.judge.diagnosis.over_time import OverTime, over_time
from proofmark.judge.evidence import Evidence
from proofmark.judge.slowdown import Slowdown, slowdowns


@dataclass(frozen=True)
class RateEffects:
    """What changes the rates of a run.

    Attributes:
        over_time: the comparison of the end of the run with its beginning.
        slowdowns: how much slower figures are beside a load.
    """

    over_time: OverTime = field(default_factory=OverTime)
    slowdowns: tuple[Slowdown, ...] = ()


def rate_effects(evidence: Evidence) -> RateEffects:
    """Return what changes the rates of a run."""
    figures, benchmarks = evidence.figures, evidence.benchmarks
    return RateEffects(
        over_time(figures, benchmarks, evidence.family_level),
        slowdowns(figures, benchmarks, evidence.plan),
    )
