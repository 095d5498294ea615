"""Words and numbers as people read them, and foreign text made harmless to look at."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping

from ClusterShell.NodeSet import NodeSet

LONGEST = 2000
"""Characters of one piece of foreign text that a report shows."""

_VISIBLE = {"\n", "\t"}
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # Unicode general categories


def visible(text: str) -> str:
    r"""Return `text` with what cannot be seen spelled out (``\x1b``), and bounded in length.

    Control characters, marks that turn the direction of writing and lone surrogates could hide
    or forge words of a report; HTML's own characters are the template's business.
    """
    if text.isprintable() and len(text) <= LONGEST:
        return text  # isprintable() is true of no character in `_INVISIBLE`
    kept = text[:LONGEST]
    shown = "".join(_shown(character) for character in kept)
    left_out = len(text) - len(kept)
    return f"{shown} … ({left_out} more characters)" if left_out else shown


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


def size(count: int | None) -> str:
    """Return bytes in the largest binary unit that leaves no long fraction: ``64 MiB``."""
    if count is None:
        return "–"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.4g} {unit}"


def pairs(parameters: Mapping[str, object]) -> str:
    """Return parameters as ``bytes 4096, ranks 2``; lines break between, not within them."""
    return ", ".join(f"{key}\u00a0{value}" for key, value in parameters.items())


def count(amount: int, one: str, many: str = "") -> str:
    """Return ``1 step``, ``2 steps``; `many` where an s is not enough."""
    return f"{grouped(amount)} {one if amount == 1 else many or one + 's'}"


def sentence(parts: Iterable[str], between: str = "; ") -> str:
    """Join what there is of `parts` to one sentence with a full stop."""
    text = between.join(filter(None, parts))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def folded(hosts: Iterable[str]) -> str:
    """Return host names as a node set (``knl[0001-0068]``); odd names stand as they are."""
    known, odd = NodeSet(), []
    for host in hosts:
        if re.fullmatch(r"[A-Za-z0-9_.-]+", host):
            known.add(host)
        else:
            odd.append(host)
    return ", ".join([*([str(known)] if known else []), *odd])
