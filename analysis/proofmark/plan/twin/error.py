"""The error of the model of a twin: predicted figures compared with those of a real run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import exp, log
from statistics import median

from proofmark.common.strict_model import StrictModel
from proofmark.plan.twin.figures import Figure, Measured, Point


class ErrorRow(StrictModel):
    """The ratios predicted ÷ measured of one metric of a case.

    Attributes:
        figures: the number of figures that both runs have.
        median, smallest, largest: of the ratios.
    """

    case: str
    metric: str
    figures: int
    median: float
    smallest: float
    largest: float

    def range_of(self, predicted: float) -> tuple[float, float]:
        """Return the smallest and the largest real value that the ratios allow for `predicted`."""
        return predicted / self.largest, predicted / self.smallest


class ModelError(StrictModel):
    """The error of a model.

    Attributes:
        run: the id of the measured run.
        rows: one for each case and metric.
        typical: the median of the factors between predicted and measured figures, from 1; None if
            the runs have no figure in common.
        fitted: the number of figures of both runs that were left out: the model was fitted to them.
    """

    run: str
    rows: tuple[ErrorRow, ...]
    typical: float | None
    fitted: int


def model_error(
    measured: Measured, predicted: Iterable[Figure], fitted: Collection[Point] = ()
) -> ModelError:
    """Return the error of the model that predicted figures.

    Figures of the same case, parameters, metric and unit are compared.

    Args:
        measured: the figures of a real run.
        predicted: the figures of the twin.
        fitted: the points that the model was fitted to. No figure of them is compared.
    """
    known = {figure.key: figure.value for figure in measured.figures}
    without = set(fitted)
    ratios: dict[tuple[str, str], list[float]] = {}
    left_out = 0
    for figure in predicted:
        value = known.get(figure.key)
        if value is None:
            continue
        if figure.point in without:
            left_out += 1
        else:
            ratios.setdefault((figure.case, figure.metric), []).append(figure.value / value)
    rows = tuple(
        ErrorRow(
            case=case,
            metric=metric,
            figures=len(found),
            median=median(found),
            smallest=min(found),
            largest=max(found),
        )
        for (case, metric), found in sorted(ratios.items())
    )
    factors = [exp(abs(log(ratio))) for found in ratios.values() for ratio in found]
    typical = median(factors) if factors else None
    return ModelError(run=measured.run, rows=rows, typical=typical, fitted=left_out)
