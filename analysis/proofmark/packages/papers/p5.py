"""Claims of paper P5: the time of collectives for placements on nodes and inside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from proofmark.common.text import size as size_text
from proofmark.packages.papers.claim import (
    Claim,
    ClaimDecision,
    Estimate,
    Found,
    Machines,
    Measured,
    Point,
    SweepNeed,
    Values,
    effect_size,
    every,
    log_slope,
)

SYSTEM = "p595"
COLLECTIVES = ("Bcast", "Allreduce", "Allgather", "Alltoall", "Alltoallv")
PLACEMENTS = ("BD", "BA", "UD", "UA")
RANKS = tuple(2**power for power in range(1, 11))
SIZES = tuple(4**power for power in range(11))
"""Message sizes, 1 B … 1 MiB; P5 states neither its sizes nor its numbers of processes."""
REDUCED = "Allreduce"
"""The collective that IMB measures with floats of 4 bytes: it has no smaller message."""
FLOAT_BYTES = 4

RANKS_OF_TWIN = (4, 16, 64, 128, 256, 512, 1024)
"""Numbers of processes of the suite ``twin-p5``. The last one fills all nodes: BD and UD use the
same cores in the same order, BA and UA too. The suite has it for `FILLED` only."""
FILLED = ("UD", "UA")
"""The placements that fill one node after the other."""

RATIOS = (("BD", "BA"), ("UD", "UA"), ("BA", "UA"), ("BD", "UD"))
"""Columns of table 2: (first − second) ÷ second, for times."""
INSIDE, AMONG = RATIOS[:2], RATIOS[2:]

NEARLY = 1
"""Accepted number of exceptions from "nearly every" collective."""
LARGE_DIFFERENCE = 0.10
"""Relative difference from which on a difference is large."""
MAX_SMALL_TO_LARGE = 0.5
"""Small ÷ large difference, at most."""
STEEP = 10.0
"""Factor over a sweep from which on a time grows steeply."""
PLOTTED = "Alltoall"
"""The collective of figure 1 of the paper."""

Means = Mapping[str, Mapping[tuple[str, str], float]]
"""Mean relative difference by collective and pair of placements: the means of table 2. Also half
the width of their intervals."""


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


def margins_of(figures: Mapping[str, Measured]) -> Means:
    """Return half the width of the interval of each mean of table 2.

    The noise of a quotient is relative to it.
    """
    return {
        name: {
            pair: of.noise.margin(_weight(list(relative_differences(of.values, *pair).values())))
            for pair in RATIOS
        }
        for name, of in figures.items()
    }


def _weight(differences: Sequence[float]) -> float:
    """Return the weight of the noise of one figure in a mean of quotients of two figures."""
    return math.sqrt(2) * math.hypot(*(1 + each for each in differences)) / len(differences)


def _above(value: float, margin: float) -> Found:
    """Return whether a difference is above zero."""
    return value > margin or (None if value > -margin else False)


def _needs(machines: Machines) -> list[SweepNeed]:
    return [
        SweepNeed(
            SYSTEM,
            "imb-collectives",
            "usec",
            {"metric": "t_avg", "benchmark": name},
            {"placement": PLACEMENTS, "ranks": RANKS, "bytes": _sizes(name)},
        )
        for name in COLLECTIVES
    ]


def _sizes(collective: str) -> tuple[int, ...]:
    least = FLOAT_BYTES if collective == REDUCED else 1
    return tuple(size for size in SIZES if size >= least)


def _of_twin(machines: Machines) -> list[SweepNeed]:
    """Return the sweep of the suite ``twin-p5``, up to the largest number that spreads ranks.

    If the ranks fill all nodes, each placement uses the same cores.
    """
    return [_simulated(need, RANKS_OF_TWIN[:-1]) for need in _needs(machines)]


def _of_twin_c54(machines: Machines) -> list[SweepNeed]:
    return [_simulated(need, RANKS_OF_TWIN) for need in _needs_c54(machines)]


def _simulated(need: SweepNeed, numbers: Sequence[int]) -> SweepNeed:
    simulated = []
    for placement in PLACEMENTS:
        for ranks in numbers:
            simulated += [
                (placement, ranks, size)
                for size in _sizes_of_twin(str(need.fixed["benchmark"]), ranks)
                if placement in FILLED or ranks < RANKS_OF_TWIN[-1]
            ]
    points: tuple[Point, ...] = tuple(simulated)
    return replace(need, points=points)


def _sizes_of_twin(collective: str, ranks: int) -> list[int]:
    largest = largest_of_twin(ranks)
    return [*(size for size in _sizes(collective) if size < largest), largest]


def largest_of_twin(ranks: int) -> int:
    """Return the largest message in bytes that the suite ``twin-p5`` simulates."""
    return 65536 if ranks <= 64 else 4096 if ranks <= 256 else 512


def _named(pair: tuple[str, str]) -> str:
    return f"({pair[0]}-{pair[1]})/{pair[1]}"


def _numbers(means: Means) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, by_pair in means.items():
        numbers |= {f"{name} {_named(pair)}": mean for pair, mean in by_pair.items()}
    return numbers


def adjacent_is_better(means: Means, margins: Means) -> ClaimDecision:
    """Return the decision on C5.1 from the means of table 2 and half their intervals.

    Adjacent processes must be better in the mean over all collectives too: means that are all
    about 0 are no effect.
    """
    negative = {
        pair: [name for name, by_pair in means.items() if by_pair[pair] < 0] for pair in INSIDE
    }
    listed = "; ".join(
        f"mean {_named(pair)} is {min(by_pair[pair] for by_pair in means.values()):.4f} … "
        f"{max(by_pair[pair] for by_pair in means.values()):.4f}"
        + (f", negative for {', '.join(negative[pair])}" if negative[pair] else "")
        for pair in INSIDE
    )
    return ClaimDecision(
        every(_nearly(means, margins), *_overall(means, margins)), listed, _numbers(means)
    )


def _nearly(means: Means, margins: Means) -> Found:
    """Return whether nearly every collective has no negative mean."""
    surely = set()
    for n, by in means.items():
        surely |= {n for p in INSIDE if by[p] < -margins[n][p]}
    maybe = set()
    for n, by in means.items():
        maybe |= {n for p in INSIDE if by[p] < margins[n][p]}
    if len(surely) > NEARLY:
        return False
    return True if len(maybe) <= NEARLY else None


def _overall(means: Means, margins: Means) -> list[Found]:
    """Return for each pair whether the mean over all collectives is above zero."""
    return [
        _above(
            fmean(by_pair[pair] for by_pair in means.values()),
            math.hypot(*(of[pair] for of in margins.values())) / len(means),
        )
        for pair in INSIDE
    ]


def nodes_matter_more(means: Means, margins: Means) -> ClaimDecision:
    """Return the decision on C5.2 from the means of table 2 and half their intervals."""
    orders = ((("BA", "UA"), ("UD", "UA")), (("BD", "UD"), ("BD", "BA")))
    findings: dict[tuple[str, tuple[str, str], tuple[str, str]], bool | None] = {}
    for name, by_pair in means.items():
        findings |= {
            (name, nodes, inside): every(
                _above(
                    by_pair[nodes] - by_pair[inside],
                    math.hypot(margins[name][nodes], margins[name][inside]),
                ),
                _above(by_pair[nodes], margins[name][nodes]),
            )
            for nodes, inside in orders
        }
    wrong = [
        f"{name}: mean {_named(nodes)} {means[name][nodes]:.4f}, {_named(inside)} "
        f"{means[name][inside]:.4f}"
        for (name, nodes, inside), finding in findings.items()
        if not finding
    ]
    means_among = []
    for by_pair in means.values():
        means_among += [by_pair[pair] for pair in AMONG]
    least = min(means_among)
    sentence = (
        f"Not clearly so for {'; '.join(wrong)}"
        if wrong
        else "For every collective the choice of nodes makes the larger mean difference, and "
        f"filling nodes wins: balanced takes {100 * least:.1f} % more time or worse"
    )
    return ClaimDecision(every(*findings.values()), sentence, _numbers(means))


def _tables(figures: Sequence[Measured]) -> tuple[Means, Means]:
    """Return the means of table 2, and half their intervals."""
    by_name = dict(zip(COLLECTIVES, figures, strict=True))
    return means_of({name: of.values for name, of in by_name.items()}), margins_of(by_name)


def _decide_c51(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    return adjacent_is_better(*_tables(figures))


def _decide_c52(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    return nodes_matter_more(*_tables(figures))


def _decide_c53(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    node = machines[SYSTEM].cores
    inside: list[float] = []
    above: list[float] = []
    for of in figures:
        for pair in AMONG:
            for (ranks, _), difference in relative_differences(of.values, *pair).items():
                (inside if ranks <= node else above).append(math.log1p(difference))
    noise = max((of.noise for of in figures), key=lambda each: each.of_point)
    low, high = effect_size(inside, noise), effect_size(above, noise)
    large = low.least >= LARGE_DIFFERENCE or (None if low.greatest >= LARGE_DIFFERENCE else False)
    small = high.greatest <= MAX_SMALL_TO_LARGE * low.least or (
        None if high.least <= MAX_SMALL_TO_LARGE * low.greatest else False
    )
    return ClaimDecision(
        every(large, small),
        f"Balanced and filled nodes differ by {100 * low.likely:.1f} % up to {node} processes "
        f"(one node's worth), by {100 * high.likely:.1f} % above, without the noise",
        {"up_to_one_node": low.likely, "above": high.likely},
    )


def _needs_c54(machines: Machines) -> list[SweepNeed]:
    return [need for need in _needs(machines) if need.fixed["benchmark"] == PLOTTED]


def _decide_c54(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    """Return the decision on C5.4 from the times of Alltoall.

    The growth over the ranks is that of the largest message that all numbers of ranks have. The
    growth over the size is that of the most ranks that have the largest message of all: a
    simulation has fewer sizes for many ranks.
    """
    noise = figures[0].noise
    ends = noise.margin(math.sqrt(2))
    times = {
        (str(placement), int(ranks), int(size)): time
        for (placement, ranks, size), time in figures[0].values.items()
        if int(ranks) in RANKS and int(size) in SIZES
    }
    numbers = sorted({ranks for _, ranks, _ in times})
    sizes = sorted({size for _, _, size in times})
    points = {(ranks, size) for _, ranks, size in times}
    common = max(size for size in sizes if all((ranks, size) in points for ranks in numbers))
    widest = max(ranks for ranks, size in points if size == sizes[-1])
    by_ranks = [
        [(many, times[place, many, common]) for many in numbers if (place, many, common) in times]
        for place in PLACEMENTS
    ]
    by_size = [
        [(size, times[place, widest, size]) for size in sizes if (place, widest, size) in times]
        for place in PLACEMENTS
    ]
    of_ranks, of_size = (
        [Estimate(math.log(line[-1][1] / line[0][1]), ends) for line in lines]
        for lines in (by_ranks, by_size)
    )
    slopes = [log_slope(line, noise) for line in (*by_ranks, *by_size)]
    least_of_ranks, least_of_size = (min(each.ratio for each in of) for of in (of_ranks, of_size))
    return ClaimDecision(
        every(
            *(ratio.at_least(STEEP) for ratio in (*of_ranks, *of_size)),
            *(each.at_least(1) for each in slopes),
        ),
        f"{PLOTTED} of {size_text(common)} takes {least_of_ranks:.0f} × the time or more from "
        f"{numbers[0]} to {numbers[-1]} processes; on {widest}, {least_of_size:.0f} × or more from "
        f"{size_text(sizes[0])} to {size_text(sizes[-1])}; steep is {STEEP:g} ×",
        {"by_processes": least_of_ranks, "by_size": least_of_size}
        | {"least_slope": min(each.value for each in slopes)},
    )


CLAIMS = (
    Claim(
        "C5.1",
        "Adjacent inside a node is slightly better on average: mean (BD-BA)/BA and (UD-UA)/UA are "
        "at least 0 for nearly every collective",
        (SYSTEM,),
        _needs,
        _decide_c51,
        of_twin=_of_twin,
    ),
    Claim(
        "C5.2",
        "The choice of nodes matters more than that inside a node, for every collective; filling "
        "nodes wins",
        (SYSTEM,),
        _needs,
        _decide_c52,
        of_twin=_of_twin,
    ),
    Claim(
        "C5.3",
        "The difference is large up to 64 processes (one node's worth) and small above",
        (SYSTEM,),
        _needs,
        _decide_c53,
        of_twin=_of_twin,
    ),
    Claim(
        "C5.4",
        "Time worsens steeply as processes and message size grow",
        (SYSTEM,),
        _needs_c54,
        _decide_c54,
        of_twin=_of_twin_c54,
    ),
)
