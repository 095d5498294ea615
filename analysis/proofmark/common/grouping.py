"""Values by their keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in the order of `pairs`."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
