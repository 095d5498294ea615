"""A step with its point, so that steps of one plan can be related by their points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.cases.suite_use import SuiteUse
from proofmark.cases.vocabulary import Scalar
from proofmark.plan.step import Step
from proofmark.plan.sweep import Point, Sweep


@dataclass(frozen=True)
class Draft:
    """A step and its point.

    Attributes:
        use: the use of the case that it belongs to.
        number: the number of this use in its suite, from 0.
        axes: the values of the swept axes.
    """

    step: Step
    use: SuiteUse
    number: int
    axes: Mapping[str, Scalar]


def axes_of(sweep: Sweep, point: Point) -> dict[str, Scalar]:
    """Return the values of the axes that the case or its use sweeps.

    An axis that ``let`` computes, as ranks from nodes, follows from the others and is left out.
    """
    computed = {*sweep.case.let, *sweep.use.let}
    swept = {*sweep.case.sweep, *sweep.use.sweep} - computed
    values = {axis: point.values[axis] for axis in point.axes if axis in swept}
    return {axis: value for axis, value in values.items() if not isinstance(value, list)}
