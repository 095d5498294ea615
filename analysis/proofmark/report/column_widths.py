"""The widths of the columns of a table of the PDF."""

from __future__ import annotations

from collections.abc import Sequence


def column_widths(
    shares: Sequence[float], least: Sequence[float], width: float
) -> tuple[float, ...]:
    """Return widths of the `shares` of `width`, each at least that in `least`, in mm.

    fpdf2 breaks a word that is wider than its column, also the name of a node. The room that a
    column needs is taken from the others, in proportion to what they can give. If all of them
    together need more than `width`, the widths are those of the shares.
    """
    wanted = [share / sum(shares) * width for share in shares]
    missing = sum(max(0.0, need - want) for need, want in zip(least, wanted, strict=True))
    spare = sum(max(0.0, want - need) for need, want in zip(least, wanted, strict=True))
    if missing > spare:
        return tuple(wanted)
    given = missing / spare if spare else 0.0
    return tuple(
        need if want < need else want - (want - need) * given
        for need, want in zip(least, wanted, strict=True)
    )
