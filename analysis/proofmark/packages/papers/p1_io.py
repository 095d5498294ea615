"""Claims of paper P1 on IOR: the bandwidth falls at the size of the page cache."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.cases.vocabulary import Scalar
from proofmark.judge.claim_source import Machines
from proofmark.packages.papers.change_point import Fall, steepest_fall
from proofmark.packages.papers.claim import Claim, ClaimDecision, Measured, SweepNeed
from proofmark.packages.papers.claim_figures import curve
from proofmark.packages.papers.repeat_noise import Found, either, every

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
