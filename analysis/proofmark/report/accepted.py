"""The accepted figures of a limit in words: the one place that makes this text."""

from __future__ import annotations

from proofmark.cases.reference import Reference
from proofmark.common.translation import _
from proofmark.judge.references.elsewhere import ElsewhereReference
from proofmark.judge.references.judgement import Bounds
from proofmark.report.words import number
from proofmark.site.contract_document import CheckItem, ContractItem, Item


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


def item_text(item: Item) -> str:
    """Return what an item accepts: its figures, or what the nodes must report."""
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


def limit_text(item: ContractItem) -> str:
    """Return the accepted figures of an item: ``≥ 320 GB/s``, ``at least 0.7 × hpcc dgemm``."""
    bounds = Bounds(item.at_least, item.at_most)
    if item.value is None:
        return accepted_text(bounds, reference_text(item, item.case))
    return accepted_text(bounds.times(item.value), unit=item.unit or "")


def reference_text(reference: Reference, case: str, unit: str = "") -> str:
    """Return what figures are compared with: ``85 GB/s``, ``hpcc dgemm_star at bytes 8 × ranks``.

    Args:
        reference: the reference or limit.
        case: of its figures.
        unit: that of the figures, for a value that states none.
    """
    if reference.value is not None:
        return f"{number(reference.value)} {reference.unit or unit}".rstrip()
    if reference.rule is not None:
        return reference.rule
    if isinstance(reference, ElsewhereReference):
        return _("what another site accepted")
    against = reference.against
    assert against is not None  # a reference has one of the three
    where = "".join(f" at {key} {value}" for key, value in against.where.items())
    # The form of ``{ranks}``, or a number.
    factor = against.times.strip("{}") if isinstance(against.times, str) else f"{against.times:g}"
    times = f" × {factor}" if against.times != 1 else ""
    return f"{against.case or case} {against.metric}{where}{times}"
