"""Compares the planned time and node-hours of finished steps with the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofmark.runs.step_state import StepState

FACTOR = 2.0
"""The planned time and the measured time of a run may differ by this factor."""


@dataclass(frozen=True)
class TimeOfSteps:
    """The planned and the measured time of some steps.

    Attributes:
        name: of the case; empty for all steps.
        steps: the number of finished steps with a measured time.
        planned_s, measured_s: their seconds.
        planned_node_h, measured_node_h: their node-hours.
    """

    name: str
    steps: int
    planned_s: float
    measured_s: float
    planned_node_h: float
    measured_node_h: float

    @property
    def ratio(self) -> float | None:
        """Measured ÷ planned time; None if either is 0."""
        return self.measured_s / self.planned_s if self.planned_s and self.measured_s else None

    @property
    def within_factor(self) -> bool:
        """Whether time and node-hours differ from the plan by at most `FACTOR`."""
        return all(
            measured <= FACTOR * planned and planned <= FACTOR * measured
            for planned, measured in (
                (self.planned_s, self.measured_s),
                (self.planned_node_h, self.measured_node_h),
            )
        )


def time_of_steps(states: Iterable[StepState], name: str = "") -> TimeOfSteps:
    """Return the planned and the measured time of the finished steps in `states`."""
    timed = [(each.step, each.seconds) for each in states if each.seconds is not None]
    return TimeOfSteps(
        name,
        len(timed),
        sum(step.wall_s for step, _ in timed),
        sum(seconds for _, seconds in timed),
        sum(step.wall_s * len(step.nodes) for step, _ in timed) / 3600,
        sum(seconds * len(step.nodes) for step, seconds in timed) / 3600,
    )


def time_of_cases(states: Sequence[StepState]) -> list[TimeOfSteps]:
    """Return the planned and the measured time of each case with a finished step."""
    cases = dict.fromkeys(each.step.case for each in states)
    times = [
        time_of_steps((each for each in states if each.step.case == case), case) for case in cases
    ]
    return [each for each in times if each.steps]
