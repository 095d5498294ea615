"""Writes the report of a run: one HTML page that needs no script and no network."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from proofmark import __version__
from proofmark.common.files import write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.common.translation import language
from proofmark.report.render import render
from proofmark.report.run_data import RunData
from proofmark.report.sections.plots_section import write_plot_files
from proofmark.report.view import view
from proofmark.runs.run_files import RunFiles

LIBRARIES = ("jinja2", "matplotlib", "numpy", "polars")
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
    content = view(run_data, files)
    write_plot_files(files.plots, content.plot_files)
    claims = [answer.as_json() for answer in run_data.claims]
    write_whole(files.claims, json.dumps(claims, indent=1) + "\n")
    write_whole(files.report, render(content))
    made = Made(written=run_data.written, language=language(), versions=versions())
    write_whole(files.made, made.model_dump_json(indent=1) + "\n")
    return files.report
