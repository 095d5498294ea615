"""Parses JSON of others: files that programs wrote, and answers of BMCs and schedulers."""

from __future__ import annotations

import json
import re
from typing import Any

from proofmark.common.limits import MAX_DEPTH

_NESTING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[^][{}"]++', re.DOTALL)
"""All bytes of a JSON text that are not a bracket outside of a string."""


def parse_json(content: bytes) -> Any:
    """Return the value in JSON of at most `MAX_DEPTH` levels; the levels are counted first.

    Raises:
        ValueError: it is not JSON in UTF-8 (RFC 8259), has NaN or Infinity, or has more levels.
    """
    if content.count(b"[") + content.count(b"{") > MAX_DEPTH and depth(content) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)


def depth(content: bytes) -> int:
    """Return the number of nested objects and lists in `content`, which need not be JSON."""
    deepest = level = 0
    for bracket in _NESTING.sub(b"", content):
        level += 1 if bracket in b"{[" else -1
        deepest = max(deepest, level)
    return deepest


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
