"""Values by their keys, in batches, and of several collections in one list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in the order of `pairs`."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def batched(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """Yield `size` values at a time, and at last the rest (`itertools.batched` of Python 3.12)."""
    left = iter(values)
    while batch := [*islice(left, size)]:
        yield batch


def flat(collections: Iterable[Iterable[Value]]) -> list[Value]:
    """Return the values of several collections, one after the other."""
    return [*chain.from_iterable(collections)]
