"""The section of the figures that a twin predicts: each beside the measured one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proofmark.common.translation import _
from proofmark.judge.predictions import FigurePredictions
from proofmark.report.page import Block, Column, Fold, Section, Table, facts, numeric, table
from proofmark.report.predictions import assumptions_table, cells, columns, notes
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import median_text, name, settings
from proofmark.report.words import count


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the section of the expected figures; nothing if the run has no predictions."""
    expected = run_data.verdict.expected
    if expected is None:
        return
    note = _(
        "A twin predicts the expected figures on a model of the partition. They are information: "
        "no figure passes or fails because of them."
    )
    about = facts(_("Predictions"), tuple(notes(expected)))
    assumptions = expected.expected.assumptions
    model = assumptions_table(assumptions)
    fold = Fold(
        _("Show {figures}").format(figures=count(len(assumptions), "assumption")),
        Block(tables=(model,)),
    )
    figures = (_figures(run_data, expected),) if expected.mask.any() else ()
    block = Block(paragraphs=(note,), tables=(about, *figures), folds=(fold,))
    yield Section("expected", _("Expected figures"), (block,))


def _figures(run_data: RunData, expected: FigurePredictions) -> Table:
    verdict = run_data.verdict
    chosen = np.flatnonzero(expected.mask).tolist()
    rows = (
        (
            name(result),
            settings(result),
            result.record.node,
            median_text(result),
            *cells(result, run_data),
        )
        for result in (verdict.results[figure] for figure in chosen)
    )
    heads: tuple[Column | str, ...] = (
        *(_("Figure"), _("Setting"), _("Node")),
        numeric(_("Median")),
        *columns(run_data),
    )
    rest = _("The complete list is in verdict.json.")
    return table(_("Measured and expected"), heads, rows, rest=rest, total=len(chosen))
