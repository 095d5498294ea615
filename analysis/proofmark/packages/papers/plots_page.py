"""Draws the plots of a run, each with its files and its data."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO

from proofmark.common.message import localized
from proofmark.common.translation import _, translated
from proofmark.judge.verdict import Verdict
from proofmark.packages.papers.charts import Drawing, plot_style, png_file, svg_element, svg_file
from proofmark.packages.papers.claims_of_runs import declared_node
from proofmark.packages.papers.message_plots import Collectives, PointToPoint
from proofmark.packages.papers.network_plots import (
    BtIo,
    CollectivesByPlacement,
    PairsBetween,
    PairsInside,
    SimultaneousPairs,
)
from proofmark.packages.papers.node_plots import (
    FileSize,
    HplOverNodes,
    IorOverFileSize,
    PlacementOfThreads,
    StreamOverThreads,
)
from proofmark.packages.papers.plot import Plot, PlotContext
from proofmark.packages.papers.series import Sample, samples_of
from proofmark.plan.step import StepInstance
from proofmark.records.columns import VIRTUAL, Record
from proofmark.report.additions import AddedSection, Addition, RunAddition, additions_of
from proofmark.report.page import Block, PageLink, Picture, Section, listed, table
from proofmark.report.run_data import facts_of
from proofmark.report.sections.main_figures import nominal
from proofmark.report.words import count
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.site.partition import PREDICTED

ONE_PANEL = 5.0
"""Width of one panel in inches; a wider plot has several panels, and gets the width of the page."""

Files = dict[str, bytes]
"""Contents by file name."""


PLOTS: tuple[type[Plot], ...] = (
    FileSize,
    HplOverNodes,
    IorOverFileSize,
    StreamOverThreads,
    PlacementOfThreads,
    PairsBetween,
    SimultaneousPairs,
    PairsInside,
    BtIo,
    CollectivesByPlacement,
    Collectives,
    PointToPoint,
)


def shows(plot: Plot, record: Record) -> bool:
    """Return whether `plot` shows `record`: it wants it, and no exclusive plot takes it."""
    taken = not plot.suite and any(each.exclusive and each.wants(record) for each in plots())
    return plot.wants(record) and not taken


@cache
def plots() -> tuple[Plot, ...]:
    """Return all plots in the order of the report."""
    return tuple(sorted((each() for each in PLOTS), key=lambda plot: (plot.position, plot.title)))


class PlotsOnPage(Addition):
    """Draws the figures of a run."""

    def of_run(self, run: Run, verdict: Verdict) -> PlotsOfRun:
        """Return the plots of `run`."""
        return PlotsOfRun(run, verdict)


@dataclass(frozen=True)
class PlotsOfRun(RunAddition):
    """The plots of a run."""

    run: Run
    verdict: Verdict

    def sections(self) -> Iterator[AddedSection]:
        """Yield the section of the plots."""
        run, verdict, files = self.run, self.verdict, Files()
        context = PlotContext(
            machine=declared_node(run),
            missing_steps=_missing_steps(run, verdict),
            derived={step.id: step.derived for step in run.plan.steps()},
        )
        facts = [facts_of(node) for node in nodes_of(run).values() if node.jobs]
        peaks = nominal(verdict, site_of(run), benchmarks_of(run), facts)
        samples = samples_of(verdict.results, _is_plotted, peaks)
        folder = run.files.plots.name
        pictures: list[Picture] = []
        invalid: list[str] = []
        marks = _virtual_origins(run, verdict)
        for plot in plots():
            drawings = list(_drawings(plot, samples, context, marks))
            listed_here = not drawings and plot.suite in ("", run.plan.suite)
            if listed_here and (reason := _why_invalid(plot, verdict)):
                invalid.append(f"{translated(plot.title)}: {reason}")
            for drawing in drawings:
                pictures.append(picture(drawing, files, folder))
        blocks = [Block(paragraphs=_left_out(verdict), pictures=tuple(pictures))]
        blocks += _tables(samples, files, folder, marks)
        if invalid:
            blocks.append(listed(_("Measured, but INVALID"), invalid))
        if samples or invalid:
            section = Section("plots", _("Plots"), tuple(blocks))
            yield AddedSection(section, after="baseline", files=files)


def _why_invalid(plot: Plot, verdict: Verdict) -> str:
    """Return the number of INVALID figures of `plot` and their most frequent reason, or ""."""
    results = verdict.about(plot.wants)
    reasons = Counter(each.reason for each in results if each.verdict == "INVALID")
    if not reasons:
        return ""
    figures = count(reasons.total(), "INVALID figure")
    ((reason, _times),) = reasons.most_common(1)
    return f"{figures}, {localized(reason)}"


def _is_plotted(record: Record) -> bool:
    return any(plot.wants(record) for plot in plots())


def _virtual_origins(run: Run, verdict: Verdict) -> dict[str, str]:
    """Return the texts of the origins that are not measured, with the error of a model."""
    texts = {origin: translated(origin) for origin in VIRTUAL}
    for each in additions_of(run, verdict):
        texts[PREDICTED] = ", ".join(filter(None, (texts[PREDICTED], each.note())))
    return texts


def _missing_steps(run: Run, verdict: Verdict) -> dict[str, tuple[int, int]]:
    """Return for each case the number of planned steps without a valid figure, and of all."""
    sound = verdict.results.aggregates.sound_steps()
    valid = {StepInstance.parse(each).step for each in sound}
    missing: dict[str, tuple[int, int]] = {}
    for step in run.plan.steps():
        if step.repeat == 1:
            without, of_all = missing.get(step.case, (0, 0))
            missing[step.case] = (without + (step.id not in valid), of_all + 1)
    return missing


def _left_out(verdict: Verdict) -> tuple[str, ...]:
    invalid = sum(_is_plotted(result.record) for result in verdict.of("INVALID"))
    text = _("{figures} not shown in the plots below.")
    return (text.format(figures=count(invalid, "INVALID figure")),) if invalid else ()


def _drawings(
    plot: Plot, samples: list[Sample], context: PlotContext, marks: Mapping[str, str]
) -> Iterator[Drawing]:
    """Yield the drawings of `plot`, separately for measured, emulated and predicted records.

    Drawings of an origin in `marks` have its text.
    """
    wanted = [sample for sample in samples if shows(plot, sample.record)]
    for origin in dict.fromkeys(sample.record.origin for sample in wanted):
        with plot_style():
            for drawing in plot.draw([s for s in wanted if s.record.origin == origin], context):
                yield _marked(drawing, marks[origin]) if origin in marks else drawing


def _marked(drawing: Drawing, origin: str) -> Drawing:
    """Return `drawing` with the origin of its figures in its title, and in its picture."""
    drawing.figure.supxlabel(origin, x=0.99, ha="right", fontsize=9, fontweight="bold")
    return replace(drawing, title=f"{drawing.title}, {origin}")


def picture(drawing: Drawing, files: Files, folder: str) -> Picture:
    """Return `drawing` for the page, and add its files to `files`."""
    with plot_style():
        svg = svg_file(drawing)
        files[f"{drawing.name}.png"] = png_file(drawing)
    files[f"{drawing.name}.svg"] = svg.encode()
    files[f"{drawing.name}.csv"] = csv_of(drawing).encode()
    links = tuple(
        PageLink(f"{folder}/{drawing.name}.{ending}", words)
        for ending, words in (("svg", "SVG"), ("png", "PNG"), ("csv", _("data as CSV")))
    )
    wide = drawing.figure.get_figwidth() > ONE_PANEL
    return Picture(
        drawing.title, drawing.text, svg_element(drawing, svg), links, "wide" if wide else ""
    )


def csv_of(drawing: Drawing) -> str:
    """Return the data of a plot as CSV. The units are those of the program outputs."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    columns = ("origin", "case", "benchmark", "metric", "node", "mode", "placement", "unit")
    writer.writerow([*columns, "parameters", "median", "least", "greatest"])
    for sample in drawing.samples:
        values = [getattr(sample.record, name) for name in columns]
        parameters = json.dumps(dict(sample.record.parameters), sort_keys=True)
        writer.writerow([*values, parameters, sample.value, sample.low, sample.high])
    return file.getvalue()


def _tables(
    samples: list[Sample], files: Files, folder: str, marks: Mapping[str, str]
) -> Iterator[Block]:
    """Yield the table of each plot and origin, and add its CSV to `files`."""
    for plot in plots():
        wanted = [sample for sample in samples if plot.wants(sample.record)]
        for origin in dict.fromkeys(sample.record.origin for sample in wanted):
            found = plot.table([s for s in wanted if s.record.origin == origin])
            if found is None:
                continue
            file = StringIO()
            head, *rows = found.csv
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["origin", *head])
            writer.writerows([origin, *row] for row in rows)
            name = f"{found.name}.csv"
            files[name] = files.get(name, b"") + file.getvalue().encode()
            title = f"{found.title}, {marks.get(origin, translated(origin))}"
            shown = table(title, found.columns, found.rows, kind="dense")
            link = PageLink(f"{folder}/{name}", _("data as CSV"))
            yield Block(
                titles=(found.title,), paragraphs=(found.about,), tables=(shown,), links=(link,)
            )
