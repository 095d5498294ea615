"""Labels of modes, memories and file layouts, and the kinds of benchmarks by their names."""

from __future__ import annotations

import re

from proofmark.common.translation import N_, _, translated

_COLLECTIVE = re.compile(
    r"bcast|broadcast|reduce|gather|scatter|all-?to-?all|scan|barrier", re.IGNORECASE
)
_LOCAL = re.compile(r"local", re.IGNORECASE)
_PAIRS = re.compile(
    r"PingPong|PingPing|Uniband|Biband|Sendrecv|Exchange|(Uni|Bi|Co)random|Bandwidth|Latency"
)
_MODES = {
    "a2a": "All2All",
    "quadrant": "Quadrant",
    "hemisphere": "Hemisphere",
    "snc2": "SNC-2",
    "snc4": "SNC-4",
}
_MEMORIES = {"ddr": "DDR", "mcdram": "MCDRAM", "hbm": "HBM", "cxl": "CXL", "nvm": "NVM"}
_LAYOUTS = {"single-shared-file": N_("shared file"), "file-per-process": N_("file per process")}


def mode_name(mode: str) -> str:
    """Return the name of a mode as in the papers. Flat is omitted: they measure no other mode."""
    cluster, _, memory = mode.partition("-")
    name = _MODES.get(cluster)
    if name is None:
        return "" if mode == "current" else mode
    return name if memory == "flat" else f"{name} {memory}"


def memory_name(memory: object) -> str:
    """Return the name of a kind of memory as in the papers."""
    return _MEMORIES.get(str(memory), str(memory or ""))


def layout_name(layout: object) -> str:
    """Return the short name of a file layout."""
    return translated(_LAYOUTS.get(str(layout), str(layout or "")))


def with_fit(name: str, placement: str) -> str:
    """Return `name`, with ``not fitted`` if the placement is not fitted to the NUMA domains."""
    return ", ".join(filter(None, (name, _("not fitted")))) if placement == "unfitted" else name


def block_name(size: object) -> str:
    """Return the block size of a file system as in the paper; ``blocks of N B`` for other sizes."""
    return {524288: _("512 KB blocks"), 1048576: _("1 MB blocks")}.get(
        size if isinstance(size, int) else 0, _("blocks of {size} B").format(size=size)
    )


def is_collective(benchmark: str) -> bool:
    """Return whether the benchmark is a collective operation."""
    collective = _COLLECTIVE.search(benchmark) is not None
    return collective and _LOCAL.search(benchmark) is None


def is_point_to_point(benchmark: str) -> bool:
    """Return whether the benchmark exchanges messages in pairs or with neighbours."""
    return _PAIRS.search(benchmark) is not None and _COLLECTIVE.search(benchmark) is None
