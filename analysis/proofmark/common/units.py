"""The units that benchmarks print, and their conversion.

Libraries of physical units contain neither ``Mbytes/sec`` nor ``GUP/s``. A prefix with an i is
binary, other prefixes are decimal. The programs agree: STREAM, OSU (from 2009) and IMB (from 2018)
count a MB as 10^6 bytes; IOR and fio print MiB and KiB for binary units.
"""

from __future__ import annotations

import re
from functools import lru_cache

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_COUNTED = {
    "flop/s": ("flops", "flop/s", "Flops", "Flop/s", "FLOPS", "FLOP/s"),
    "byte/s": ("B/s", "B/sec", "bytes/sec", "Bytes/s", "Byte/s"),
    "bit/s": ("b/s", "bit/s", "b/sec"),
    "update/s": ("UP/s",),
    "operation/s": ("op/s", "ops/s"),
    "message/s": ("Messages/s", "Msg/sec", "messages/s"),
    "byte": ("B", "bytes"),
    "Hz": ("Hz",),
    "W": ("W",),
}
_SINGLE = {
    "s": ("s", 1.0),
    "sec": ("s", 1.0),
    "ms": ("s", 1e-3),
    "msec": ("s", 1e-3),
    "us": ("s", 1e-6),
    "usec": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "%": ("part", 1e-2),
    "": ("part", 1.0),
}


@lru_cache(maxsize=256)
def measure(unit: str) -> tuple[str, float]:
    """Return the base unit of `unit`, and the number of base units in it.

    A unit that is not in the table is its own base unit.
    """
    if unit in _SINGLE:
        return _SINGLE[unit]
    for counted, names in _COUNTED.items():
        for name in names:
            prefix = unit.removesuffix(name)
            if prefix == unit or not re.fullmatch(r"[A-Za-z]{0,2}", prefix):
                continue
            for prefixes in (_DECIMAL, _BINARY):
                if prefix in prefixes:
                    if counted == "bit/s":
                        return "byte/s", prefixes[prefix] / 8
                    return counted, prefixes[prefix]
    return unit, 1.0


def factor(given: str, wanted: str) -> float | None:
    """Return the factor from the unit `given` to the unit `wanted`; None if no factor exists."""
    (counted, size), (other, other_size) = measure(given), measure(wanted)
    return size / other_size if counted == other else None
