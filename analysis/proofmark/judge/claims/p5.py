"""Claims of paper P5: the time of collectives for placements on nodes and inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from proofmark.judge.claims.change_point import log_slope
from proofmark.judge.claims.model import Claim, Decision, Machines, Need, Values

SYSTEM = "p595"
COLLECTIVES = ("Bcast", "Allreduce", "Allgather", "Alltoall", "Alltoallv")
PLACEMENTS = ("BD", "BA", "UD", "UA")
RANKS = tuple(2**power for power in range(1, 11))
SIZES = tuple(4**power for power in range(11))
"""Message sizes, 1 B … 1 MiB; P5 states neither its sizes nor its numbers of processes."""

RATIOS = (("BD", "BA"), ("UD", "UA"), ("BA", "UA"), ("BD", "UD"))
"""Columns of table 2: (first − second) ÷ second, for times."""
INSIDE, AMONG = RATIOS[:2], RATIOS[2:]

NEARLY = 1
"""Accepted number of exceptions from "nearly every" collective."""
LARGE = 0.10
"""Relative difference from which on a difference is large."""
SMALL = 0.5
"""Small ÷ large difference, at most."""
STEEP = 10.0
"""Factor over a sweep from which on a time grows steeply."""
PLOTTED = "Alltoall"
"""The collective of figure 1 of the paper."""

Means = Mapping[str, Mapping[tuple[str, str], float]]
"""Mean relative difference by collective and pair of placements: the means of table 2."""


def relative_differences(times: Values, first: str, second: str) -> dict[tuple[int, int], float]:
    """Return (first − second) ÷ second by ranks and bytes.

    `times` are by (placement, ranks, bytes), in any unit.
    """
    return {
        (int(ranks), int(size)): time / times[second, ranks, size] - 1
        for (placement, ranks, size), time in times.items()
        if placement == first and (second, ranks, size) in times
    }


def means_of(times: Mapping[str, Values]) -> Means:
    """Return the means of table 2 from the times of each collective."""
    return {
        name: {pair: fmean(relative_differences(values, *pair).values()) for pair in RATIOS}
        for name, values in times.items()
    }


def _needs(machines: Machines) -> list[Need]:
    return [
        Need(
            SYSTEM,
            "imb-collectives",
            "usec",
            {"metric": "t_avg", "benchmark": name},
            {"placement": PLACEMENTS, "ranks": RANKS, "bytes": SIZES},
        )
        for name in COLLECTIVES
    ]


def _named(pair: tuple[str, str]) -> str:
    return f"({pair[0]}-{pair[1]})/{pair[1]}"


def _numbers(means: Means) -> dict[str, float]:
    return {
        f"{name} {_named(pair)}": mean
        for name, by_pair in means.items()
        for pair, mean in by_pair.items()
    }


def adjacent_is_better(means: Means) -> Decision:
    """Return the decision on C5.1 from the means of table 2."""
    negative = {
        pair: [name for name, by_pair in means.items() if by_pair[pair] < 0] for pair in INSIDE
    }
    listed = "; ".join(
        f"mean {_named(pair)} is {min(by_pair[pair] for by_pair in means.values()):.4f} … "
        f"{max(by_pair[pair] for by_pair in means.values()):.4f}"
        + (f", negative for {', '.join(negative[pair])}" if negative[pair] else "")
        for pair in INSIDE
    )
    exceptions = {name for names in negative.values() for name in names}
    return Decision(len(exceptions) <= NEARLY, listed, _numbers(means))


def nodes_matter_more(means: Means) -> Decision:
    """Return the decision on C5.2 from the means of table 2."""
    orders = ((("BA", "UA"), ("UD", "UA")), (("BD", "UD"), ("BD", "BA")))
    wrong = [
        f"{name}: mean {_named(nodes)} {by_pair[nodes]:.4f}, {_named(inside)} {by_pair[inside]:.4f}"
        for name, by_pair in means.items()
        for nodes, inside in orders
        if by_pair[nodes] <= by_pair[inside] or by_pair[nodes] <= 0
    ]
    least = min(by_pair[pair] for by_pair in means.values() for pair in AMONG)
    sentence = (
        f"Not so for {'; '.join(wrong)}"
        if wrong
        else "For every collective the choice of nodes makes the larger mean difference, and "
        f"filling nodes wins: balanced takes {100 * least:.1f} % more time or worse"
    )
    return Decision(not wrong, sentence, _numbers(means))


def _of_means(figures: Sequence[Values]) -> Means:
    return means_of(dict(zip(COLLECTIVES, figures, strict=True)))


def _decide_c51(figures: Sequence[Values], machines: Machines) -> Decision:
    return adjacent_is_better(_of_means(figures))


def _decide_c52(figures: Sequence[Values], machines: Machines) -> Decision:
    return nodes_matter_more(_of_means(figures))


def _decide_c53(figures: Sequence[Values], machines: Machines) -> Decision:
    node = machines[SYSTEM].cores
    inside: list[float] = []
    above: list[float] = []
    for times in figures:
        for pair in AMONG:
            for (ranks, _), difference in relative_differences(times, *pair).items():
                (inside if ranks <= node else above).append(abs(difference))
    low, high = fmean(inside), fmean(above)
    return Decision(
        low >= LARGE and high <= SMALL * low,
        f"Balanced and filled nodes differ by {100 * low:.1f} % in the mean up to {node} processes "
        f"(one node's worth), by {100 * high:.1f} % above",
        {"up_to_one_node": low, "above": high},
    )


def _needs_c54(machines: Machines) -> list[Need]:
    return [need for need in _needs(machines) if need.fixed["benchmark"] == PLOTTED]


def _decide_c54(figures: Sequence[Values], machines: Machines) -> Decision:
    by_ranks: list[float] = []
    by_size: list[float] = []
    slopes: list[float] = []
    for placement in PLACEMENTS:
        times = {
            (int(ranks), int(size)): time
            for (place, ranks, size), time in figures[0].items()
            if place == placement and int(ranks) in RANKS and int(size) in SIZES
        }
        over_ranks = [(ranks, times[ranks, SIZES[-1]]) for ranks in RANKS]
        over_size = [(size, times[RANKS[-1], size]) for size in SIZES]
        by_ranks.append(over_ranks[-1][1] / over_ranks[0][1])
        by_size.append(over_size[-1][1] / over_size[0][1])
        slopes += [log_slope(over_ranks), log_slope(over_size)]
    return Decision(
        min(by_ranks) >= STEEP and min(by_size) >= STEEP and min(slopes) > 0,
        f"{PLOTTED} of 1 MiB takes {min(by_ranks):.0f} × the time or more from {RANKS[0]} to "
        f"{RANKS[-1]} processes; on {RANKS[-1]}, {min(by_size):.0f} × or more from 1 B to 1 MiB; "
        f"steep is {STEEP:g} ×",
        {"by_processes": min(by_ranks), "by_size": min(by_size), "least_slope": min(slopes)},
    )


CLAIMS = (
    Claim(
        "C5.1",
        "Adjacent inside a node is slightly better on average: mean (BD-BA)/BA and (UD-UA)/UA are "
        "at least 0 for nearly every collective",
        (SYSTEM,),
        _needs,
        _decide_c51,
    ),
    Claim(
        "C5.2",
        "The choice of nodes matters more than that inside a node, for every collective; filling "
        "nodes wins",
        (SYSTEM,),
        _needs,
        _decide_c52,
    ),
    Claim(
        "C5.3",
        "The difference is large up to 64 processes (one node's worth) and small above",
        (SYSTEM,),
        _needs,
        _decide_c53,
    ),
    Claim(
        "C5.4",
        "Time worsens steeply as processes and message size grow",
        (SYSTEM,),
        _needs_c54,
        _decide_c54,
    ),
)
