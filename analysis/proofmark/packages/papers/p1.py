"""Claims of paper P1 on KNL and SKL: HPL, STREAM and IOR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from proofmark.cases.vocabulary import Scalar
from proofmark.packages.papers.claim import (
    PAPERS,
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
    either,
    every,
    greatest,
    log_slope,
    mean_of,
    over,
    ratio_curve,
    slope,
    slope_weights,
    steepest_fall,
)

ABOUT = 0.10
"""Accepted relative deviation from a figure that the paper calls "about"."""
FAR_BELOW = 0.80
"""A figure is far below another one if it is at most this part of it."""
LITTLE = 0.10
"""Relative difference up to which there is little difference."""
EDGE = 0.05
"""Accepted relative deviation from a range of percentages read from a plot."""
SLOWLY = 0.15
"""Relative loss from one number of nodes to the next up to which a fall is slow."""
SATURATED = 0.25
"""A rate is saturated if a thread adds in the last quarter of the counts at most this part of what
one adds in the first quarter."""

NODES = (1, 2, 4, 8, 16)
MEMORIES = ("ddr", "mcdram")
STREAM_GBS = {"ddr": 89.0, "mcdram": 360.0}
SKL_STREAM_GBS = 177.2
TO_GBS = 1e-3


def _hpl(system: str, *, nodes: Sequence[int] = NODES, **fixed: str) -> SweepNeed:
    given = {"metric": "rmax", **fixed}
    return SweepNeed(system, "hpl", "Gflops", given, {"nodes": nodes}, best=True)


def _peak(machines: Machines, system: str) -> float:
    """Return Rpeak nominal of a node in GFlop/s; that of the papers if the machine has none."""
    return machines[system].peak_gflops or PAPERS[system].peak_gflops or 0.0


def _efficiency(values: Values, peak: float) -> list[tuple[float, float]]:
    return [(nodes, rate / (nodes * peak)) for nodes, rate in curve(values, 0)]


def _percent(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} … {100 * high:.1f} %"


def _needs_c11(machines: Machines) -> list[SweepNeed]:
    return [_hpl("knl", mode="a2a-flat", placement="fitted")]


def _decide_c11(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    hpl = figures[0]
    parts = [part for _, part in _efficiency(hpl.values, _peak(machines, "knl"))]
    middle = mean_of([math.log(part) for part in parts], hpl.noise)
    return ClaimDecision(
        middle.near(0.60, ABOUT, hpl.noise),
        f"HPL reaches {100 * middle.ratio:.1f} % of Rpeak in the mean over 1 to 16 nodes "
        f"({_percent(parts)}); the paper has about 60 %",
        {"efficiency": middle.ratio, "least": min(parts), "greatest": max(parts)},
    )


WHOLE = ("a2a-flat", "quadrant-flat")
SPLIT = ("snc2-flat", "snc4-flat")


def _needs_c12(machines: Machines) -> list[SweepNeed]:
    whole = [_hpl("knl", mode=mode, placement="fitted") for mode in WHOLE]
    return [*whole, *(_hpl("knl", mode=mode, placement="unfitted") for mode in SPLIT)]


def _decide_c12(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    a2a, quadrant, snc2, snc4 = (each.values for each in figures)
    noise_a2a, _, noise_2, noise_4 = (each.noise for each in figures)
    common = [nodes for nodes in a2a if all(nodes in each.values for each in figures)]
    least = {nodes: min(a2a[nodes], quadrant[nodes]) for nodes in common}
    two = mean_of([math.log(snc2[nodes] / least[nodes]) for nodes in common], noise_2, noise_a2a)
    four = mean_of([math.log(snc4[nodes] / least[nodes]) for nodes in common], noise_4, noise_a2a)
    worst = mean_of([math.log(snc2[nodes] / snc4[nodes]) for nodes in common], noise_2, noise_4)
    return ClaimDecision(
        every(two.at_most(FAR_BELOW), four.at_most(FAR_BELOW), worst.at_least(1)),
        f"Not fitted to its domains, HPL in SNC-2 is {two.ratio:.2f} ×, in SNC-4 "
        f"{four.ratio:.2f} × the lesser of All2All and Quadrant; far below is at most "
        f"{FAR_BELOW:g}, SNC-4 below SNC-2",
        {"snc2": two.ratio, "snc4": four.ratio},
    )


def _needs_c13(machines: Machines) -> list[SweepNeed]:
    return [_hpl("skl", placement="fitted")]


def _decide_c13(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    noise = figures[0].noise
    line = _efficiency(figures[0].values, _peak(machines, "skl"))
    parts = [part for _, part in line]
    low, high = 0.51 * (1 - EDGE), 0.66 * (1 + EDGE)
    point = noise.margin(1, tests=len(parts))
    inside = every(
        Estimate(math.log(min(parts)), point).at_least(low),
        Estimate(math.log(max(parts)), point).at_most(high),
    )
    # The accepted edge covers the noise of a figure, unless the noise is larger.
    known = low <= min(parts) and max(parts) <= high and noise.margin(1) <= EDGE
    steps = [1 - after / before for before, after in pairwise(parts)]
    apart = noise.margin(math.sqrt(2), tests=len(steps))
    return ClaimDecision(
        every(
            known or (False if inside is False else None),
            log_slope(line, noise).at_most(1),
            Estimate(math.log(1 - max(steps)), apart).at_least(1 - SLOWLY),
        ),
        f"HPL reaches {_percent(parts)} of Rpeak over 1 to 16 nodes, {100 * parts[0]:.1f} % on the "
        f"fewest and {100 * parts[-1]:.1f} % on the most; at most {100 * max(steps):.1f} % of it "
        "is lost from one number of nodes to the next; the paper has 51 to 66 %, falling slowly",
        {"least": min(parts), "greatest": max(parts), "worst_step": max(steps)},
    )


def _stream(system: str, mode: str | None, memory: str, machine: NodeHardware) -> SweepNeed:
    fixed = {"metric": "triad", "placement": "spread", "memory": memory}
    fixed |= {"mode": mode} if mode else {}
    return SweepNeed(system, "stream", "MB/s", fixed, {"threads": range(1, machine.cores + 1)})


def _best(stream: Measured) -> Estimate:
    """Return the best rate in GB/s over all numbers of threads."""
    return greatest((rate * TO_GBS for rate in stream.values.values()), stream.noise)


def _needs_c14(machines: Machines) -> list[SweepNeed]:
    streams = []
    for memory in MEMORIES:
        streams += [_stream("knl", mode, memory, machines["knl"]) for mode in WHOLE]
    return streams


def _decide_c14(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    bests = {"ddr": figures[:2], "mcdram": figures[2:]}
    rates = {memory: [_best(each) for each in of] for memory, of in bests.items()}
    about = []
    for memory, of in bests.items():
        about += [
            rate.near(STREAM_GBS[memory], ABOUT, stream.noise)
            for rate, stream in zip(rates[memory], of, strict=True)
        ]
    modes = {memory: _quadrant_over_a2a(*of) for memory, of in bests.items()}
    alike = [modes[memory].near(1, LITTLE, of[0].noise) for memory, of in bests.items()]
    apart = max(abs(mode.ratio - 1) for mode in modes.values())
    listed = "; ".join(
        f"{memory} {of[0].ratio:.1f} GB/s in All2All and {of[1].ratio:.1f} in Quadrant "
        f"(the paper: about {STREAM_GBS[memory]:g})"
        for memory, of in rates.items()
    )
    return ClaimDecision(
        every(*about, *alike),
        f"Best Triad: {listed}; the modes differ by {100 * apart:.1f} % in the mean over the "
        "numbers of threads",
        {
            **{f"{memory}_a2a": of[0].ratio for memory, of in rates.items()},
            **{f"{memory}_quadrant": of[1].ratio for memory, of in rates.items()},
            **{f"{memory}_quadrant_over_a2a": mode.ratio for memory, mode in modes.items()},
        },
    )


def _quadrant_over_a2a(a2a: Measured, quadrant: Measured) -> Estimate:
    ratios = ratio_curve(curve(quadrant.values, 0), curve(a2a.values, 0))
    return mean_of([math.log(ratio) for _, ratio in ratios], quadrant.noise, a2a.noise)


def _needs_c15(machines: Machines) -> list[SweepNeed]:
    return [_stream("skl", None, "ddr", machines["skl"])]


def _decide_c15(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    noise = figures[0].noise
    line = [(threads, rate * TO_GBS) for threads, rate in curve(figures[0].values, 0)]
    quarter = max(2, len(line) // 4)
    first, last = slope(line[:quarter]), slope(line[-quarter:])
    sure_first, sure_last = (
        _slope_margin(line[:quarter], noise),
        _slope_margin(line[-quarter:], noise),
    )
    rises = first > sure_first or (None if first >= -sure_first else False)
    beyond, sure = last - SATURATED * first, math.hypot(sure_last, SATURATED * sure_first)
    saturates = beyond <= -sure or (None if beyond <= sure else False)
    best = _best(figures[0])
    return ClaimDecision(
        every(best.near(SKL_STREAM_GBS, ABOUT, noise), rises, saturates),
        f"Best Triad {best.ratio:.1f} GB/s (the paper: {SKL_STREAM_GBS:g}); a thread adds "
        f"{first:.2f} GB/s in the first quarter of the counts and {last:.2f} in the last",
        {"best": best.ratio, "first_slope": first, "last_slope": last},
    )


def _slope_margin(line: Line, noise: Noise) -> float:
    """Return half the width of the interval of the slope: the noise is relative to each rate."""
    weights = slope_weights(line)
    return noise.margin(math.hypot(*(w * y for w, (_, y) in zip(weights, line, strict=True))))


def _needs_c18(machines: Machines) -> list[SweepNeed]:
    return [
        _hpl("knl", nodes=(1,), mode="a2a-flat", placement="fitted"),
        _hpl("skl", nodes=(1,), placement="fitted"),
        *(_stream("knl", "quadrant-flat", memory, machines["knl"]) for memory in MEMORIES),
        _stream("skl", None, "ddr", machines["skl"]),
    ]


def _decide_c18(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    knl, skl = (each.values[(1,)] for each in figures[:2])
    ddr, mcdram, other = (_best(each) for each in figures[2:])
    peaks = _peak(machines, "skl") / _peak(machines, "knl")
    hpl = mean_of([math.log(skl / knl)], *(each.noise for each in figures[:2]))
    return ClaimDecision(
        every(
            abs(peaks - 1) <= ABOUT,
            hpl.at_least(1),
            over(other, ddr).at_least(1),
            over(mcdram, other).at_least(1),
        ),
        f"Rpeak of SKL is {peaks:.3f} × that of KNL; HPL on one node {skl:.0f} against {knl:.0f} "
        f"GFlop/s; STREAM {other.ratio:.1f} GB/s against {ddr.ratio:.1f} of DDR4 and "
        f"{mcdram.ratio:.1f} of MCDRAM",
        {"rpeak_ratio": peaks, "hpl_skl": skl, "hpl_knl": knl}
        | {"stream_skl": other.ratio, "stream_knl_ddr": ddr.ratio}
        | {"stream_knl_mcdram": mcdram.ratio},
    )


LAYOUTS = ("single-shared-file", "file-per-process")
OPERATIONS = ("write", "read")
BLOCKS = tuple(2**power for power in range(21, 36))
"""2 MB … 32,768 MB in 15 doublings (P1.ior)."""

SHARP = 2 / 3
"""A fall is sharp if at most this part of the bandwidth is left."""
WINDOW = 2
"""Points on either side of a fall: few, because the sizes double."""

GB = 1e9
KNL_TASKS, SKL_TASKS = 16, 10
KNL_CLIFFS = {"ddr": (45 * GB, 90 * GB), "mcdram": (11 * GB, 23 * GB)}
"""About 64 and about 16 GB: from half a doubling below to half a doubling above."""
SKL_CLIFF = (70 * GB, 100 * GB)
"""A little under 100 GB: at most half a doubling under it."""


def _need(system: str, tasks: int, memory: str) -> SweepNeed:
    fixed: dict[str, Scalar] = {
        "api": "POSIX",
        "cache": "as-the-paper",
        "tasks": tasks,
        "memory": memory,
    }
    axes = {"metric": OPERATIONS, "layout": LAYOUTS, "block_bytes": BLOCKS}
    return SweepNeed(system, "ior", "MiB/s", fixed, axes)


def _decide(io: Measured, tasks: int, span: tuple[float, float], name: str) -> ClaimDecision:
    """Decide whether each layout falls sharply within `span` bytes, in writing or in reading."""
    falls: dict[tuple[str, str], Fall] = {}
    for layout in LAYOUTS:
        falls |= {
            (operation, layout): _fall(io, operation, layout, tasks) for operation in OPERATIONS
        }
    fits = {key: every(_sharp(fall), _meets(fall, span)) for key, fall in falls.items()}
    holds = every(
        *(either(*(fits[operation, layout] for operation in OPERATIONS)) for layout in LAYOUTS)
    )
    listed = "; ".join(
        f"{operation} {layout} falls to {fall.ratio:.2f} between {fall.before / GB:.1f} and "
        f"{fall.after / GB:.1f} GB"
        if _sharp(fall)
        else f"{operation} {layout} has no sharp fall"
        for (operation, layout), fall in falls.items()
    )
    numbers: dict[str, float] = {}
    for (operation, layout), fall in falls.items():
        key = f"{operation}_{layout}_{name}"
        numbers |= {f"{key}_from_gb": fall.before / GB, f"{key}_to_gb": fall.after / GB}
        numbers |= {f"{key}_ratio": fall.ratio}
    expected = f"expected between {span[0] / GB:g} and {span[1] / GB:g} GB"
    return ClaimDecision(holds, f"{name}: {listed} ({expected})", numbers)


def _fall(io: Measured, operation: str, layout: str, tasks: int) -> Fall:
    line = [(blocks * tasks, rate) for blocks, rate in curve(io.values, 2, operation, layout)]
    return steepest_fall(line, WINDOW, io.noise)


def _sharp(fall: Fall) -> Found:
    return fall.size.at_most(SHARP)


def _meets(fall: Fall, span: tuple[float, float]) -> Found:
    """Return whether the fall is within `span`: None if it may be there or elsewhere."""
    inside = {before <= span[1] and after >= span[0] for before, after in fall.places}
    return inside.pop() if len(inside) == 1 else None


def _needs_c16(machines: Machines) -> list[SweepNeed]:
    return [_need("knl", KNL_TASKS, memory) for memory in KNL_CLIFFS]


def _decide_c16(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    parts = [
        _decide(io, KNL_TASKS, span, memory)
        for io, (memory, span) in zip(figures, KNL_CLIFFS.items(), strict=True)
    ]
    numbers: dict[str, float] = {}
    for part in parts:
        numbers.update(part.numbers)
    sentence = ". ".join(part.sentence for part in parts)
    return ClaimDecision(every(*(part.holds for part in parts)), sentence, numbers)


def _needs_c17(machines: Machines) -> list[SweepNeed]:
    return [_need("skl", SKL_TASKS, "ddr")]


def _decide_c17(figures: Sequence[Measured], machines: Machines) -> ClaimDecision:
    return _decide(figures[0], SKL_TASKS, SKL_CLIFF, "ddr")


CLAIMS = (
    Claim("C1.1", "KNL HPL, All2All, Flat: about 60 % of Rpeak", ("knl",), _needs_c11, _decide_c11),
    Claim(
        "C1.2",
        "SNC-2 and SNC-4 fall far below Quadrant and All2All when the job is not fitted to the "
        "domains; SNC-4 is worst",
        ("knl",),
        _needs_c12,
        _decide_c12,
    ),
    Claim(
        "C1.3",
        "SKL HPL: 51 to 66 % of Rpeak over 1 to 16 nodes, falling slowly as nodes are added",
        ("skl",),
        _needs_c13,
        _decide_c13,
    ),
    Claim(
        "C1.4",
        "KNL STREAM: MCDRAM about 360 GB/s, DDR4 about 89 GB/s; the cluster mode makes little "
        "difference",
        ("knl",),
        _needs_c14,
        _decide_c14,
    ),
    Claim(
        "C1.5",
        "SKL STREAM: best 177.2 GB/s of 256; saturates as threads grow",
        ("skl",),
        _needs_c15,
        _decide_c15,
    ),
    Claim(
        "C1.8",
        "Rpeak of KNL and SKL is about equal; SKL measures higher in HPL and than DDR4 of KNL, "
        "MCDRAM higher than SKL",
        ("knl", "skl"),
        _needs_c18,
        _decide_c18,
    ),
    Claim(
        "C1.6",
        "IOR cache effect, KNL: sharp fall at a file size of about 64 GB with DDR4 bound, about "
        "16 GB with MCDRAM bound",
        ("knl",),
        _needs_c16,
        _decide_c16,
    ),
    Claim(
        "C1.7",
        "IOR cache effect, SKL (10 processes, one socket): sharp fall at a file size a little "
        "under 100 GB",
        ("skl",),
        _needs_c17,
        _decide_c17,
    ),
)
