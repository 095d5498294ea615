"""The contents of the report for the template: a summary and sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from proofmark.report.additions import BEGINNING
from proofmark.report.page import Section
from proofmark.report.run_data import RunData
from proofmark.report.sections import (
    accepted_runs,
    change_in_run,
    congestion,
    faulty_nodes,
    figure_tables,
    issues,
    launch_commands,
    main_figures,
    node_provenance,
    paper_claims,
    peak,
    plots_section,
    signed_sheets,
)
from proofmark.report.summary import Summary, summary, title
from proofmark.runs.run_files import RunFiles


@dataclass(frozen=True)
class View:
    """The contents of the page, and the plot files that it links to.

    Attributes:
        digest: the foot of each sheet of paper: the SHA-256 of the newest archive of the evidence;
            may be empty.
        plot_files: contents of the files in the folder of the plots, by name.
    """

    title: str
    digest: str
    summary: Summary
    sections: tuple[Section, ...]
    plot_files: Mapping[str, bytes]


def view(run_data: RunData, products: RunFiles | None = None) -> View:
    """Return the page of a run: what is signed, then verdicts, plots, bad nodes and provenance.

    Args:
        products: the files that were made from it, of which the page has digests; None: its own.
    """
    plots, files = plots_section.section(run_data)
    of_time, curves = change_in_run.sections(run_data)
    under_load, distribution = congestion.sections(run_data)
    of_baseline, changes = accepted_runs.sections(run_data)
    files = {**files, **curves, **distribution, **changes}
    # By the id of a section, which the page of a run need not have.
    places: dict[str, list[Section]] = {
        BEGINNING: [],
        "contract": [*figure_tables.contract_sections(run_data)],
        "key-figures": [main_figures.section(run_data)],
        "next": [*signed_sheets.next_step_section(run_data)],
        "exceptions": [*signed_sheets.exception_section(run_data)],
        "signatures": [*signed_sheets.signatures(run_data, products or run_data.run.products)],
        "attention": [issues.section(run_data)],
        "judged": [figure_tables.judged_section(run_data)],
        "baseline": [*of_baseline],
        "expected": [*figure_tables.predicted_sections(run_data)],
        "plots": [plots],
        "claims": [*paper_claims.sections(run_data.claims)],
        "information": [peak.section(run_data)],
        "bad-nodes": [*faulty_nodes.sections(run_data)],
        "observations": [*issues.observations(run_data)],
        "storage-targets": [*faulty_nodes.target_sections(run_data)],
        "file-drivers": [*node_provenance.driver_sections(run_data)],
        "over-time": [*of_time],
        "slowdown": [*under_load],
        "provenance": [node_provenance.section(run_data)],
        "commands": [*launch_commands.sections(run_data)],
        "all": [figure_tables.all_section(run_data)],
    }
    for addition in run_data.additions:
        for added in addition.sections():
            places[added.after].append(added.section)
            files |= added.files
    return View(
        title(run_data),
        f"SHA-256 {run_data.run.seal.digest}" if run_data.run.seal else "",
        summary(run_data),
        tuple(chain.from_iterable(places.values())),
        files,
    )
