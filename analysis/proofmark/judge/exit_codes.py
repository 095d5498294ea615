"""The exit code of a verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class MeasuredCounts(Protocol):
    """The numbers of a coverage that decide the exit code."""

    @property
    def expected(self) -> int:
        """The number of planned steps."""

    @property
    def measured(self) -> int:
        """The number of steps with a record."""

    @property
    def duplicate(self) -> int:
        """The number of figures that one execution gave twice."""


def exit_code(
    counts: Mapping[str, int],
    coverage: MeasuredCounts,
    unmet: Collection[str] = (),
    enough: bool = False,
    faults: Collection[object] = (),
) -> int:
    """Return the exit code of a verdict.

    2: INVALID, or a step not measured once. 1: FAIL, or a fault that no figure has. 4: nothing was
    judged, or not everything that must be judged. 0: PASS.

    Args:
        counts: the number of results by verdict.
        coverage: the planned and the measured steps.
        unmet: the limits and required metrics that were not judged.
        enough: whether floors and peers suffice, and judged a figure.
        faults: the faults of nodes that no figure has.
    """
    if counts.get("INVALID") or coverage.measured < coverage.expected or coverage.duplicate:
        return 2
    if counts.get("FAIL") or faults:
        return 1
    if unmet:
        return 4
    return 0 if counts.get("PASS") or enough else 4
