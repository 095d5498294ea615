"""Writes the report of a run: one page that opens from a file, without script or network."""

from __future__ import annotations

import json
from pathlib import Path

from proofmark.judge.verdict import Verdict
from proofmark.report.plots_section import keep
from proofmark.report.render import render
from proofmark.report.run_data import gather
from proofmark.report.view import view
from proofmark.runs.run import Run


def write_report(run: Run, verdict: Verdict) -> Path:
    """Write ``report.html``, ``claims.json`` and ``figures/`` into the folder of `run`.

    Return the page's path.
    With SOURCE_DATE_EPOCH set, the same run gives the same bytes.

    Raises:
        BadInput: one of the run's own files is damaged.
    """
    material = gather(run, verdict)
    content = view(material)
    keep(run.files.plots, content.figures)
    told = [answer.as_json() for answer in material.claims]
    run.files.claims.write_text(json.dumps(told, indent=1) + "\n")
    page = run.files.report
    fresh = page.with_suffix(".html.new")
    fresh.write_text(render(content), encoding="utf-8")
    fresh.rename(page)
    return page
