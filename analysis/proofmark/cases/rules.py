"""The limits that can be computed from what a node is made of, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Rule = Literal["rpeak_nominal", "rpeak_avx", "memory_bandwidth", "link_bandwidth"]

UNIT_OF: Mapping[Rule, str] = {
    "rpeak_nominal": "GFlop/s",
    "rpeak_avx": "GFlop/s",
    "memory_bandwidth": "GB/s",
    "link_bandwidth": "GB/s",
}
