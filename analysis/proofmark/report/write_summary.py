"""Writes the summary of a run: two pages at most, as HTML and as PDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from proofmark.common.files import write_whole_bytes
from proofmark.report.render import render_summary
from proofmark.report.run_data import RunData
from proofmark.report.sheet import ALLOWANCES, Allowance, Sheet
from proofmark.report.sheet_of_run import sheet

MOST_PAGES = 2


def write_summary(run_data: RunData, sums: Mapping[str, str]) -> tuple[Path, Path]:
    """Write ``summary.html`` and ``summary.pdf`` into the folder of a run; return their paths.

    With SOURCE_DATE_EPOCH set, the same run gives the same bytes.

    Args:
        run_data: the run.
        sums: the SHA-256 of each file of the run by its name.

    Raises:
        BadInput: a font is missing.
    """
    # fpdf2 takes half a second to import: only a command that writes a summary needs it.
    from proofmark.report.summary_pdf import pdf

    def made(allowance: Allowance) -> tuple[Sheet, bytes, int]:
        content = sheet(run_data, sums, allowance)
        return content, *pdf(content, run_data.written)

    content, document = fitted(made)
    page, printed = run_data.run.files.summary
    write_whole_bytes(page, render_summary(content).encode())
    write_whole_bytes(printed, document)
    return page, printed


def fitted(made: Callable[[Allowance], tuple[Sheet, bytes, int]]) -> tuple[Sheet, bytes]:
    """Return the summary with the most rows that has at most `MOST_PAGES` pages.

    `made` returns the summary with at most the rows of an allowance, its PDF and its pages.
    """
    for allowance in ALLOWANCES:
        content, document, pages = made(allowance)
        if pages <= MOST_PAGES:
            return content, document
    raise AssertionError(f"the smallest summary has {pages} pages")
