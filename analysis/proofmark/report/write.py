"""Writes the report of a run: one HTML page that needs no script and no network."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from proofmark import __version__
from proofmark.common.files import write_whole, write_whole_bytes
from proofmark.common.strict_model import StrictModel
from proofmark.common.translation import language
from proofmark.report.render import render, render_summary
from proofmark.report.run_data import RunData
from proofmark.report.sections.plots_section import write_plot_files
from proofmark.report.short.sheet import ALLOWANCES, Allowance, Sheet
from proofmark.report.short.sheet_facts import sheet
from proofmark.report.view import view
from proofmark.runs.run_files import RunFiles

LIBRARIES = ("fonttools", "fpdf2", "jinja2", "matplotlib", "numpy", "polars")
"""The libraries whose version changes the bytes of a file of the report."""


class Made(StrictModel):
    """``report.json``: how the files of a report were written.

    Attributes:
        written: the time of the report, UTC.
        language: of the texts for people.
        versions: of the kit and of `LIBRARIES`.
    """

    written: datetime
    language: str
    versions: dict[str, str]


def versions() -> dict[str, str]:
    """Return the versions of the kit and of the libraries that write a report."""
    return {"proofmark": __version__, **{name: version(name) for name in LIBRARIES}}


def write_page(run_data: RunData, target: RunFiles | None = None) -> Path:
    """Write ``report.html``, ``report.json``, ``claims.json`` and ``figures/`` of a run.

    With SOURCE_DATE_EPOCH set, the same run gives the same bytes.

    Args:
        run_data: the run.
        target: the files to write; None: those of the run.

    Returns:
        The path of the page.
    """
    files = target or run_data.run.products
    content = view(run_data)
    write_plot_files(files.plots, content.plot_files)
    claims = [answer.as_json() for answer in run_data.claims]
    write_whole(files.claims, json.dumps(claims, indent=1) + "\n")
    write_whole(files.report, render(content))
    made = Made(written=run_data.written, language=language(), versions=versions())
    write_whole(files.made, made.model_dump_json(indent=1) + "\n")
    return files.report


MOST_PAGES = 2


def write_summary(run_data: RunData, target: RunFiles | None = None) -> tuple[Path, Path]:
    """Write ``summary.html`` and ``summary.pdf`` into the folder of a run; return their paths.

    With SOURCE_DATE_EPOCH set, the same run gives the same bytes.

    Args:
        run_data: the run.
        target: the files to write; None: those of the run.

    Raises:
        BadInput: a font is missing.
    """
    # fpdf2 takes half a second to import: only a command that writes a summary needs it.
    from proofmark.report.short.summary_pdf import pdf

    files = target or run_data.run.products

    def made(allowance: Allowance) -> tuple[Sheet, bytes, int]:
        content = sheet(run_data, files, allowance)
        return content, *pdf(content, run_data.written)

    content, document = fitted(made)
    write_whole_bytes(files.summary, render_summary(content).encode())
    write_whole_bytes(files.printed_summary, document)
    return files.summary, files.printed_summary


def fitted(made: Callable[[Allowance], tuple[Sheet, bytes, int]]) -> tuple[Sheet, bytes]:
    """Return the summary with the most rows that has at most `MOST_PAGES` pages.

    `made` returns the summary with at most the rows of an allowance, its PDF and its pages.
    """
    for allowance in ALLOWANCES:
        content, document, pages = made(allowance)
        if pages <= MOST_PAGES:
            return content, document
    raise AssertionError(f"the smallest summary has {pages} pages")
