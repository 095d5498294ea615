"""Claims of paper P2: STREAM with close or spread threads on the tiles of a KNL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from proofmark.judge.claims.change_point import Fall, Line, steepest_fall
from proofmark.judge.claims.model import Claim, Decision, Machine, Machines, Need, Scalar, Values
from proofmark.judge.claims.series import curve, ratio_curve

KERNELS = ("copy", "scale", "add", "triad")
FALLING = ("copy", "add", "triad")
MEMORIES = ("ddr", "mcdram")
"""The paper does not name the memory: both are measured, and a claim holds if it holds in one."""

NOISE = 0.05
"""Relative difference of two figures by chance."""
EQUAL = 0.10
"""Relative difference up to which two figures are about equal."""
MOST = 0.90
"""Part of the points at which a relation must hold."""
DROP = 0.95
"""A fall to at most this part is a drop."""
SHARP = 0.90
"""A fall to at most this part is sharp."""
SLIGHTLY = 0.80
"""A figure is slightly below another one if it is at least this part of it."""
MEETS = 55 / 68
"""Threads ÷ cores at which Copy with spread reaches close: 55 threads of 68 cores."""
NEAR = 0.10
"""Difference of two numbers of threads, as a part of the cores, up to which they are near."""
WINDOW = 3
"""Points on either side of a fall, and at an end of a line."""


def _need(machine: Machine, memory: str, placements: Sequence[str], threads: int) -> Need:
    fixed = {"mode": "quadrant-flat", "memory": memory}
    axes: dict[str, Sequence[Scalar]] = {
        "metric": KERNELS,
        "placement": placements,
        "threads": range(1, threads + 1),
    }
    return Need("knl", "stream", "MB/s", fixed, axes)


def _needs_both(machines: Machines) -> list[Need]:
    knl = machines["knl"]
    return [_need(knl, memory, ("close", "spread"), knl.cores) for memory in MEMORIES]


def _needs_close(machines: Machines) -> list[Need]:
    knl = machines["knl"]
    return [_need(knl, memory, ("close",), 2 * knl.cores) for memory in MEMORIES]


OfMemory = Callable[[Values, Machine], Decision]


def _in_a_memory(decide: OfMemory) -> Callable[[Sequence[Values], Machines], Decision]:
    """Return the function that decides for each memory; the claim holds if it holds in one."""

    def either(figures: Sequence[Values], machines: Machines) -> Decision:
        decisions = {
            memory: decide(values, machines["knl"])
            for memory, values in zip(MEMORIES, figures, strict=True)
        }
        numbers = {
            f"{memory}_{name}": value
            for memory, decision in decisions.items()
            for name, value in decision.numbers.items()
        }
        sentence = ". ".join(
            f"{memory}, {'as claimed' if decision.holds else 'not as claimed'}: {decision.sentence}"
            for memory, decision in decisions.items()
        )
        return Decision(any(each.holds for each in decisions.values()), sentence, numbers)

    return either


def _lines(values: Values, placement: str, last: int) -> dict[str, Line]:
    return {
        kernel: [(x, y) for x, y in curve(values, 2, kernel, placement) if x <= last]
        for kernel in KERNELS
    }


def _ratios(values: Values, machine: Machine) -> dict[str, Line]:
    """Return spread ÷ close over the number of threads for each kernel."""
    spread = _lines(values, "spread", machine.cores)
    close = _lines(values, "close", machine.cores)
    return {kernel: ratio_curve(spread[kernel], close[kernel]) for kernel in KERNELS}


def _falls(values: Values, machine: Machine) -> dict[str, Fall]:
    spread = _lines(values, "spread", machine.cores)
    return {kernel: steepest_fall(line, WINDOW) for kernel, line in spread.items()}


def _at_least(line: Line) -> float:
    """Return the part of the ratios that are at least 1 − `NOISE`."""
    return fmean(ratio >= 1 - NOISE for _, ratio in line)


def _decide_c21(values: Values, machine: Machine) -> Decision:
    ratios = {
        kernel: [(x, y) for x, y in line if x <= machine.tiles]
        for kernel, line in _ratios(values, machine).items()
    }
    parts = {kernel: _at_least(line) for kernel, line in ratios.items()}
    middles = {kernel: median(ratio for _, ratio in line) for kernel, line in ratios.items()}
    holds = min(parts.values()) >= MOST and min(middles.values()) >= 1 - NOISE / 2
    listed = ", ".join(f"{kernel} {middle:.2f}" for kernel, middle in middles.items())
    return Decision(
        holds,
        f"spread ÷ close for 1 to {machine.tiles} threads has the medians {listed}; spread is not "
        f"below close at {100 * min(parts.values()):.0f} % of the counts or more",
        {f"{kernel}_median": middle for kernel, middle in middles.items()},
    )


def _at_end(line: Line) -> float:
    return median(y for _, y in line[-WINDOW:])


def _is_dip(fall: Fall, machine: Machine) -> bool:
    return fall.ratio <= DROP and fall.after == machine.tiles + 1


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


def _decide_c22(values: Values, machine: Machine) -> Decision:
    falls = _falls(values, machine)
    ends = {kernel: _at_end(line) for kernel, line in _ratios(values, machine).items()}
    dips = all(_is_dip(falls[kernel], machine) for kernel in FALLING)
    equal = all(abs(end - 1) <= EQUAL for end in ends.values())
    listed = ", ".join(f"{kernel} {end:.2f}" for kernel, end in ends.items())
    return Decision(
        dips and equal,
        f"With spread, {_describe(falls)} (expected: {machine.tiles + 1}); spread ÷ close ends "
        f"at {listed}",
        {**_fall_numbers(falls), **{f"{kernel}_end": end for kernel, end in ends.items()}},
    )


def _meeting(line: Line) -> float:
    """Return the first x from which on the ratios stay within `NOISE` of 1; infinity if none."""
    smooth = [
        (x, median(y for _, y in line[max(0, place - 1) : place + 2]))
        for place, (x, _) in enumerate(line)
    ]
    unequal = [place for place, (_, ratio) in enumerate(smooth) if abs(ratio - 1) > NOISE]
    place = unequal[-1] + 1 if unequal else 0
    return smooth[place][0] if place < len(smooth) else float("inf")


def _decide_c23(values: Values, machine: Machine) -> Decision:
    falls, ratios = _falls(values, machine), _ratios(values, machine)
    above = {
        kernel: [(x, y) for x, y in line if x > machine.tiles] for kernel, line in ratios.items()
    }
    largest = all(falls["copy"].ratio < falls[kernel].ratio for kernel in KERNELS[1:])
    meeting, wanted = _meeting(above["copy"]), MEETS * machine.cores
    meets = abs(meeting - wanted) <= NEAR * machine.cores
    scale = fmean(abs(ratio - 1) <= EQUAL for _, ratio in ratios["scale"])
    level = {
        kernel: fmean(abs(ratio - 1) <= EQUAL for _, ratio in above[kernel])
        for kernel in ("add", "triad")
    }
    dips = all(_is_dip(falls[kernel], machine) for kernel in FALLING)
    holds = dips and largest and meets and falls["scale"].ratio > DROP
    return Decision(
        holds and scale >= MOST and min(level.values()) >= MOST,
        f"With spread, {_describe(falls)}; Copy stays with close from {meeting:.0f} threads on "
        f"(expected: about {wanted:.0f}); Scale is about equal to close at {100 * scale:.0f} % "
        f"of the counts; above {machine.tiles} threads Add at {100 * level['add']:.0f} % and "
        f"Triad at {100 * level['triad']:.0f} %",
        {**_fall_numbers(falls), "copy_meets_at": meeting, "scale_equal": scale}
        | {f"{kernel}_equal": part for kernel, part in level.items()},
    )


def _rises(line: Line) -> bool:
    """Return whether a line ends above its start and near its greatest value."""
    end, start = _end(line), fmean(y for _, y in line[:WINDOW])
    best = max(fmean(y for _, y in line[at : at + WINDOW]) for at in range(len(line) - WINDOW + 1))
    return end > start * (1 + NOISE) and end >= best * (1 - NOISE)


def _end(line: Line) -> float:
    return fmean(y for _, y in line[-WINDOW:])


def _decide_c24(values: Values, machine: Machine) -> Decision:
    lines = _lines(values, "close", 2 * machine.cores)
    falls = {kernel: steepest_fall(line, WINDOW) for kernel, line in lines.items()}
    first = {kernel: line[: machine.cores] for kernel, line in lines.items()}
    second = {kernel: line[machine.cores :] for kernel, line in lines.items()}
    ends = {kernel: _end(second[kernel]) / _end(first[kernel]) for kernel in KERNELS}
    at = machine.cores + 1
    sharp = all(fall.ratio <= SHARP and fall.after == at for fall in falls.values())
    rises = {k: _rises(first[k]) and _rises(second[k]) for k in KERNELS}
    below = all(SLIGHTLY <= end < 1 for end in ends.values())
    listed = ", ".join(f"{kernel} {end:.2f}" for kernel, end in ends.items())
    flat = [kernel for kernel, up in rises.items() if not up]
    rising = (
        f"{' and '.join(flat)} does not rise on both sides" if flat else "all rise on both sides"
    )
    return Decision(
        sharp and not flat and below,
        f"With close, {_describe(falls)} (expected: {at}); {rising}; twice the cores end at "
        f"{listed} × the value at {machine.cores} threads",
        {**_fall_numbers(falls), **{f"{kernel}_end": end for kernel, end in ends.items()}},
    )


CLAIMS = (
    Claim(
        "C2.1",
        "For 1 to 34 threads (one a tile) spread is at least close",
        ("knl",),
        _needs_both,
        _in_a_memory(_decide_c21),
    ),
    Claim(
        "C2.2",
        "At 35 threads (tiles + 1) Copy, Add and Triad drop with spread; all four kernels end "
        "about equal to close",
        ("knl",),
        _needs_both,
        _in_a_memory(_decide_c22),
    ),
    Claim(
        "C2.3",
        "The drop is largest for Copy, which meets close only near 55 threads; Scale shows no drop "
        "and is like close; Add and Triad drop to the level of close and stay there",
        ("knl",),
        _needs_both,
        _in_a_memory(_decide_c23),
    ),
    Claim(
        "C2.4",
        "With close, every kernel rises up to 68 threads (the cores), falls sharply at 69 and "
        "rises again to 136, ending slightly below the value at 68",
        ("knl",),
        _needs_close,
        _in_a_memory(_decide_c24),
    ),
)
