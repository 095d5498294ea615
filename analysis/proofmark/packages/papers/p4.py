"""Claims of paper P4: the time of collective I/O (BT-IO) for each placement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import fmean

from proofmark.packages.papers.claim import (
    Claim,
    ClaimDecision,
    Estimate,
    Found,
    Machines,
    Measured,
    Noise,
    Size,
    SweepNeed,
    Values,
    effect_size,
    every,
    mean_of,
    mostly,
)

SYSTEM = "p595"
NODES = ("BAL", "UNBAL")
INSIDE = ("DIST", "ACC")
PLACEMENTS = tuple(f"{node}-{inside}" for node in NODES for inside in INSIDE)
SMALL, LARGE = 524288, 1048576
"""Block sizes of the file system in bytes."""
RANKS = {
    "A": (4, 16, 36, 64, 100, 144, 196, 256, 324),
    "B": (4, 16, 36, 64, 100, 144, 196, 256, 324, 400, 484, 576, 676, 784, 900),
    "C": (4, 16, 36, 64, 100, 144, 196, 256, 324, 400, 484, 576, 676, 784, 900),
}
"""Every second square number."""
SAME = (1, 1024)
"""Numbers of processes with which all placements over 16 nodes of 64 cores are the same."""

LITTLE = 0.10
"""Relative difference up to which there is little difference."""
BETTER = 0.01
"""Relative difference of mean times from which on one is better."""
GAIN = 0.10
"""Part of the time from which on a saving is a gain."""
MATTERS = 0.02
"""Accepted decrease of the effect of placement in a larger class, by chance."""
CLASS_C = 0.05
"""Least increase of the effect of placement from class A to class C."""
MIN_SHARE_OF_POINTS = 0.90
"""Part of the points at which a relation must hold."""


def _needs(machines: Machines) -> list[SweepNeed]:
    return [
        SweepNeed(
            SYSTEM,
            "npb-btio",
            "s",
            {"metric": "io_time", "subtype": "full", "class": name},
            {"placement": PLACEMENTS, "fs_block_bytes": (SMALL, LARGE), "ranks": ranks},
        )
        for name, ranks in RANKS.items()
    ]


COMBINED = 4
"""Ratios at a number of processes: two placements of the other kind × two block sizes."""


def _inside_logs(values: Values) -> list[float]:
    """Return the mean log(DIST ÷ ACC) at each number of processes."""
    return _logs(values, [(f"{node}-DIST", f"{node}-ACC") for node in NODES], except_for=())


def _node_logs(values: Values) -> list[float]:
    """Return the mean log(BAL ÷ UNBAL) at each number of processes where the two differ."""
    return _logs(values, [(f"BAL-{inside}", f"UNBAL-{inside}") for inside in INSIDE], SAME)


def _logs(
    values: Values, pairs: Sequence[tuple[str, str]], except_for: Sequence[int]
) -> list[float]:
    """Return the mean logarithm of the ratio of placements at each complete number of processes."""
    by_ranks: dict[object, list[float]] = {}
    for one, other in pairs:
        for (placement, block, ranks), time in values.items():
            against = values.get((other, block, ranks))
            if placement == one and against and ranks not in except_for:
                by_ranks.setdefault(ranks, []).append(math.log(time / against))
    return [fmean(logs) for logs in by_ranks.values() if len(logs) >= COMBINED]


def _little(size: Size, noise: Noise) -> Found:
    """Return whether an effect is little: not if the repeats of one figure differ by more."""
    if size.least > LITTLE:
        return False
    return True if size.greatest <= LITTLE and noise.of_point <= LITTLE else None


def _mean(logs: Sequence[float], noise: Noise) -> Estimate:
    """Return the mean of logarithms that are means of `COMBINED` ratios."""
    return Estimate(fmean(logs), noise.margin(math.sqrt(2 / COMBINED / len(logs))))


def _decide_c41(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    logs = {name: _inside_logs(of.values) for name, of in zip(RANKS, figures, strict=True)}
    noises = {name: of.noise for name, of in zip(RANKS, figures, strict=True)}
    sizes = {name: effect_size(of, noises[name], COMBINED) for name, of in logs.items()}
    ratios = {name: _mean(of, noises[name]) for name, of in logs.items()}
    listed = ", ".join(f"{name} {100 * size.likely:.1f} %" for name, size in sizes.items())
    return ClaimDecision(
        every(*(_little(size, noises[name]) for name, size in sizes.items())),
        f"DIST and ACC differ by, class by class, without the noise: {listed}; little is at most "
        f"{100 * LITTLE:.0f} %",
        {f"apart_{name}": size.likely for name, size in sizes.items()}
        | {f"dist_over_acc_{name}": ratio.ratio for name, ratio in ratios.items()},
    )


def _by_ranks(values: Values) -> tuple[list[tuple[float, float]], int]:
    """Return the mean logarithm of the time by number of processes, and of how many figures.

    It is over the placements and block sizes that all numbers of processes have. Numbers with which
    all placements over nodes are the same (`SAME`) are left out.
    """
    times: dict[float, dict[tuple[object, object], float]] = {}
    for (placement, block, ranks), time in values.items():
        if not isinstance(ranks, str) and ranks not in SAME:
            times.setdefault(ranks, {})[placement, block] = math.log(time)
    common = set.intersection(*({*of_ranks} for of_ranks in times.values()))
    line = [(ranks, fmean(of[key] for key in common)) for ranks, of in sorted(times.items())]
    return line, len(common)


def _decide_c42(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    (small, of_small), (large, of_large) = (_by_ranks(figures[at].values) for at in (0, -1))
    noise_a, noise_c = figures[0].noise, figures[-1].noise
    (fewest, start), *later_a = small
    best_ranks, best = min(later_a, key=lambda point: point[1])
    a = Estimate(best - start, noise_a.margin(math.sqrt(2 / of_small), tests=len(later_a)))
    pairs = list(combinations(large, 2))
    (from_ranks, before), (to_ranks, after) = min(pairs, key=lambda pair: pair[1][1] - pair[0][1])
    c = Estimate(after - before, noise_c.margin(math.sqrt(2 / of_large), tests=len(pairs)))
    no_gain = a.at_least(1 - GAIN)
    if no_gain and noise_a.of_point > GAIN:
        no_gain = None
    return ClaimDecision(
        every(no_gain, c.at_most(1 - GAIN)),
        f"Class A: the best later count, {best_ranks:.0f} processes, takes {a.ratio:.2f} × the "
        f"time of {fewest:.0f}; class C: from {from_ranks:.0f} to {to_ranks:.0f} processes the "
        f"time goes to {c.ratio:.2f} ×; a gain saves {100 * GAIN:.0f} % or more",
        {"gain_a": 1 - a.ratio, "gain_c": 1 - c.ratio}
        | {"from_ranks": from_ranks, "to_ranks": to_ranks},
    )


def _decide_c43(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    logs = {name: _node_logs(of.values) for name, of in zip(RANKS, figures, strict=True)}
    noises = {name: of.noise for name, of in zip(RANKS, figures, strict=True)}
    sizes = {name: effect_size(of, noises[name], COMBINED) for name, of in logs.items()}
    balanced = _mean(logs["C"], noises["C"])
    grows = [_above(more, less, -MATTERS) for less, more in pairwise(sizes.values())]
    listed = ", ".join(f"{name} {100 * size.likely:.1f} %" for name, size in sizes.items())
    return ClaimDecision(
        every(*grows, _above(sizes["C"], sizes["A"], CLASS_C), balanced.at_most(1 - BETTER)),
        f"BAL and UNBAL differ by, class by class, without the noise: {listed}; in class C BAL "
        f"takes {balanced.ratio:.2f} × the time of UNBAL",
        {f"apart_{name}": size.likely for name, size in sizes.items()}
        | {"bal_over_unbal_C": balanced.ratio},
    )


def _above(size: Size, other: Size, least: float) -> Found:
    """Return whether `size` is larger than `other` by at least `least`."""
    if size.least - other.greatest >= least:
        return True
    return False if size.greatest - other.least < least else None


def _decide_c44(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    noise = max((of.noise for of in figures), key=lambda each: each.of_point)
    logs = []
    for of in figures:
        logs += [
            math.log(time / of.values[placement, SMALL, ranks])
            for (placement, block, ranks), time in of.values.items()
            if block == LARGE and (placement, SMALL, ranks) in of.values
        ]
    mean = mean_of(logs, noise, noise)
    not_slower = mostly(
        (mean_of([log], noise, noise).at_most(1) for log in logs), MIN_SHARE_OF_POINTS
    )
    faster = fmean(log < 0 for log in logs)
    return ClaimDecision(
        # Without an effect half of the points are faster by chance: nine tenths of them are not.
        every(
            mean.at_most(1 - BETTER),
            not_slower is not False,
            faster >= MIN_SHARE_OF_POINTS or not_slower,
        ),
        f"Blocks of 1 MB take less time than those of 512 KB at {100 * faster:.0f} % of "
        f"{len(logs)} points, {mean.ratio:.2f} × in the mean",
        {"faster": faster, "mean_ratio": mean.ratio},
    )


CLAIMS = (
    Claim("C4.1", "DIST or ACC makes little difference", (SYSTEM,), _needs, _decide_c41),
    Claim(
        "C4.2",
        "Class A: no gain of I/O time with more processes; class C: gain in some ranges",
        (SYSTEM,),
        _needs,
        _decide_c42,
    ),
    Claim(
        "C4.3",
        "The larger the class, the more node placement matters; class C is better BAL",
        (SYSTEM,),
        _needs,
        _decide_c43,
    ),
    Claim(
        "C4.4", "Blocks of 1 MB beat blocks of 512 KB throughout", (SYSTEM,), _needs, _decide_c44
    ),
)
