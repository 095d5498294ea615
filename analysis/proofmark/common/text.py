"""Durations, sizes and units; external text is made harmless: one line, one cell of CSV.

Libraries of physical units contain neither ``Mbytes/sec`` nor ``GUP/s``. A prefix with an i is
binary, other prefixes are decimal. The programs agree: STREAM, OSU (from 2009) and IMB (from 2018)
count a MB as 10^6 bytes; IOR and fio print MiB and KiB for binary units.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula in a spreadsheet, also in their full-width form."""


class Counted(int):
    """A number of a text. The format ``node|nodes`` adds the noun, which is English."""

    def __format__(self, spec: str) -> str:
        """Return the number; with a noun as ``1 node`` and ``2 nodes``."""
        one, _, many = spec.partition("|")
        return f"{int(self)} {one if self == 1 else many}" if many else f"{int(self):{spec}}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 rank, 2 ranks."""
    return f"{Counted(number):{noun}|{noun}s}"


def duration(seconds: float) -> str:
    """Return a duration in seconds as text: ``42 s``, ``3 min 05 s``, ``2 h 07 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: float) -> str:
    """Return a number of bytes in binary units: ``512 B``, ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def percent(part: float) -> str:
    """Return a part of a whole in percent, without the sign: two digits, or a whole number."""
    return f"{100 * part:.2g}" if abs(part) < 0.1 else f"{100 * part:.0f}"


def beside(ratio: float, *bounds: float | None) -> str:
    """Return a ratio in three digits, or in as many as show on which side of each bound it is."""
    limits = [bound for bound in bounds if bound is not None]
    for digits in range(3, 17):
        shown = f"{ratio:.{digits}g}"
        if all((float(shown) < x, float(shown) > x) == (ratio < x, ratio > x) for x in limits):
            return shown
    return f"{ratio}"


def by_number(name: str) -> list[tuple[int, str]]:
    """Return the key by which names are in the order of their numbers: ``n2`` before ``n10``."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def whole_number(text: str, digits: int = 20) -> int | None:
    """Return a number; None for another text, or one of more digits: 20 hold 64 bits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def one_line(text: str) -> str:
    """Return `text` in one line without control characters, at its ends without blanks.

    Line and paragraph separators, C0 and C1 controls, marks of the writing direction and lone
    surrogates become blanks. Several blanks become one. A text that has none of them is not
    changed, except for the blanks at its ends.
    """
    if text.isprintable():
        return text.strip()
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def visible_line(line: str) -> str:
    """Return a line with a blank for each control character; its indentation stays."""
    return "".join(letter if letter.isprintable() or letter == "\t" else " " for letter in line)


def csv_cell(text: str) -> str:
    """Return `text` as one cell of a CSV file that no spreadsheet takes for a formula.

    A text that could be a formula gets an apostrophe before it. A number stays a number.
    """
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) and not _NUMBER.fullmatch(line) else line


_PREFIXES = {
    **{"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15},
    **{"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40},
}
_COUNTED = {
    ("flop/s", 1.0): ("flops", "flop/s", "Flops", "Flop/s", "FLOPS", "FLOP/s"),
    ("byte/s", 1.0): ("B/s", "B/sec", "bytes/sec", "Bytes/s", "Byte/s"),
    ("byte/s", 1 / 8): ("b/s", "bit/s", "b/sec"),
    ("update/s", 1.0): ("UP/s",),
    ("operation/s", 1.0): ("op/s", "ops/s"),
    ("message/s", 1.0): ("Messages/s", "Msg/sec", "messages/s"),
    ("byte", 1.0): ("B", "bytes"),
    ("Hz", 1.0): ("Hz",),
    ("W", 1.0): ("W",),
}
_MEASURES = {
    **{"s": ("s", 1.0), "sec": ("s", 1.0), "ms": ("s", 1e-3), "msec": ("s", 1e-3)},
    **{"us": ("s", 1e-6), "usec": ("s", 1e-6), "ns": ("s", 1e-9)},
    **{"%": ("part", 1e-2), "": ("part", 1.0)},
}
"""The base unit of each unit, and the number of base units in it."""
for (_base, _scale), _names in _COUNTED.items():
    for _name in _names:
        _MEASURES |= {f"{key}{_name}": (_base, each * _scale) for key, each in _PREFIXES.items()}


def measure(unit: str) -> tuple[str, float]:
    """Return the base unit of `unit`, and the number of base units in it.

    A unit that is not in the table is its own base unit.
    """
    return _MEASURES.get(unit, (unit, 1.0))


def factor(given: str, wanted: str) -> float | None:
    """Return the factor from the unit `given` to the unit `wanted`; None if no factor exists."""
    (counted, size), (other, other_size) = measure(given), measure(wanted)
    return size / other_size if counted == other else None
