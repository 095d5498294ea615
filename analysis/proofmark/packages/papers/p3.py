"""Claims of paper P3: the network inside and between the nodes of two clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from proofmark.packages.papers.claim import (
    Claim,
    ClaimDecision,
    Estimate,
    Found,
    Machines,
    Measured,
    Noise,
    SweepNeed,
    curve,
    every,
    greatest,
    margin,
    mean_of,
    mostly,
    over,
    ratio_curve,
)

ABOUT = 0.20
"""Accepted relative deviation from "about": each factor is a quotient of two best values."""
LITTLE = 0.15
"""Relative difference up to which there is little difference."""
CLEAR = 0.30
"""Relative difference from which on a difference is clear."""
MIN_SHARE_OF_POINTS = 0.90
"""Part of the points at which a relation must hold."""
FAIR = 0.25
"""Accepted relative deviation of a pair from its share."""
SAME_FACTOR, BETWEEN_FACTOR = 5.0, 2.4
"""Tachyon 2 ÷ Tachyon 1: on the same socket, and between sockets."""

SIZES = tuple(4**power for power in range(12))
"""Message sizes, 1 B … 4 MiB; P3 does not state its sizes."""
LARGEST = SIZES[-1]
"""Message size in bytes at which the bandwidth, not the latency, of the link is the limit."""

OLD, NEW = "tachyon1", "tachyon2"
RATES = "the rates of copies and links of both systems"
"""What a twin has as an input."""
INSIDE = {OLD: ("same-socket", "other-socket", "2-hop"), NEW: ("same-socket", "other-socket")}
LEVELS = {OLD: ("chip", "line-card", "switch"), NEW: ("fabric",)}
SUM_OF_PAIRS = "Multiple Bandwidth / Message Rate"
"""The test of OSU with several pairs in one program; it prints their sum."""
_BANDWIDTH = {"benchmark": "Bandwidth", "metric": "bandwidth"}


def _inside(system: str) -> SweepNeed:
    axes = {"placement": INSIDE[system], "bytes": SIZES}
    return SweepNeed(system, "osu-bw", "MB/s", _BANDWIDTH, axes)


def _between(system: str) -> SweepNeed:
    fixed = {**_BANDWIDTH, "placement": "other-node"}
    return SweepNeed(system, "osu-bw", "MB/s", fixed, {"distance": LEVELS[system], "bytes": SIZES})


def _best(measured: Measured, *places: str) -> Estimate:
    """Return the best bandwidth over all sizes and `places`."""
    rates = (rate for point, rate in measured.values.items() if point[0] in places)
    return greatest(rates, measured.noise)


def _needs_inside(machines: Machines) -> list[SweepNeed]:
    return [_inside(OLD), _inside(NEW)]


def _decide_c31(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    old, new = figures
    noises = old.noise, new.noise
    same = over(_best(new, "same-socket"), _best(old, "same-socket"))
    between = over(_best(new, "other-socket"), _best(old, *INSIDE[OLD][1:]))
    return ClaimDecision(
        every(same.near(SAME_FACTOR, ABOUT, *noises), between.near(BETWEEN_FACTOR, ABOUT, *noises)),
        f"Best bandwidth of Tachyon 2 ÷ Tachyon 1: {same.ratio:.2f} on the same socket (the paper: "
        f"about {SAME_FACTOR:g}), {between.ratio:.2f} between sockets (about {BETWEEN_FACTOR:g})",
        {"same_socket": same.ratio, "other_socket": between.ratio},
    )


def _decide_c32(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    old, new = figures
    others = [over(_best(old, place), _best(old, "same-socket")) for place in INSIDE[OLD][1:]]
    clear = over(_best(new, "same-socket"), _best(new, "other-socket"))
    little = [other.near(1, LITTLE, old.noise) for other in others]
    listed = " and ".join(f"{other.ratio:.2f}" for other in others)
    return ClaimDecision(
        every(*little, clear.at_least(1 + CLEAR)),
        f"On Tachyon 1 another socket (1 hop, 2 hops) gives {listed} × the best of the same "
        f"socket; on Tachyon 2 the same socket gives {clear.ratio:.2f} × another one",
        {
            "tachyon1_1_hop": others[0].ratio,
            "tachyon1_2_hops": others[1].ratio,
            "tachyon2": clear.ratio,
        },
    )


def _needs_c33(system: str) -> Callable[[Machines], list[SweepNeed]]:
    def needs(machines: Machines) -> list[SweepNeed]:
        return [
            SweepNeed(
                system,
                "osu-contention",
                "MB/s",
                {**_BANDWIDTH, "pairs": pairs, "message_bytes": LARGEST},
                # A single pair is not a copy of a program: its records have no `pair`.
                {"pair": range(1, pairs + 1)} if pairs > 1 else {"bytes": (LARGEST,)},
            )
            for pairs in range(1, machines[system].cores + 1)
        ]

    return needs


def _of_twin_c33(system: str) -> Callable[[Machines], list[SweepNeed]]:
    """Several programs cannot share a simulation: one program has all pairs, and their sum."""

    def needs(machines: Machines) -> list[SweepNeed]:
        return [
            SweepNeed(
                system,
                "osu-mbw-mr",
                "MB/s",
                {"benchmark": SUM_OF_PAIRS, "metric": "bandwidth", "pairs": pairs},
                {"bytes": SIZES},
                points=((LARGEST,),),
            )
            for pairs in range(1, machines[system].cores + 1)
        ]

    return needs


def _decide_c33(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    """Compare each pair with its share; `figures` are those of 1, 2, … pairs."""
    rates = [list(each.values.values()) for each in figures]
    return _fair(rates, [each.noise for each in figures], "every pair")


def _decide_c33_of_twin(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    """Compare the mean pair with its share; `figures` are the sums of 1, 2, … pairs."""
    totals = (sum(each.values.values()) for each in figures)
    rates = [[total / pairs] * pairs for pairs, total in enumerate(totals, start=1)]
    return _fair(rates, [each.noise for each in figures], "the mean of the pairs")


def _fair(rates: Sequence[Sequence[float]], noises: Sequence[Noise], who: str) -> ClaimDecision:
    """Compare the rates of 1, 2, … pairs with their shares of the largest sum."""
    whole = max(sum(of_pairs) for of_pairs in rates)
    missed = [max(abs(rate * len(of_pairs) / whole - 1) for rate in of_pairs) for of_pairs in rates]
    shares = [
        every(*(_share(rate * len(of_pairs) / whole, noise, len(of_pairs)) for rate in of_pairs))
        for of_pairs, noise in zip(rates, noises, strict=True)
    ]
    fair = fmean(share is True for share in shares)
    totals = [sum(of_pairs) / whole for of_pairs in rates]
    return ClaimDecision(
        mostly(shares, MIN_SHARE_OF_POINTS),
        f"Two nodes carry {whole:.0f} MB/s at most with messages of 4 MiB; with 1 to {len(rates)} "
        f"pairs {who} is within {100 * FAIR:.0f} % of its share of that at {100 * fair:.0f} % "
        f"of the numbers of pairs; all pairs together reach {min(totals):.2f} of it or more",
        {
            "maximum_mb_s": whole,
            "fair": fair,
            "worst_miss": max(missed),
            "least_total": min(totals),
        },
    )


def _share(part: float, noise: Noise, pairs: int) -> Found:
    """Return whether a pair gets its share; any of the `pairs` may be the worst."""
    return Estimate(math.log(part), noise.margin(1.0, tests=pairs)).near(1, FAIR, noise)


def _needs_c34(machines: Machines) -> list[SweepNeed]:
    return [_inside(OLD), _inside(NEW), _between(OLD), _between(NEW)]


def _decide_c34(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    old_in, new_in, old_out, new_out = figures
    ratios: list[float] = []
    for place in INSIDE[NEW]:
        old = curve(old_in.values, 1, place)
        ratios += [y for _, y in ratio_curve(curve(new_in.values, 1, place), old)]
    # Tachyon 2 has a single level, with which each level of Tachyon 1 is compared.
    for level in LEVELS[OLD]:
        old = curve(old_out.values, 1, level)
        ratios += [y for _, y in ratio_curve(curve(new_out.values, 1, *LEVELS[NEW]), old)]
    noises = old_in.noise, new_in.noise
    points = [mean_of([math.log(ratio)], *noises).at_least(1) for ratio in ratios]
    # Each figure of Tachyon 2 between nodes is in the ratios of all levels of Tachyon 1.
    middle = fmean(math.log(ratio) for ratio in ratios)
    weight = math.sqrt(len(LEVELS[OLD]) / len(ratios))
    mean = Estimate(middle, margin(*((noise, weight) for noise in noises)))
    better = fmean(point is True for point in points)
    return ClaimDecision(
        every(mostly(points, MIN_SHARE_OF_POINTS), mean.at_least(1)),
        f"Tachyon 2 is better at {100 * better:.0f} % of {len(ratios)} points, in the geometric "
        f"mean {mean.ratio:.2f} ×",
        {"better": better, "mean_ratio": mean.ratio},
    )


CLAIMS = (
    Claim(
        "C3.1",
        "Tachyon 2 against 1, best value: same socket about 5 ×, between sockets about 2.4 ×",
        (OLD, NEW),
        _needs_inside,
        _decide_c31,
        input_of_twin=RATES,
    ),
    Claim(
        "C3.2",
        "Tachyon 1: little difference between the same socket and another; Tachyon 2: a clear one",
        (OLD, NEW),
        _needs_inside,
        _decide_c32,
        of_twin=_needs_inside,
        follows_from="the time of a cache line, and that of a link between sockets",
    ),
    *(
        Claim(
            "C3.3",
            "With n simultaneous pairs each pair gets the maximum between two nodes ÷ n",
            (system,),
            _needs_c33(system),
            _decide_c33,
            of_twin=_of_twin_c33(system),
            decide_of_twin=_decide_c33_of_twin,
            follows_from="the rate of one core, and that of a link, which the simulator shares out",
        )
        for system in (OLD, NEW)
    ),
    Claim(
        "C3.4",
        "Tachyon 2 is better overall",
        (OLD, NEW),
        _needs_c34,
        _decide_c34,
        input_of_twin=RATES,
    ),
)
