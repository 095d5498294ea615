"""The section about the accepted runs of the site: what is worse, better, and what has changed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from proofmark.common.message import localized
from proofmark.common.text import percent
from proofmark.common.translation import _
from proofmark.judge.baseline import BaselineComparison
from proofmark.report.page import Block, Section, Table, facts, table
from proofmark.report.run_data import RunData


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the section; nothing if the run was compared with no accepted run."""
    comparison = run_data.verdict.baseline
    if comparison is None:
        return
    about = facts(_("Comparison"), _summary(comparison))
    tables = (about, *([_changes(comparison)] if comparison.changes else []))
    yield Section("baseline", _("Comparison with accepted runs"), (Block(tables=tables),))


def _summary(comparison: BaselineComparison) -> Iterator[tuple[str, str]]:
    baseline = comparison.baseline
    worse = comparison.outcome("worse")
    passed = np.setdiff1d(comparison.outcome("passed"), worse)
    unclear = len(comparison.compared) - len(passed) - len(worse)
    yield _("Baseline"), " ".join(filter(None, (baseline.name, baseline.label)))
    runs = (f"{each.run} ({each.accepted:%Y-%m-%d}, {each.signer})" for each in baseline.runs)
    yield _("Accepted runs"), ", ".join(runs)
    yield _("Figures compared"), f"{len(comparison.compared)}"
    yield _("Worse than accepted"), f"{len(worse)}"
    yield _("As accepted"), f"{len(passed)}"
    yield _("Better than accepted"), f"{len(comparison.outcome('better'))}"
    yield _("Noise too large or not known"), f"{unclear}"
    if not math.isnan(change := comparison.visible_change):
        yield _("Change that would be seen, median of the figures"), f"{percent(change)} %"
    yield _("Not compared: another program"), f"{comparison.other_program}"
    yield _("Not compared: other hardware"), f"{comparison.other_hardware}"
    yield _("Not compared: not in the baseline"), f"{comparison.unknown}"
    yield _("Only in the baseline"), f"{comparison.unmeasured}"


def _changes(comparison: BaselineComparison) -> Table:
    columns = (_("Property"), _("Accepted"), _("This run"), _("Nodes"))
    rows = [
        (localized(each.what), each.before or "–", each.after or "–", each.nodes)
        for each in comparison.changes
    ]
    caption = _("Changes since the newest accepted run: candidate causes")
    return table(caption, columns, rows, rest=_("The list is in verdict.json."))
