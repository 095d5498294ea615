"""The contents of the report for the template: a summary and sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.common.translation import _
from proofmark.report import (
    bad_nodes,
    baseline,
    claims,
    commands,
    expected,
    imported,
    issues,
    links,
    over_time,
    peak,
    plots_section,
    provenance,
    results,
    slowdown,
    storage_targets,
    twin,
    what_to_do,
)
from proofmark.report.page import Section
from proofmark.report.run_data import RunData
from proofmark.report.summary import Summary, summary


@dataclass(frozen=True)
class View:
    """The contents of the page, and the plot files that it links to.

    Attributes:
        plot_files: contents of the files in the folder of the plots, by name.
    """

    title: str
    summary: Summary
    sections: tuple[Section, ...]
    plot_files: Mapping[str, bytes]


def view(run_data: RunData) -> View:
    """Return the page of a run: verdicts, plots, bad nodes, provenance, then the commands."""
    plots, files = plots_section.section(run_data)
    of_time, curves = over_time.sections(run_data)
    congestion, distribution = slowdown.sections(run_data)
    of_baseline, changes = baseline.sections(run_data)
    of_links, link_files = links.sections(run_data)
    files = {**files, **curves, **distribution, **link_files, **changes}
    of_run = imported.files if run_data.run.plan.imported else commands.section
    sections = (
        *imported.sections(run_data),
        *twin.sections(run_data),
        *what_to_do.sections(run_data),
        issues.section(run_data),
        results.judged_section(run_data),
        *of_baseline,
        *expected.sections(run_data),
        *of_links,
        plots,
        claims.section(run_data.claims),
        peak.section(run_data),
        *bad_nodes.sections(run_data),
        *storage_targets.sections(run_data),
        *of_time,
        *congestion,
        provenance.section(run_data),
        of_run(run_data),
        results.all_section(run_data),
    )
    return View(
        _("Acceptance of {system}").format(system=run_data.run.plan.system),
        summary(run_data),
        sections,
        files,
    )
