"""The table of what the model of a twin assumes."""

from __future__ import annotations

from collections.abc import Iterable

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.plan.twin.assumptions import Assumption
from proofmark.report.page import TITLED, Table, table


def assumptions_table(assumptions: Iterable[Assumption]) -> Table:
    """Return a table with one row for each assumption."""
    rows = [
        (
            localized(each.what),
            localized(each.value),
            _("source") if each.sourced else _("assumed"),
            localized(each.why),
        )
        for each in assumptions
    ]
    heads = (_("Part of the model"), _("Value"), _("Kind"), _("Source or assumption"))
    return table(_("Assumptions of the model"), heads, rows, kind=TITLED)
