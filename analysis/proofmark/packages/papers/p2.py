"""Claims of paper P2: STREAM with close or spread threads on the tiles of a KNL."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from proofmark.cases.vocabulary import Scalar
from proofmark.packages.papers.claim import (
    Claim,
    ClaimDecision,
    Estimate,
    Fall,
    Found,
    Line,
    Machines,
    Measured,
    NodeHardware,
    Noise,
    SweepNeed,
    Values,
    curve,
    every,
    fall_to,
    margin,
    mean_of,
    mostly,
    ratio_curve,
    steepest_fall,
)


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


KERNELS = ("copy", "scale", "add", "triad")
FALLING = ("copy", "add", "triad")
DECIDING = "mcdram"
"""The memory that decides all claims of P2. The paper does not name it. DDR4 is saturated by less
than half of the cores, so that its rate cannot rise up to all of them (C2.4)."""
MEMORIES = ("ddr", DECIDING)
"""Both memories are measured. The other one is information."""

WORSE = 0.05
"""A mean rate is clearly worse if it is lower by more than this relative difference."""
EFFECT = 0.01
"""The least relative difference of mean rates of a better and a worse placement."""
HIGHER = 0.05
"""The least relative difference of the ends of a line that rises."""
EQUAL = 0.10
"""Relative difference up to which two figures are about equal."""
MIN_SHARE_OF_POINTS = 0.90
"""Part of the points at which a relation must hold."""
DROP = 0.95
"""A fall to at most this part is a drop."""
SHARP = 0.90
"""A fall to at most this part is sharp."""
SLIGHTLY = 0.80
"""A figure is slightly below another one if it is at least this part of it."""
MEETS = 55 / 68
"""Threads ÷ cores at which Copy with spread reaches close: 55 threads of 68 cores."""
MAX_THREADS_APART = 0.10
"""Difference of two numbers of threads, as a part of the cores, up to which they are near."""
WINDOW = 3
"""Points on either side of a fall, and at an end of a line."""


def _need(machine: NodeHardware, memory: str, placements: Sequence[str], threads: int) -> SweepNeed:
    fixed = {"mode": "quadrant-flat", "memory": memory}
    axes: dict[str, Sequence[Scalar]] = {
        "metric": KERNELS,
        "placement": placements,
        "threads": range(1, threads + 1),
    }
    return SweepNeed("knl", "stream", "MB/s", fixed, axes)


def _needs_both(machines: Machines) -> list[SweepNeed]:
    knl = machines["knl"]
    return [_need(knl, memory, ("close", "spread"), knl.cores) for memory in MEMORIES]


def _needs_close(machines: Machines) -> list[SweepNeed]:
    knl = machines["knl"]
    return [_need(knl, memory, ("close",), 2 * knl.cores) for memory in MEMORIES]


OfMemory = Callable[[Measured, NodeHardware], ClaimDecision]


def _in_one_memory(decide: OfMemory) -> Callable[[Sequence[Measured], Machines], ClaimDecision]:
    """Return the function that decides by `DECIDING`, and reports the other memory too."""

    def by_memory(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
        decisions = {
            memory: decide(stream, machines["knl"])
            for memory, stream in zip(MEMORIES, figures, strict=True)
        }
        numbers: dict[str, float] = {}
        for memory, decision in decisions.items():
            numbers |= {f"{memory}_{name}": value for name, value in decision.numbers.items()}
        words = {True: "as claimed", False: "not as claimed", None: "hidden by noise"}
        sentence = ". ".join(
            f"{memory}{', which decides' if memory == DECIDING else ''}, "
            f"{words[decision.holds]}: {decision.sentence}"
            for memory, decision in decisions.items()
        )
        return ClaimDecision(decisions[DECIDING].holds, sentence, numbers)

    return by_memory


def _lines(values: Values, placement: str, last: int) -> dict[str, Line]:
    return {
        kernel: [(x, y) for x, y in curve(values, 2, kernel, placement) if x <= last]
        for kernel in KERNELS
    }


def _ratios(values: Values, machine: NodeHardware) -> dict[str, Line]:
    """Return spread ÷ close over the number of threads for each kernel."""
    spread = _lines(values, "spread", machine.cores)
    close = _lines(values, "close", machine.cores)
    return {kernel: ratio_curve(spread[kernel], close[kernel]) for kernel in KERNELS}


def _falls(stream: Measured, machine: NodeHardware) -> dict[str, Fall]:
    spread = _lines(stream.values, "spread", machine.cores)
    return {kernel: steepest_fall(line, WINDOW, stream.noise) for kernel, line in spread.items()}


def _mean_ratio(line: Line, noise: Noise) -> Estimate:
    """Return the geometric mean of ratios of two figures."""
    return mean_of([math.log(ratio) for _, ratio in line], noise, noise)


def _not_worse(mean: Estimate) -> Found:
    """Return whether a mean ratio is about 1 or more: no if it is clearly less."""
    if mean.at_least(1 - EFFECT) is False:
        return False
    return mean.at_least(1 - WORSE) or None


def _decide_c21(stream: Measured, machine: NodeHardware) -> ClaimDecision:
    """No kernel is worse with spread; Copy, Add and Triad, which drop later (C2.2), are better."""
    noise = stream.noise
    ratios = {
        kernel: [(x, y) for x, y in line if x <= machine.tiles]
        for kernel, line in _ratios(stream.values, machine).items()
    }
    means = {kernel: _mean_ratio(line, noise) for kernel, line in ratios.items()}
    point = noise.margin(math.sqrt(2))
    counts = [
        mostly(
            (Estimate(math.log(y), point).at_most(1) is not True for _, y in line),
            MIN_SHARE_OF_POINTS,
        )
        for line in ratios.values()
    ]
    holds = every(
        *(_not_worse(mean) for mean in means.values()),
        *(means[kernel].at_least(1 + EFFECT) for kernel in FALLING),
        *counts,
    )
    listed = ", ".join(f"{kernel} {mean.ratio:.3f}" for kernel, mean in means.items())
    return ClaimDecision(
        holds,
        f"spread ÷ close for 1 to {machine.tiles} threads has the means {listed}, known within "
        f"{100 * max(mean.margin for mean in means.values()):.2g} %",
        {f"{kernel}_mean": mean.ratio for kernel, mean in means.items()},
    )


def _dips(stream: Measured, machine: NodeHardware, falls: Mapping[str, Fall]) -> Found:
    """Return whether the steepest fall of each falling kernel is a drop behind the tiles."""
    at = machine.tiles + 1
    lines = _lines(stream.values, "spread", machine.cores)
    return every(
        *(fall_to(lines[kernel], at, WINDOW, stream.noise).at_most(DROP) for kernel in FALLING),
        *(_is_at(falls[kernel], at) for kernel in FALLING),
    )


def _is_at(fall: Fall, x: float) -> Found:
    """Return whether a fall ends at `x`: None if it may be there or elsewhere."""
    at = {after == x for _, after in fall.places}
    return at.pop() if len(at) == 1 else None


def _describe(falls: Mapping[str, Fall]) -> str:
    return ", ".join(
        f"{kernel} falls to {fall.ratio:.2f} at {fall.after:.0f} threads"
        if fall.ratio <= DROP
        else f"{kernel} does not fall"
        for kernel, fall in falls.items()
    )


def _fall_numbers(falls: Mapping[str, Fall]) -> dict[str, float]:
    return {f"{kernel}_fall_at": fall.after for kernel, fall in falls.items()} | {
        f"{kernel}_fall_to": fall.ratio for kernel, fall in falls.items()
    }


def _decide_c22(stream: Measured, machine: NodeHardware) -> ClaimDecision:
    falls = _falls(stream, machine)
    ends = {
        kernel: _mean_ratio(line[-WINDOW:], stream.noise)
        for kernel, line in _ratios(stream.values, machine).items()
    }
    equal = [end.near(1, EQUAL, stream.noise) for end in ends.values()]
    listed = ", ".join(f"{kernel} {end.ratio:.2f}" for kernel, end in ends.items())
    return ClaimDecision(
        every(_dips(stream, machine, falls), *equal),
        f"With spread, {_describe(falls)} (expected: {machine.tiles + 1}); spread ÷ close ends "
        f"at {listed}",
        {**_fall_numbers(falls), **{f"{kernel}_end": end.ratio for kernel, end in ends.items()}},
    )


def _alike(line: Line, noise: Noise) -> list[Found]:
    """Return whether the mean ratio of each window is about 1."""
    return [
        _mean_ratio(line[at : at + WINDOW], noise).near(1, EQUAL, noise)
        for at in range(len(line) - WINDOW + 1)
    ]


def _decide_c23(stream: Measured, machine: NodeHardware) -> ClaimDecision:
    falls, ratios = _falls(stream, machine), _ratios(stream.values, machine)
    noise, at = stream.noise, machine.tiles + 1
    spread = _lines(stream.values, "spread", machine.cores)
    drops = {kernel: fall_to(line, at, WINDOW, noise) for kernel, line in spread.items()}
    above = {kernel: [(x, y) for x, y in line if x >= at] for kernel, line in ratios.items()}
    largest = [
        Estimate(
            drops["copy"].value - drops[kernel].value,
            math.hypot(drops["copy"].margin, drops[kernel].margin),
        ).at_most(1)
        for kernel in KERNELS[1:]
    ]
    meeting, wanted = meeting_of(above["copy"], noise), MEETS * machine.cores
    near = {abs(place - wanted) <= MAX_THREADS_APART * machine.cores for place in meeting.fitting}
    alike = {"scale": _alike(ratios["scale"], noise)}
    alike |= {kernel: _alike(above[kernel], noise) for kernel in ("add", "triad")}
    part = {kernel: fmean(each is True for each in of) for kernel, of in alike.items()}
    return ClaimDecision(
        every(
            _dips(stream, machine, falls),
            *largest,
            near.pop() if len(near) == 1 else None,
            drops["scale"].at_least(DROP),
            *(mostly(of, MIN_SHARE_OF_POINTS) for of in alike.values()),
        ),
        f"With spread, {_describe(falls)}; Copy meets close at {meeting.best:.0f} threads "
        f"(expected: about {wanted:.0f}); Scale is about equal to close at "
        f"{100 * part['scale']:.0f} % of the counts; above {machine.tiles} threads Add at "
        f"{100 * part['add']:.0f} % and Triad at {100 * part['triad']:.0f} %",
        {**_fall_numbers(falls), "copy_meets_at": meeting.best}
        | {f"{kernel}_equal": share for kernel, share in part.items()},
    )


def _over(line: Line, other: Line, noise: Noise) -> Estimate:
    """Return the ratio of the geometric means of two lines."""
    means = [fmean(math.log(y) for _, y in each) for each in (line, other)]
    weight = math.sqrt(1 / len(line) + 1 / len(other))
    return Estimate(means[0] - means[1], noise.margin(weight))


def _rises(line: Line, noise: Noise) -> Found:
    """Return whether a line ends above its start, and still rises in its last quarter."""
    quarter = max(WINDOW, len(line) // 4)
    whole = _over(line[-WINDOW:], line[:WINDOW], noise)
    last = _over(line[-quarter:], line[-2 * quarter : -quarter], noise)
    return every(whole.at_least(1 + HIGHER), last.at_least(1))


def _decide_c24(stream: Measured, machine: NodeHardware) -> ClaimDecision:
    noise, at = stream.noise, machine.cores + 1
    lines = _lines(stream.values, "close", 2 * machine.cores)
    falls = {kernel: steepest_fall(line, WINDOW, noise) for kernel, line in lines.items()}
    sharp = [fall_to(line, at, WINDOW, noise).at_most(SHARP) for line in lines.values()]
    first = {kernel: line[: machine.cores] for kernel, line in lines.items()}
    second = {kernel: line[machine.cores :] for kernel, line in lines.items()}
    ends = {
        kernel: _over(second[kernel][-WINDOW:], first[kernel][-WINDOW:], noise)
        for kernel in KERNELS
    }
    rises = {k: every(_rises(first[k], noise), _rises(second[k], noise)) for k in KERNELS}
    listed = ", ".join(f"{kernel} {end.ratio:.2f}" for kernel, end in ends.items())
    flat = [kernel for kernel, up in rises.items() if not up]
    rising = (
        f"not clearly rising in each half of the sweep: {', '.join(flat)}"
        if flat
        else "all kernels rise in each half of the sweep"
    )
    return ClaimDecision(
        every(
            *sharp,
            *(_is_at(fall, at) for fall in falls.values()),
            *rises.values(),
            *(end.at_least(SLIGHTLY) for end in ends.values()),
            *(end.at_most(1) for end in ends.values()),
        ),
        f"With close, {_describe(falls)} (expected: {at}); {rising}; twice the cores end at "
        f"{listed} × the value at {machine.cores} threads",
        {**_fall_numbers(falls), **{f"{kernel}_end": end.ratio for kernel, end in ends.items()}},
    )


CLAIMS = (
    Claim(
        "C2.1",
        "For 1 to 34 threads (one a tile) spread is at least close",
        ("knl",),
        _needs_both,
        _in_one_memory(_decide_c21),
    ),
    Claim(
        "C2.2",
        "At 35 threads (tiles + 1) Copy, Add and Triad drop with spread; all four kernels end "
        "about equal to close",
        ("knl",),
        _needs_both,
        _in_one_memory(_decide_c22),
    ),
    Claim(
        "C2.3",
        "The drop is largest for Copy, which meets close only near 55 threads; Scale shows no drop "
        "and is like close; Add and Triad drop to the level of close and stay there",
        ("knl",),
        _needs_both,
        _in_one_memory(_decide_c23),
    ),
    Claim(
        "C2.4",
        "With close, every kernel rises up to 68 threads (the cores), falls sharply at 69 and "
        "rises again to 136, ending slightly below the value at 68",
        ("knl",),
        _needs_close,
        _in_one_memory(_decide_c24),
    ),
)
