"""Physical bounds of the metrics: the names that they may use, and the bounds of each unit."""

from __future__ import annotations

from collections.abc import Mapping

NODE_CEILINGS = (
    *("cores", "clock", "core_flops", "flops", "core_cache", "cache", "memory", "link"),
    "llc_bytes",
)
"""Ceilings of the nodes of a measurement, see `proofmark.site.ceilings.Ceilings`."""
MESSAGE = "message_s"
"""The shortest time of a message between two ranks, in seconds."""
TIME_LIMIT = "timeout"
"""The time limit of the step, in seconds."""
OWN_NAMES = (*NODE_CEILINGS, MESSAGE, TIME_LIMIT)
"""Names that an expression of a bound may use besides the values of the step."""

LARGEST: Mapping[str, float] = {
    "flop/s": 1e16,
    "operation/s": 1e16,
    "byte/s": 2e16,
    "update/s": 1e14,
    "message/s": 1e14,
    "byte": 1e18,
    "part": 1e9,
    "Hz": 1e11,
    "W": 1e6,
    "°C": 200,
    "events": 1e12,
}
"""The largest possible value of one node by base unit. The fastest nodes reach less than a tenth of
each; a share of 1e9 allows any speed-up and any spread."""
LARGEST_OTHER = 1e24
"""The largest value in any other unit."""
