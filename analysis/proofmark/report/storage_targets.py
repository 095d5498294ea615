"""The report section about slow storage targets."""

from __future__ import annotations

from proofmark.judge.fleet.fleet import LIKE_TARGETS
from proofmark.report.page import TITLED, Block, Cell, Column, Section, table
from proofmark.report.run_data import RunData
from proofmark.report.text import count, number

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
    slow = run_data.verdict.targets
    if not slow:
        text = f"None of {count(max(compared), 'storage target')} is slower than chance explains."
        return (Section("storage-targets", "Storage targets", (Block(paragraphs=(text,)),)),)
    rows = []
    for target in slow:
        shown = [
            f"{each.record.metric} {number(each.record.value)} {each.record.unit}: {each.reason}"
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
        "Storage target",
        "File system",
        Column("Worst figure ÷ median", "number"),
        "Evidence",
    )
    caption = f"{count(len(slow), 'slow storage target')} of {max(compared)}"
    shown_table = table(caption, columns, rows, kind=TITLED)
    block = Block(titles=(caption,), tables=(shown_table,))
    return (Section("storage-targets", "Storage targets", (block,)),)
