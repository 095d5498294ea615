"""The figure of a limit that is nearest to the limit, or that misses it most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from proofmark.judge.aggregate import Aggregates
from proofmark.judge.references.bounds import Bounds
from proofmark.judge.references.judgement import Judgement


@dataclass(frozen=True)
class WorstFigure:
    """The worst figure of a limit.

    Attributes:
        value: the median of the figure, in `unit`.
        accepted: the accepted values, in `unit`.
        node: the node or the nodes that measured it, as records name them.
        step: the step that measured it.
        outcome: of its judgement.
    """

    value: float
    unit: str
    accepted: Bounds
    node: str
    step: str
    outcome: str


def worst_figure(
    figures: Aggregates, judgements: Iterable[tuple[int, Judgement]]
) -> WorstFigure | None:
    """Return the worst figure of a limit; None if none was compared.

    Args:
        figures: the figures of a run.
        judgements: the figures that the limit applies to, with the judgement.
    """
    compared = [pair for pair in judgements if pair[1].evaluated]
    if not compared:
        return None
    figure, judgement = min(compared, key=lambda pair: margin(pair[1]))
    record = figures.record(figure)
    accepted = judgement.bounds.times(judgement.value or 0.0)
    # The median of paired ratios can differ from the ratio of the medians.
    measured = float(figures.median[figure])
    return WorstFigure(measured, record.unit, accepted, record.node, record.step, judgement.outcome)


def margin(judgement: Judgement) -> float:
    """Return the distance of a ratio from its nearest bound, as a share of the bound.

    It is negative for a figure outside the bounds.
    """
    ratio = judgement.ratio or 0.0
    low, high = judgement.bounds
    distances = [
        *([ratio / low - 1] if low is not None else []),
        *([1 - ratio / high] if high is not None else []),
    ]
    return min(distances)
