"""``repeats=auto``: a first stage of repeats, then more of the steps that are too noisy."""

from __future__ import annotations

import re
from dataclasses import dataclass

FIRST = 3
"""The least number of repeats of the first stage: they give the variance."""
MOST_MINUTES = 100_000
_FORM = re.compile(r"auto(?::([1-9][0-9]{0,5}))?", re.ASCII)


@dataclass(frozen=True)
class AutoRepeats:
    """As many repeats as a material change needs; `minutes`: for more repeats, at most.

    None is the expected time of the first stage.
    """

    minutes: int | None = None

    def __str__(self) -> str:
        return "auto" if self.minutes is None else f"auto:{self.minutes}"

    def repeats(self, of_suite: int) -> int:
        """Return the number of repeats of the first stage."""
        return max(FIRST, of_suite)

    def budget_s(self, first_stage_s: float) -> float:
        """Return the time for more repeats in seconds."""
        return first_stage_s if self.minutes is None else 60.0 * self.minutes


def auto_repeats(text: str) -> AutoRepeats | None:
    """Return ``auto`` or ``auto:MINUTES``; None if `text` is neither."""
    match = _FORM.fullmatch(text)
    if match is None or (match[1] and int(match[1]) > MOST_MINUTES):
        return None
    return AutoRepeats(int(match[1]) if match[1] else None)
