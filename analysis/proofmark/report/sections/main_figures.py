"""The first section of the report: the key figures, and what was not covered."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.judge.headline import CONTRACT
from proofmark.report.key_figures import KeyRow, key_rows, key_texts, not_measured
from proofmark.report.page import Block, Cell, Section, listed, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import verdict_cell
from proofmark.report.words import count

NUMBER = "number"


def section(run_data: RunData) -> Section:
    """Return the key figures with their limits, then what the run does not cover."""
    measured = key_rows(run_data)
    # A limit of the contract is an item, which is shown above.
    rows = [row for row in measured if row.judgement is None or row.judgement.kind != CONTRACT]
    caption = _("Key figures")
    columns = (
        _("Figure"),
        numeric(_("Worst node")),
        numeric(_("Of the peak")),
        numeric(_("Limit")),
        numeric(_("Visible change")),
        _("Verdict"),
    )
    shown = titled(caption, columns, map(_cells, rows))
    note = _(
        "Each sweep has one row: the point that a limit judges, else the best point, on its worst "
        "node. The peak is that of the hardware: nominal Rpeak, memory, link. A limit states its "
        "kind. With 95 % confidence the true level is beyond the limit by the visible change at "
        "most."
    )
    plain = () if run_data.verdict.contract else (_sanity(),)
    figures = Block(paragraphs=(*plain, note), tables=(shown,)) if rows else Block(paragraphs=plain)
    scope = listed(_("Not covered"), not_covered(run_data, measured))
    return Section("key-figures", caption, (figures, scope) if scope.items else (figures,))


def _sanity() -> str:
    """Return what a run without a contract is, and the one next step."""
    return _(
        "A sanity check: nothing here accepts this machine. To accept one, begin with the tutorial "
        "(docs/tutorial.md), or with your own site: proofmark init inventory/mysite."
    )


def _cells(row: KeyRow) -> tuple[Cell, ...]:
    texts = key_texts(row)
    middle = _("median {value}").format(value=texts.middle) if texts.middle else ""
    return (
        Cell(texts.title, "strong", tuple(filter(None, (texts.case, texts.point)))),
        Cell(texts.value, NUMBER, tuple(filter(None, (texts.node, middle, texts.own)))),
        Cell(texts.share or "–", NUMBER),
        Cell(texts.limit or "–", NUMBER, tuple(filter(None, (texts.kind,)))),
        Cell(texts.visible or "–", NUMBER),
        verdict_cell(row.word),
    )


def not_covered(run_data: RunData, rows: list[KeyRow]) -> Iterator[str]:
    """Yield what the run says nothing about: figures, modes, nodes, the proof of imported runs."""
    verdict = run_data.verdict
    if missing := not_measured(rows):
        yield _("Not measured: {figures}.").format(figures=", ".join(missing))
    if left := len(verdict.coverage.not_run):
        yield _("Other modes: {steps} not run.").format(steps=count(left, "step"))
    if verdict.degraded:
        yield localized(verdict.degraded.label)
    if verdict.conditions.imported:
        yield _("Others produced the outputs. Modes, binding and disturbance are not proved.")
