"""Formats durations and sizes, and makes external text printable."""

from __future__ import annotations


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


def one_line(text: str) -> str:
    """Return `text` in one line without control characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
