"""Numbers, sentences and the accepted figures of a limit for readers.

Foreign text has its invisible characters escaped.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping

from proofmark.cases.reference import Reference
from proofmark.common.translation import _, counted
from proofmark.judge.references.judgement import Bounds
from proofmark.runs.run import Seal
from proofmark.site.contract_document import (
    CheckItem,
    ContractItem,
    DerivedItem,
    Item,
    WitnessedItem,
)

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
    return character.encode("unicode_escape").decode("ascii")


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


def sealing(seal: Seal) -> str:
    """Return who sealed the evidence, and whether that is the user who ran the jobs."""
    if seal.by == seal.run_by:
        text = _("sealed {time} by {user}, the user who ran it")
    else:
        text = _("sealed {time} by {user}; {owner} ran it")
    return text.format(time=f"{seal.time:%Y-%m-%d %H:%M UTC}", user=seal.by, owner=seal.run_by)


def accepted_text(accepted: Bounds, of: str = "", *, unit: str | None = None) -> str:
    """Return accepted figures in words; empty if every figure is accepted.

    Args:
        accepted: ratios, or values in `unit`.
        of: what the ratios are parts of: ``at least 0.9 × 85 GB/s``. Empty: ``at least 0.9``.
        unit: of values: ``≥ 76.5 GB/s``; it can be empty. None for ratios.
    """
    ratios = _("at least {bound}"), _("at most {bound}")
    values = "≥ {bound}", "≤ {bound}"
    texts: list[str] = []
    for text, bound in zip(ratios if unit is None else values, accepted, strict=True):
        if bound is None:
            continue
        if unit is not None:
            shown = f"{number(bound)} {unit}".rstrip()
        else:
            shown = f"{bound:.4g} × {of}" if of else f"{bound:.4g}"
        texts.append(text.format(bound=shown))
    return ", ".join(texts)


def open_bounds_text(of: str) -> str:
    """Return the accepted figures of a typical value whose tolerance is not known."""
    return _("at least {bound}").format(bound=f"(1 - tolerance) × {of}")


def item_details(item: Item) -> tuple[str, ...]:
    """Return the text of an item, and whether it is minor."""
    return (visible(item.text), *([_("minor")] if item.severity == "minor" else []))


def item_text(item: Item) -> str:
    """Return what an item accepts: its figures, what the nodes report, or what is to be seen."""
    if isinstance(item, WitnessedItem):
        return visible(item.witnessed)
    return check_text(item) if isinstance(item, CheckItem) else limit_text(item)


UNITS_OF_CHECKS = {"memory": "GiB", "mounts": "GiB", "clock": "s"}
"""The units of functional items; the others are counts and texts."""


def check_text(item: CheckItem) -> str:
    """Return what the nodes must report: ``the same on all nodes``, ``≥ 64``, a text."""
    if item.equal:
        return _("the same on all nodes")
    if item.value is not None:
        return item.value if isinstance(item.value, str) else number(item.value)
    unit = UNITS_OF_CHECKS.get(item.check, "")
    return accepted_text(Bounds(item.at_least, item.at_most), unit=unit)


def limit_text(item: ContractItem | DerivedItem) -> str:
    """Return the accepted figures of an item: ``≥ 320 GB/s``, ``at least 0.7 × hpcc dgemm``."""
    bounds = Bounds(item.at_least, item.at_most)
    if item.value is None:
        assert isinstance(item, ContractItem)  # a derived item has a value
        return accepted_text(bounds, reference_text(item, item.case))
    return accepted_text(bounds.times(item.value), unit=item.unit or "")


def reference_text(reference: Reference, case: str) -> str:
    """Return what figures are compared with, as ``hpcc dgemm_star at bytes 8 × ranks``."""
    if reference.value is not None:
        return f"{number(reference.value)} {reference.unit or ''}".rstrip()
    if reference.rule is not None:
        return reference.rule
    against = reference.against
    assert against is not None  # a reference has one of the three
    where = "".join(f" at {key} {value}" for key, value in against.where.items())
    # The form of ``{ranks}``, or a number.
    factor = against.times.strip("{}") if isinstance(against.times, str) else f"{against.times:g}"
    times = f" × {factor}" if against.times != 1 else ""
    return f"{against.case or case} {against.metric}{where}{times}"
