"""Where a line that starts below another one meets it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from proofmark.papers.change_point import Line
from proofmark.papers.repeat_noise import Noise, margin


@dataclass(frozen=True)
class Meeting:
    """Where a line that starts below 1 meets 1: the best place, and all that fit the line."""

    best: float
    fitting: tuple[float, ...]


def meeting_of(line: Line, noise: Noise) -> Meeting:
    """Return where the ratios meet 1.

    The model is a straight line of the logarithm up to the meeting, and 1 from there on. Places
    fit if the sum of squares is not clearly larger than that of the best place. Places after the
    end of the line are tried too.
    """
    logs = [(x, math.log(y)) for x, y in line]
    last = logs[-1][0]
    sums: dict[float, float] = {}
    for place in (*(x for x, _ in logs), *(last + more for more in range(1, len(logs)))):
        distances = [max(0.0, place - x) for x, _ in logs]
        norm = sum(distance**2 for distance in distances)
        steep = sum(d * y for d, (_, y) in zip(distances, logs, strict=True)) / norm if norm else 0
        sums[place] = sum((y - steep * d) ** 2 for d, (_, y) in zip(distances, logs, strict=True))
    best = min(sums, key=lambda place: sums[place])
    slack = margin((noise, 1), (noise, 1)) ** 2
    return Meeting(best, tuple(place for place in sums if sums[place] <= sums[best] + slack))
