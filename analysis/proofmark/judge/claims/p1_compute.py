"""Claims of paper P1 on HPL and STREAM, on KNL and SKL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from proofmark.judge.claims.change_point import slope
from proofmark.judge.claims.model import PAPERS, Claim, Decision, Machine, Machines, Need, Values
from proofmark.judge.claims.series import curve

ABOUT = 0.10
"""Accepted relative deviation from a figure that the paper calls "about"."""
FAR = 0.80
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


def _hpl(system: str, *, nodes: Sequence[int] = NODES, **fixed: str) -> Need:
    given = {"metric": "rmax", **fixed}
    return Need(system, "hpl", "Gflops", given, {"nodes": nodes}, best=True)


def _peak(machines: Machines, system: str) -> float:
    """Return Rpeak nominal of a node in GFlop/s; that of the papers if the machine has none."""
    return machines[system].peak_gflops or PAPERS[system].peak_gflops or 0.0


def _efficiency(values: Values, peak: float) -> list[tuple[float, float]]:
    return [(nodes, rate / (nodes * peak)) for nodes, rate in curve(values, 0)]


def _percent(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} … {100 * high:.1f} %"


def _needs_c11(machines: Machines) -> list[Need]:
    return [_hpl("knl", mode="a2a-flat", placement="fitted")]


def _decide_c11(figures: Sequence[Values], machines: Machines) -> Decision:
    parts = [part for _, part in _efficiency(figures[0], _peak(machines, "knl"))]
    middle = median(parts)
    return Decision(
        abs(middle / 0.60 - 1) <= ABOUT,
        f"HPL reaches {100 * middle:.1f} % of Rpeak in the median over 1 to 16 nodes "
        f"({_percent(parts)}); the paper has about 60 %",
        {"efficiency": middle, "least": min(parts), "greatest": max(parts)},
    )


WHOLE = ("a2a-flat", "quadrant-flat")
SPLIT = ("snc2-flat", "snc4-flat")


def _needs_c12(machines: Machines) -> list[Need]:
    whole = [_hpl("knl", mode=mode, placement="fitted") for mode in WHOLE]
    return [*whole, *(_hpl("knl", mode=mode, placement="unfitted") for mode in SPLIT)]


def _decide_c12(figures: Sequence[Values], machines: Machines) -> Decision:
    a2a, quadrant, snc2, snc4 = figures
    common = [nodes for nodes in a2a if all(nodes in each for each in figures)]
    least = {nodes: min(a2a[nodes], quadrant[nodes]) for nodes in common}
    two = median(snc2[nodes] / least[nodes] for nodes in common)
    four = median(snc4[nodes] / least[nodes] for nodes in common)
    return Decision(
        two <= FAR and four <= FAR and four < two,
        f"Not fitted to its domains, HPL in SNC-2 is {two:.2f} ×, in SNC-4 {four:.2f} × the "
        f"lesser of All2All and Quadrant; far below is at most {FAR:g}, SNC-4 below SNC-2",
        {"snc2": two, "snc4": four},
    )


def _needs_c13(machines: Machines) -> list[Need]:
    return [_hpl("skl", placement="fitted")]


def _decide_c13(figures: Sequence[Values], machines: Machines) -> Decision:
    line = _efficiency(figures[0], _peak(machines, "skl"))
    parts = [part for _, part in line]
    inside = min(parts) >= 0.51 * (1 - EDGE) and max(parts) <= 0.66 * (1 + EDGE)
    falls = slope(line) < 0 and parts[-1] < parts[0]
    steps = [1 - after / before for before, after in pairwise(parts)]
    return Decision(
        inside and falls and max(steps) <= SLOWLY,
        f"HPL reaches {_percent(parts)} of Rpeak over 1 to 16 nodes, {100 * parts[0]:.1f} % on the "
        f"fewest and {100 * parts[-1]:.1f} % on the most; at most {100 * max(steps):.1f} % of it "
        "is lost from one number of nodes to the next; the paper has 51 to 66 %, falling slowly",
        {"least": min(parts), "greatest": max(parts), "worst_step": max(steps)},
    )


def _stream(system: str, mode: str | None, memory: str, machine: Machine) -> Need:
    fixed = {"metric": "triad", "placement": "spread", "memory": memory}
    fixed |= {"mode": mode} if mode else {}
    return Need(system, "stream", "MB/s", fixed, {"threads": range(1, machine.cores + 1)})


def _best(values: Values) -> float:
    return max(values.values()) * TO_GBS


def _needs_c14(machines: Machines) -> list[Need]:
    return [_stream("knl", mode, memory, machines["knl"]) for memory in MEMORIES for mode in WHOLE]


def _decide_c14(figures: Sequence[Values], machines: Machines) -> Decision:
    best = [_best(each) for each in figures]
    bests = {"ddr": best[:2], "mcdram": best[2:]}
    about = all(
        abs(rate / STREAM_GBS[memory] - 1) <= ABOUT
        for memory, rates in bests.items()
        for rate in rates
    )
    differences = {memory: max(rates) / min(rates) - 1 for memory, rates in bests.items()}
    listed = "; ".join(
        f"{memory} {rates[0]:.1f} GB/s in All2All and {rates[1]:.1f} in Quadrant "
        f"(the paper: about {STREAM_GBS[memory]:g})"
        for memory, rates in bests.items()
    )
    return Decision(
        about and max(differences.values()) <= LITTLE,
        f"Best Triad: {listed}; the modes differ by {100 * max(differences.values()):.1f} %",
        {
            **{f"{memory}_a2a": rates[0] for memory, rates in bests.items()},
            **{f"{memory}_quadrant": rates[1] for memory, rates in bests.items()},
        },
    )


def _needs_c15(machines: Machines) -> list[Need]:
    return [_stream("skl", None, "ddr", machines["skl"])]


def _decide_c15(figures: Sequence[Values], machines: Machines) -> Decision:
    line = [(threads, rate * TO_GBS) for threads, rate in curve(figures[0], 0)]
    quarter = max(2, len(line) // 4)
    first, last = slope(line[:quarter]), slope(line[-quarter:])
    best = max(rate for _, rate in line)
    return Decision(
        abs(best / SKL_STREAM_GBS - 1) <= ABOUT and first > 0 and last <= SATURATED * first,
        f"Best Triad {best:.1f} GB/s (the paper: {SKL_STREAM_GBS:g}); a thread adds {first:.2f} "
        f"GB/s in the first quarter of the counts and {last:.2f} in the last",
        {"best": best, "first_slope": first, "last_slope": last},
    )


def _needs_c18(machines: Machines) -> list[Need]:
    return [
        _hpl("knl", nodes=(1,), mode="a2a-flat", placement="fitted"),
        _hpl("skl", nodes=(1,), placement="fitted"),
        *(_stream("knl", "quadrant-flat", memory, machines["knl"]) for memory in MEMORIES),
        _stream("skl", None, "ddr", machines["skl"]),
    ]


def _decide_c18(figures: Sequence[Values], machines: Machines) -> Decision:
    knl, skl = (values[(1,)] for values in figures[:2])
    ddr, mcdram, other = (_best(values) for values in figures[2:])
    peaks = _peak(machines, "skl") / _peak(machines, "knl")
    equal = abs(peaks - 1) <= ABOUT
    return Decision(
        equal and skl > knl and other > ddr and mcdram > other,
        f"Rpeak of SKL is {peaks:.3f} × that of KNL; HPL on one node {skl:.0f} against {knl:.0f} "
        f"GFlop/s; STREAM {other:.1f} GB/s against {ddr:.1f} of DDR4 and {mcdram:.1f} of MCDRAM",
        {"rpeak_ratio": peaks, "hpl_skl": skl, "hpl_knl": knl}
        | {"stream_skl": other, "stream_knl_ddr": ddr, "stream_knl_mcdram": mcdram},
    )


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
)
