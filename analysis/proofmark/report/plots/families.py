"""Which benchmarks of IMB and OMB are of one kind, by the names they print."""

from __future__ import annotations

import re

_COLLECTIVE = re.compile(
    r"bcast|broadcast|reduce|gather|scatter|all-?to-?all|scan|barrier", re.IGNORECASE
)
_LOCAL = re.compile(r"local", re.IGNORECASE)
_PAIRS = re.compile(
    r"PingPong|PingPing|Uniband|Biband|Sendrecv|Exchange|(Uni|Bi|Co)random|Bandwidth|Latency"
)


def is_collective(benchmark: str) -> bool:
    """Tell whether all ranks take part in one operation."""
    found = _COLLECTIVE.search(benchmark) is not None
    return found and _LOCAL.search(benchmark) is None


def is_point_to_point(benchmark: str) -> bool:
    """Tell whether ranks exchange messages in pairs or with their neighbours."""
    return _PAIRS.search(benchmark) is not None and _COLLECTIVE.search(benchmark) is None
