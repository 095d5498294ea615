"""The key figures in the summary."""

from __future__ import annotations

from proofmark.common.translation import _
from proofmark.report.key_figures import KeyRow, key_rows, key_texts
from proofmark.report.run_data import RunData
from proofmark.report.sections.main_figures import not_covered
from proofmark.report.short.sheet import Allowance, SheetColumn, SheetPart, clipped


def key_part(run_data: RunData, allowance: Allowance) -> SheetPart:
    """Return the key figures, and below them what the run does not cover."""
    rows = key_rows(run_data)
    left = len(rows) - allowance.limits
    more = (
        [_("{count} more key figures are in report.html.").format(count=left)] if left > 0 else []
    )
    return SheetPart(
        "key-figures",
        _("Key figures"),
        (
            SheetColumn(_("Figure"), 29),
            SheetColumn(_("Worst node"), 24),
            SheetColumn(_("Of the peak"), 10, "number"),
            SheetColumn(_("Limit"), 17),
            SheetColumn(_("Visible change"), 9, "number"),
            SheetColumn(_("Verdict"), 11, "word"),
        ),
        tuple(_row(row, allowance.characters) for row in rows[: allowance.limits]),
        rest=(*more, *not_covered(run_data, rows)),
    )


def _row(row: KeyRow, most: int) -> tuple[str, ...]:
    texts = key_texts(row)
    return (
        clipped(f"{texts.title}, {texts.case}", most // 2),
        clipped(", ".join(filter(None, (texts.value, texts.node))), most // 2),
        texts.share or "–",
        clipped(" ".join(filter(None, (texts.kind, texts.limit))) or "–", most // 2),
        texts.visible or "–",
        row.word,
    )
