"""The error of a twin's model: ratios of predicted and measured figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.packages.twin.twin_error import model_error
from proofmark.packages.twin.twin_files import ErrorRow, MeasuredFigures, ModelError, TwinFigure

VALUES = st.floats(1e-9, 1e9)


def figure(size: int, value: float, metric: str = "t_avg", case: str = "imb") -> TwinFigure:
    return TwinFigure(
        case=case,
        benchmark="Bcast",
        metric=metric,
        unit="usec",
        mode="current",
        placement="close",
        parameters={"bytes": size},
        value=value,
    )


@given(st.lists(VALUES, min_size=1, max_size=9))
def test_a_perfect_prediction_has_no_error(values: list[float]) -> None:
    figures = [figure(size, value) for size, value in enumerate(values)]
    error = model_error(MeasuredFigures(run="real", figures=tuple(figures)), figures)
    assert error.typical == 1
    (row,) = error.rows
    assert (row.figures, row.median, row.smallest, row.largest) == (len(values), 1, 1, 1)
    assert ModelError.model_validate_json(error.model_dump_json()) == error


@given(VALUES, st.floats(0.01, 100))
def test_too_fast_and_too_slow_are_the_same_factor(value: float, factor: float) -> None:
    measured = MeasuredFigures(run="real", figures=(figure(1, value),))
    slow = model_error(measured, [figure(1, value * factor)]).typical
    assert slow == pytest.approx(max(factor, 1 / factor))


def test_each_case_and_metric_has_a_row() -> None:
    measured = [figure(1, 2.0), figure(2, 2.0), figure(3, 2.0), figure(1, 4.0, "t_max")]
    predicted = [figure(1, 1.0), figure(2, 2.0), figure(3, 8.0), figure(1, 2.0, "t_max")]
    error = model_error(MeasuredFigures(run="real", figures=tuple(measured)), predicted)
    assert error.rows == (
        ErrorRow(case="imb", metric="t_avg", figures=3, median=1, smallest=0.5, largest=4),
        ErrorRow(case="imb", metric="t_max", figures=1, median=0.5, smallest=0.5, largest=0.5),
    )
    assert error.typical == 2


def test_figures_of_the_fit_are_left_out_in_all_metrics() -> None:
    measured = [figure(1, 2.0), figure(1, 2.0, "t_max"), figure(2, 2.0)]
    error = model_error(
        MeasuredFigures(run="real", figures=tuple(measured)), measured, [figure(1, 9.0).point]
    )
    assert error.fitted == 2
    assert sum(row.figures for row in error.rows) == 1


def test_figures_of_one_run_only_are_not_compared() -> None:
    measured = MeasuredFigures(run="real", figures=(figure(1, 2.0), figure(2, 2.0, case="other")))
    error = model_error(measured, [figure(2, 2.0), figure(1, 2.0).model_copy(update={"unit": "s"})])
    assert error == ModelError(run="real", rows=(), typical=None, fitted=0)
