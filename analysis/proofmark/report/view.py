"""The whole report as a plain model: an answer and sections, ready for the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.report import (
    bad_nodes,
    claims,
    commands,
    issues,
    peak,
    plots_section,
    provenance,
    results,
)
from proofmark.report.page import Section
from proofmark.report.run_data import RunData
from proofmark.report.summary import Answer, answer


@dataclass(frozen=True)
class View:
    """What the template shows, and the files that the page links to."""

    title: str
    answer: Answer
    sections: tuple[Section, ...]
    figures: Mapping[str, bytes]


def view(material: RunData) -> View:
    """Arrange a run for its readers: verdicts, figures, bad nodes, then how to repeat it."""
    figures, files = plots_section.section(material)
    sections = (
        issues.section(material),
        results.judged_section(material),
        figures,
        claims.section(material.claims),
        peak.section(material),
        *bad_nodes.sections(material),
        provenance.section(material),
        commands.section(material),
        results.all_section(material),
    )
    return View(f"Acceptance of {material.run.plan.system}", answer(material), sections, files)
