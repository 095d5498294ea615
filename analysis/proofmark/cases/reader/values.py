"""Conversion of printed words to numbers and parameters. A word that is not one is an error."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from proofmark.common.message import NOTHING, Message

Parameter = str | int | float

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)  # 18 digits always fit 64 bits
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?(bytes|B|KiB|MiB|GiB|TiB)?", re.ASCII)
_SUFFIXED = re.compile(r"(\d{1,18})(?:([kmgtp])(i?))?b?", re.ASCII | re.IGNORECASE)
_LEAST = sys.float_info.min
"""The least number of full precision. A smaller one is memory that a program never set."""

_BYTES = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_PREFIXES = "kmgtp"


def shorten(line: str, width: int = 72) -> str:
    """Return a line quoted for a reason: one blank for several, only its ends if it is long."""
    if len(line) > 8 * width:
        line = f"{line[: 4 * width]}…{line[-4 * width :]}"
    words = " ".join(line.split())
    text = "".join(letter if letter.isprintable() else "�" for letter in words)
    if len(text) > width:
        text = f"{text[: width // 2]}…{text[-(width // 2) + 1 :]}"
    return repr(text)


def measured(word: str) -> tuple[float | None, Message]:
    """Return the number in `word` and `NOTHING`, or None and the problem.

    A measured quantity is finite and not negative.
    """
    if not _NUMBER.fullmatch(word):
        return None, Message("reader-not-number", word=shorten(word, 40))
    return _in_range(float(word), word)


def _in_range(value: float, word: str) -> tuple[float | None, Message]:
    if value < 0:
        return None, Message("reader-negative", word=shorten(word, 40))
    if not math.isfinite(value):
        return None, Message("reader-too-large", word=shorten(word, 40))
    if 0 < value < _LEAST:
        return None, Message("reader-never-set", word=shorten(word, 40))
    return value, NOTHING


@lru_cache(maxsize=4096)
def parameter(kind: str, word: str) -> Parameter:
    """Return `word` as a parameter of type `kind` (see `spec.ReadSpec.parameters`).

    Raises:
        ValueError: it is not of this type. Its argument is a message.
    """
    return _TYPES[kind](word.strip())


def _int(word: str) -> int:
    if not _INTEGER.fullmatch(word):
        raise ValueError(Message("reader-not-whole", word=shorten(word, 40)))
    return int(word)


def _real(word: str) -> float:
    value, problem = measured(word)
    if value is None:
        raise ValueError(problem)
    return value


def _word(word: str) -> str:
    if not word or not word.isprintable():
        raise ValueError(Message("reader-not-word", word=shorten(word, 40)))
    return word


def _size(word: str) -> int:
    match = _SIZE.fullmatch(word)
    if not match:
        raise ValueError(Message("reader-not-size", word=shorten(word, 40)))
    size = float(match[1]) * _BYTES[match[2] or "bytes"]
    if size != int(size):
        # A program that prints two decimals has rounded the size: the exact one is unknown.
        raise ValueError(Message("reader-not-bytes", word=repr(word)))
    return int(size)


def rounds_to(word: str, exact: int) -> bool:
    """Return whether `word`, a size like `9.46 TiB`, is `exact` bytes in its number of decimals."""
    match = _SIZE.fullmatch(word)
    if not match:
        return False
    number, unit = Decimal(match[1]), _BYTES[match[2] or "bytes"]
    last = Decimal(1).scaleb(-len(match[1].partition(".")[2]))
    return abs(number * unit - exact) <= last * unit / 2


def scaled(word: str, power: int) -> tuple[float | None, Message]:
    """Return `measured(word)` times ten to the power of `power`, rounded once."""
    value, problem = measured(word)
    if value is None or not power:
        return value, problem
    return _in_range(float(Decimal(word).scaleb(power)), word)


def _suffixed(word: str) -> int:
    match = _SUFFIXED.fullmatch(word)
    if not match:
        raise ValueError(Message("reader-not-suffixed", word=shorten(word, 40)))
    power = 1 + _PREFIXES.index(match[2].lower()) if match[2] else 0
    unit: int = (1000 if match[3] else 1024) ** power
    return int(match[1]) * unit


class Printed(float):
    """A number or a size of an output that is only compared; NaN if the word is neither.

    A size without decimals is exact.

    Attributes:
        half: half of the last printed digit: the number can be that far from the exact one.
    """

    half: float

    def __new__(cls, word: str) -> Printed:
        """Return the number that a program printed as `word`."""
        sized = _SIZE.fullmatch(word)
        unit = _BYTES[sized[2]] if sized and sized[2] else 1
        number = sized[1] if sized and sized[2] else word
        value, _ = measured(number)
        made = super().__new__(cls, math.nan if value is None else value * unit)
        exponent = Decimal(number).as_tuple().exponent if value is not None else "n"
        made.half = 0.0
        if isinstance(exponent, int) and (unit == 1 or exponent < 0):
            made.half = 0.5 * float(Decimal(1).scaleb(exponent)) * unit
        return made if math.isfinite(made.half) else cls("")


_TYPES: dict[str, Callable[[str], Parameter]] = {
    "int": _int,
    "real": _real,
    "word": _word,
    "lower": lambda word: _word(word).lower(),
    "size": _size,
    "suffixed": _suffixed,
    "printed": Printed,
}
