"""Types of numbers of the command line. Each has a largest value: time and memory grow with it."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an option that takes a whole number from `least` to `most`."""

    def parse(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
            number = int(text)
            if least <= number <= most:
                return number
        raise _refused(text, f"a whole number from {least} to {most}")

    return parse


def above_zero(most: float) -> Callable[[str], float]:
    """Return the type of an option that takes a number above 0, at most `most`."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if 0 < number <= most:
            return number
        raise _refused(text, f"a number above 0, at most {most:g}")

    return parse


_DIGITS = 20


def _refused(text: str, accepted: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"found {text[:80]!r}; accepted: {accepted}")
