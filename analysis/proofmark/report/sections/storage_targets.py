"""The report section about slow storage targets."""

from __future__ import annotations

from proofmark.common.message import localized
from proofmark.common.translation import _
from proofmark.judge.fleet.like_figures import LIKE_TARGETS
from proofmark.report.page import Block, Cell, Section, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.words import count, number

MOST_FIGURES = 3


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run that compared no storage targets."""
    compared = [
        figure.fleet_limit.nodes
        for figure in run_data.verdict.fleet.figures
        if figure.members == LIKE_TARGETS
    ]
    if not compared:
        return ()
    slow = run_data.verdict.storage.targets
    if not slow:
        text = _("None of {targets} is slower than chance explains.").format(
            targets=count(max(compared), "storage target")
        )
        return (Section("storage-targets", _("Storage targets"), (Block(paragraphs=(text,)),)),)
    rows = []
    for target in slow:
        shown = [
            f"{each.record.metric} {number(each.record.value)} {each.record.unit}: "
            f"{localized(each.reason)}"
            for each in target.results[:MOST_FIGURES]
        ]
        rows.append(
            (
                Cell(str(target.target), "strong"),
                target.file_system,
                f"{target.ratio:.2g}",
                Cell(shown[0], "reason", details=tuple(shown[1:])),
            )
        )
    columns = (
        _("Storage target"),
        _("File system"),
        numeric(_("Worst figure ÷ median")),
        _("Evidence"),
    )
    caption = _("{slow} of {all}").format(
        slow=count(len(slow), "slow storage target"), all=max(compared)
    )
    shown_table = titled(caption, columns, rows)
    block = Block(titles=(caption,), tables=(shown_table,))
    return (Section("storage-targets", _("Storage targets"), (block,)),)
