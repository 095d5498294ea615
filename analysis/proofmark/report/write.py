"""Writes the report of a run: one HTML page that needs no script and no network."""

from __future__ import annotations

import json
from pathlib import Path

from proofmark.common.files import write_whole
from proofmark.judge.verdict import Verdict
from proofmark.report.plots_section import write_plot_files
from proofmark.report.render import render
from proofmark.report.run_data import RunData, gather
from proofmark.report.view import view
from proofmark.runs.run import Run


def write_report(run: Run, verdict: Verdict) -> Path:
    """Write ``report.html``, ``claims.json`` and ``figures/`` into the folder of `run`.

    With SOURCE_DATE_EPOCH set, the same run gives the same bytes.

    Returns:
        The path of the page.

    Raises:
        BadInput: a file of the run is damaged.
    """
    return write_page(gather(run, verdict))


def write_page(run_data: RunData) -> Path:
    """Write the files of `write_report` for a run that was read; return the path of the page."""
    run = run_data.run
    content = view(run_data)
    write_plot_files(run.files.plots, content.plot_files)
    claims = [answer.as_json() for answer in run_data.claims]
    write_whole(run.files.claims, json.dumps(claims, indent=1) + "\n")
    write_whole(run.files.report, render(content))
    return run.files.report
