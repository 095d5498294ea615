"""False alarms and power on simulated fleets of 8,305 nodes: ``python -m tests.bench.fleet``."""

from __future__ import annotations

import numpy as np

from proofmark.judge.fleet.thresholds import fleet_limit, level_of_one

NODES, FIGURES, BAD = 8305, 12, 40


def alarms(spread: float, runs: int, level: float) -> int:
    """Return on how many of `runs` healthy machines any node is flagged."""
    numbers, one = np.random.default_rng(1), level_of_one(level, FIGURES)
    flagged = 0
    for _ in range(runs):
        rows = 100 * (1 + spread * numbers.standard_normal((FIGURES, NODES)))
        flagged += any(row.min() < (fleet_limit(row, "higher", one).limit or 0.0) for row in rows)
    return flagged


def curve(spread: float, drop: float, trials: int = 20) -> tuple[float, float]:
    """Return the share of the bad nodes that is detected, and the stated power."""
    numbers, one = np.random.default_rng(2), level_of_one(0.01, FIGURES)
    detected, stated = 0, 0.0
    for _ in range(trials):
        row = 1 + spread * numbers.standard_normal(NODES)
        row[:BAD] -= drop
        limit = fleet_limit(row, "higher", one)
        detected += int((row[:BAD] < (limit.limit or 0.0)).sum())
        stated += limit.power_at(drop) / trials
    return detected / trials / BAD, stated


def main() -> None:
    for spread in (0.01, 0.015):
        print(f"spread {spread}: {alarms(spread, 200, 0.05)} of 200 healthy machines, level 0.05")
        for drop in (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12):
            measured, stated = curve(spread, drop)
            print(f"spread {spread}, drop {drop}: detected {measured:.3f}, stated {stated:.3f}")


if __name__ == "__main__":
    main()
