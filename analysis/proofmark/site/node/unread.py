"""Values of a probe that are printed but cannot be read: they are unknown, and the node is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TypeVar

from proofmark.common.text import one_line

T = TypeVar("T")

MOST_SHOWN = 5
"""The largest number of unread values that are named."""
LONGEST = 60
"""The largest number of characters of a value that is kept."""


class Unread:
    """Reads the optional values of one probe, and keeps those that cannot be read.

    Attributes:
        values: the text that was found, by the name of the value: ``section.key``.
        sections: the number of values that were read in each section, and of those that cannot be.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.sections: dict[str, tuple[int, int]] = {}

    def read(self, name: str, text: str | None, reader: Callable[[str], T]) -> T | None:
        """Return `reader` of `text`; None if there is no text, or if `reader` refuses it."""
        if text is None:
            return None
        try:
            value = reader(text)
        except (ArithmeticError, LookupError, ValueError):
            self.refuse(name, text)
            return None
        self._count(name, 0)
        return value

    def refuse(self, name: str, text: str) -> None:
        """Keep `text` as a value that cannot be read."""
        self._count(name, 1)
        self.values[one_line(name)] = one_line(text)[:LONGEST]

    def _count(self, name: str, refused: int) -> None:
        section = name.partition(".")[0]
        read, before = self.sections.get(section, (0, 0))
        self.sections[section] = read + 1, before + refused

    @property
    def garbled(self) -> tuple[str, ...]:
        """The sections of which no value can be read."""
        return tuple(name for name, (read, refused) in self.sections.items() if read == refused)


def finite(text: str) -> float:
    """Return the number in `text`.

    Raises:
        ValueError: it is no finite number.
    """
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"not finite: {text[:LONGEST]!r}")
    return number


def unread_lines(values: Mapping[str, str]) -> list[str]:
    """Return a line for each value that cannot be read, at most `MOST_SHOWN` and their number."""
    lines = [f"{name}: {text!r} cannot be read" for name, text in values.items()]
    more = len(lines) - MOST_SHOWN
    return [*lines[:MOST_SHOWN], *([f"{more} more values cannot be read"] if more > 0 else [])]
