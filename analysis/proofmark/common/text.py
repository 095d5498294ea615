"""Formats durations and sizes, and makes external text harmless: one line, one cell of CSV."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula in a spreadsheet, also in their full-width form."""


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
