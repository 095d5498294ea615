"""Claims of paper P4: the time of collective I/O (BT-IO) for each placement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from proofmark.judge.claims.model import Claim, Decision, Machines, Need, Values

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
GAIN = 0.10
"""Part of the time from which on a saving is a gain."""
MATTERS = 0.02
"""Accepted decrease of the effect of placement in a larger class, by chance."""
CLASS_C = 0.05
"""Least increase of the effect of placement from class A to class C."""
MOST = 0.90
"""Part of the points at which a relation must hold."""


def _needs(machines: Machines) -> list[Need]:
    return [
        Need(
            SYSTEM,
            "npb-btio",
            "s",
            {"metric": "io_time", "subtype": "full", "class": name},
            {"placement": PLACEMENTS, "fs_block_bytes": (SMALL, LARGE), "ranks": ranks},
        )
        for name, ranks in RANKS.items()
    ]


def _inside_logs(values: Values) -> list[float]:
    """Return log(DIST ÷ ACC) at every point."""
    logs = []
    for node in NODES:
        for (placement, block, ranks), time in values.items():
            other = values.get((f"{node}-ACC", block, ranks))
            if placement == f"{node}-DIST" and other:
                logs.append(math.log(time / other))
    return logs


def _node_logs(values: Values) -> list[float]:
    """Return log(BAL ÷ UNBAL) at every point where the two differ."""
    logs = []
    for inside in INSIDE:
        for (placement, block, ranks), time in values.items():
            other = values.get((f"UNBAL-{inside}", block, ranks))
            if placement == f"BAL-{inside}" and other and ranks not in SAME:
                logs.append(math.log(time / other))
    return logs


def _decide_c41(figures: Sequence[Values], machines: Machines) -> Decision:
    logs = {name: _inside_logs(values) for name, values in zip(RANKS, figures, strict=True)}
    differences = {name: math.expm1(median(map(abs, of))) for name, of in logs.items()}
    ratios = {name: math.exp(median(of)) for name, of in logs.items()}
    listed = ", ".join(f"{name} {100 * part:.1f} %" for name, part in differences.items())
    return Decision(
        max(differences.values()) <= LITTLE,
        f"DIST and ACC differ in the median by, class by class: {listed}; little is at most "
        f"{100 * LITTLE:.0f} %",
        {f"apart_{name}": part for name, part in differences.items()}
        | {f"dist_over_acc_{name}": ratio for name, ratio in ratios.items()},
    )


def _by_ranks(values: Values) -> list[tuple[float, float]]:
    """Return the median time over all placements and block sizes, by number of processes.

    Numbers with which all placements over nodes are the same (`SAME`) are left out.
    """
    times: dict[float, list[float]] = {}
    for (_, _, ranks), time in values.items():
        if not isinstance(ranks, str) and ranks not in SAME:
            times.setdefault(ranks, []).append(time)
    return [(ranks, median(of_ranks)) for ranks, of_ranks in sorted(times.items())]


def _decide_c42(figures: Sequence[Values], machines: Machines) -> Decision:
    small, large = _by_ranks(figures[0]), _by_ranks(figures[-1])
    fewest, start = small[0]
    best_ranks, best = min(small[1:], key=lambda point: point[1])
    gain_a = 1 - best / start
    gain_c, from_ranks, to_ranks = max(
        (1 - later / time, ranks, more)
        for place, (ranks, time) in enumerate(large)
        for more, later in large[place + 1 :]
    )
    return Decision(
        gain_a < GAIN <= gain_c,
        f"Class A: the best later count, {best_ranks:.0f} processes, takes {1 - gain_a:.2f} × the "
        f"time of {fewest:.0f}; class C: from {from_ranks:.0f} to {to_ranks:.0f} processes the "
        f"time goes to {1 - gain_c:.2f} ×; a gain saves {100 * GAIN:.0f} % or more",
        {"gain_a": gain_a, "gain_c": gain_c, "from_ranks": from_ranks, "to_ranks": to_ranks},
    )


def _decide_c43(figures: Sequence[Values], machines: Machines) -> Decision:
    logs = {name: _node_logs(values) for name, values in zip(RANKS, figures, strict=True)}
    matters = {name: math.expm1(median(map(abs, of))) for name, of in logs.items()}
    balanced = math.exp(median(logs["C"]))
    grows = all(more >= less - MATTERS for less, more in pairwise(matters.values()))
    grows = grows and matters["C"] >= matters["A"] + CLASS_C
    listed = ", ".join(f"{name} {100 * part:.1f} %" for name, part in matters.items())
    return Decision(
        grows and balanced < 1,
        f"BAL and UNBAL differ in the median by, class by class: {listed}; in class C BAL takes "
        f"{balanced:.2f} × the time of UNBAL",
        {f"apart_{name}": part for name, part in matters.items()} | {"bal_over_unbal_C": balanced},
    )


def _decide_c44(figures: Sequence[Values], machines: Machines) -> Decision:
    ratios = [
        time / values[placement, SMALL, ranks]
        for values in figures
        for (placement, block, ranks), time in values.items()
        if block == LARGE and (placement, SMALL, ranks) in values
    ]
    faster = fmean(ratio < 1 for ratio in ratios)
    return Decision(
        faster >= MOST and median(ratios) < 1,
        f"Blocks of 1 MB take less time than those of 512 KB at {100 * faster:.0f} % of "
        f"{len(ratios)} points, {median(ratios):.2f} × in the median",
        {"faster": faster, "median_ratio": median(ratios)},
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
