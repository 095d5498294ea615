"""Numbers and sentences for readers, and foreign text with its invisible characters escaped."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping

from proofmark.common.translation import _, counted
from proofmark.runs.run import Seal

LONGEST = 2000
"""The largest number of characters of one foreign text that a report shows."""

_VISIBLE = {"\n", "\t"}
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # Unicode general categories


def visible(text: str) -> str:
    r"""Return `text` with invisible characters escaped (``\x1b``), cut after `LONGEST` characters.

    Control characters, direction marks and lone surrogates could hide or forge text of a report.
    The template escapes the special characters of HTML.
    """
    if text.isprintable() and len(text) <= LONGEST:
        return text  # isprintable() is False for each character in `_INVISIBLE`
    kept = text[:LONGEST]
    shown = "".join(_shown(character) for character in kept)
    left_out = len(text) - len(kept)
    if not left_out:
        return shown
    return _("{text} … ({count} more characters)").format(text=shown, count=left_out)


def _shown(character: str) -> str:
    if character in _VISIBLE or unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def number(value: float | None, digits: int = 4) -> str:
    """Return `value` with at least `digits` significant digits, thousands grouped; – for None."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10 ** (digits - 1) or value == int(value):
        return grouped(round(value)) if abs(value) < 1e15 else f"{value:.{digits}g}"
    if abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    return f"{value:.{digits - 1 - math.floor(math.log10(abs(value)))}f}"


def grouped(value: int) -> str:
    """Return an integer in groups of three digits, narrow no-break spaces between (ISO 80000-1)."""
    return f"{value:,}".replace(",", "\u202f") if abs(value) >= 10_000 else str(value)


def size_4_digits(count: int | None) -> str:
    """Return `count` bytes in binary units, with up to four digits: ``64 MiB``; – for None."""
    if count is None:
        return "–"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.4g} {unit}"


def pairs(parameters: Mapping[str, object]) -> str:
    """Return parameters as ``bytes 4096, ranks 2``; a line does not break within a parameter."""
    return ", ".join(f"{key}\u00a0{value}" for key, value in parameters.items())


def count(amount: int, one: str, many: str = "") -> str:
    """Return ``1 step``, ``2 steps``; `many` is the plural if it is not `one` with an s.

    `one` and `many` must be literals, because the catalogue is extracted from the calls.
    """
    return counted(one, many or f"{one}s", amount).format(count=grouped(amount))


def sentence(parts: Iterable[str], between: str = "; ") -> str:
    """Return the parts that are not empty as one sentence with a full stop."""
    text = between.join(filter(None, parts))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def sealing(seal: Seal) -> str:
    """Return who sealed the evidence, and whether that is the user who ran the jobs."""
    if seal.by == seal.run_by:
        text = _("sealed {time} by {user}, the user who ran it")
    else:
        text = _("sealed {time} by {user}; {owner} ran it")
    return text.format(time=f"{seal.time:%Y-%m-%d %H:%M UTC}", user=seal.by, owner=seal.run_by)
