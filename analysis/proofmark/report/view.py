"""The contents of the report for the template: a summary and sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from proofmark.report.page import Section
from proofmark.report.run_data import RunData
from proofmark.report.sections import (
    accepted_runs,
    change_in_run,
    congestion,
    exceptions,
    fabric_elements,
    faulty_nodes,
    figure_tables,
    file_drivers,
    issues,
    launch_commands,
    limit_table,
    main_figures,
    next_steps,
    node_provenance,
    outputs_of_others,
    paper_claims,
    peak,
    plots_section,
    predicted_figures,
    signatures,
    storage_targets,
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
        run_data: the run.
        products: the files that were made from it, of which the page has digests; None: its own.
    """
    plots, files = plots_section.section(run_data)
    of_time, curves = change_in_run.sections(run_data)
    under_load, distribution = congestion.sections(run_data)
    of_baseline, changes = accepted_runs.sections(run_data)
    of_links, link_files = fabric_elements.sections(run_data)
    files = {**files, **curves, **distribution, **link_files, **changes}
    of_run = outputs_of_others.files if run_data.run.plan.imported else launch_commands.section
    sections = (
        *outputs_of_others.sections(run_data),
        *chain.from_iterable(each.sections() for each in run_data.additions),
        *limit_table.sections(run_data),
        main_figures.section(run_data),
        *next_steps.sections(run_data),
        *exceptions.sections(run_data),
        *signatures.sections(run_data, products or run_data.run.products),
        issues.section(run_data),
        figure_tables.judged_section(run_data),
        *of_baseline,
        *predicted_figures.sections(run_data),
        *of_links,
        plots,
        *paper_claims.sections(run_data.claims),
        peak.section(run_data),
        *faulty_nodes.sections(run_data),
        *issues.observations(run_data),
        *storage_targets.sections(run_data),
        *file_drivers.sections(run_data),
        *of_time,
        *under_load,
        node_provenance.section(run_data),
        of_run(run_data),
        figure_tables.all_section(run_data),
    )
    return View(
        title(run_data),
        f"SHA-256 {run_data.run.seal.digest}" if run_data.run.seal else "",
        summary(run_data),
        tuple(_with_added(run_data, sections)),
        files,
    )


def _with_added(run_data: RunData, sections: Iterable[Section]) -> Iterator[Section]:
    """Yield `sections`, each with those that packages put after it."""
    for section in sections:
        yield section
        for addition in run_data.additions:
            yield from addition.after(section.id)
