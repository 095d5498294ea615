"""The figure of each contract limit that is nearest to the limit, or that misses it most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.cases.models import Benchmarks
from proofmark.judge.references.compare import Judgement, ordered_references
from proofmark.judge.results import Results
from proofmark.site.partition import Limit


@dataclass(frozen=True)
class WorstFigure:
    """The worst figure of a limit.

    Attributes:
        value: the median of the figure, in `unit`.
        accepted: the bounds in `unit`, least and greatest; None for a bound that the limit lacks.
        node: the node or the nodes that measured it, as records name them.
        step: the step that measured it.
        outcome: of its judgement.
    """

    value: float
    unit: str
    accepted: tuple[float | None, float | None]
    node: str
    step: str
    outcome: str


def worst_figures(
    results: Results, benchmarks: Benchmarks, limits: Sequence[Limit]
) -> list[WorstFigure | None]:
    """Return the worst figure of each of `limits`, in their order; None if none was compared.

    Args:
        results: the judged figures of a run.
        benchmarks: the cases of the run.
        limits: the contract limits of its site.
    """
    references = ordered_references(benchmarks, limits)
    first = len(references) - len(limits)
    return [_worst(results, first + number) for number in range(len(limits))]


def _worst(results: Results, place: int) -> WorstFigure | None:
    compared = [pair for pair in results.by_reference.get(place, ()) if pair[1].evaluated]
    if not compared:
        return None
    figure, judgement = min(compared, key=lambda pair: margin(pair[1]))
    record, value = results.aggregates.record(figure), judgement.value or 0.0
    bounds = (judgement.at_least, judgement.at_most)
    low, high = (None if bound is None else bound * value for bound in bounds)
    # The median of paired ratios can differ from the ratio of the medians.
    measured = float(results.aggregates.median[figure])
    return WorstFigure(
        measured, record.unit, (low, high), record.node, record.step, judgement.outcome
    )


def margin(judgement: Judgement) -> float:
    """Return the distance of a ratio from its nearest bound, as a share of the bound.

    It is negative for a figure outside the bounds.
    """
    ratio = judgement.ratio or 0.0
    low, high = judgement.at_least, judgement.at_most
    distances = [
        *([ratio / low - 1] if low is not None else []),
        *([1 - ratio / high] if high is not None else []),
    ]
    return min(distances)
