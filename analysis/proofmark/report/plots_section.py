"""Draws the figures of a run, and keeps each with its data beside the report."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path

import matplotlib

from proofmark.judge.claims.of_runs import machine_of
from proofmark.records.columns import Record
from proofmark.report import blas_kernels, peak
from proofmark.report.drawing.charts import STYLE, Drawing
from proofmark.report.drawing.series import Sample, samples_of
from proofmark.report.drawing.svg import inline, raster, standalone
from proofmark.report.page import Block, Column, Link, Picture, Section, table
from proofmark.report.plot import Context, Plot, plots
from proofmark.report.plots import p5_placements
from proofmark.report.run_data import RunData
from proofmark.report.text import count
from proofmark.software.software import BLAS_KERNEL

ONE_PANEL = 5.0
"""Inches; a wider figure has several panels, and takes the width of the page."""
KEPT = ("svg", "png", "csv")
Files = dict[str, bytes]
"""Contents by file name."""


def section(material: RunData) -> tuple[Section, Files]:
    """Return the figures, and the contents of their files by name."""
    context = Context(
        peak_gflops=peak.peak_of_run(material),
        chosen={(BLAS_KERNEL, key): name for key, name in blas_kernels.kernels(material).items()},
        machine=machine_of(material.run),
        lacking=_lacking(material),
    )
    points = samples_of(
        material.verdict.results, lambda record: any(plot.wants(record) for plot in plots())
    )
    folder = material.run.files.plots.name
    pictures: list[Picture] = []
    files: Files = {}
    missing: list[str] = []
    for plot in plots():
        drawn = list(_drawings(plot, points, context))
        if not drawn and plot.suite in ("", material.run.plan.suite):
            missing.append(plot.title)
        for drawing in drawn:
            pictures.append(_picture(drawing, files, folder))
    blocks = [Block(paragraphs=_left_out(material), pictures=tuple(pictures))]
    blocks += _table_2(points, files, folder)
    if missing:
        blocks.append(Block(titles=("Not measured in this run",), items=tuple(missing)))
    return Section("plots", "Plots", tuple(blocks)), files


def _drawn(record: Record) -> bool:
    return any(plot.wants(record) for plot in plots())


def _drawings(plot: Plot, points: list[Sample], context: Context) -> Iterator[Drawing]:
    """Yield the drawings of `plot`; what was measured and what was not never share one."""
    wanted = [point for point in points if plot.wants(point.record)]
    for origin in dict.fromkeys(point.record.origin for point in wanted):
        with matplotlib.rc_context(STYLE):
            yield from plot.draw([each for each in wanted if each.record.origin == origin], context)


def _picture(drawing: Drawing, files: Files, folder: str) -> Picture:
    with matplotlib.rc_context(STYLE):
        svg = standalone(drawing)
        files[f"{drawing.name}.png"] = raster(drawing)
    files[f"{drawing.name}.svg"] = svg.encode()
    files[f"{drawing.name}.csv"] = data(drawing).encode()
    links = tuple(
        Link(f"{folder}/{drawing.name}.{ending}", words)
        for ending, words in (("svg", "SVG"), ("png", "PNG"), ("csv", "data as CSV"))
    )
    wide = drawing.figure.get_figwidth() > ONE_PANEL
    return Picture(drawing.title, drawing.text, inline(drawing, svg), links, "wide" if wide else "")


def data(drawing: Drawing) -> str:
    """Return what a figure was drawn from as CSV, in the units that were printed."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    named = ("origin", "case", "benchmark", "metric", "node", "mode", "placement", "unit")
    writer.writerow([*named, "parameters", "median", "least", "greatest"])
    for point in drawing.points:
        own = [getattr(point.record, name) for name in named]
        parameters = json.dumps(dict(point.record.parameters), sort_keys=True)
        writer.writerow([*own, parameters, point.value, point.low, point.high])
    return file.getvalue()


def _table_2(points: list[Sample], files: Files, folder: str) -> list[Block]:
    """Return table 2 of P5 for each origin, and keep it as CSV."""
    plot = p5_placements.CollectivesByPlacement()
    wanted = [point for point in points if plot.wants(point.record)]
    blocks = []
    for origin in dict.fromkeys(point.record.origin for point in wanted):
        rows = p5_placements.table_2([each for each in wanted if each.record.origin == origin])
        if not rows:
            continue
        heads = [p5_placements.named(pair) for pair in p5_placements.RATIOS]
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["origin", "collective", "statistic", *heads])
        writer.writerows([origin, name, word, *values] for name, word, values in rows)
        files["p5-table-2.csv"] = files.get("p5-table-2.csv", b"") + file.getvalue().encode()
        title = "P5, table 2: relative difference of times between placements"
        columns: list[Column | str] = [
            "Collective",
            "Statistic",
            *(Column(head, "number") for head in heads),
        ]
        cells = [(name, word, *(f"{each:.4f}" for each in own)) for name, word, own in rows]
        link = Link(f"{folder}/p5-table-2.csv", "data as CSV")
        made = table(f"{title}, {origin}", columns, cells, kind="dense")
        blocks.append(Block(titles=(title,), tables=(made,), links=(link,)))
    return blocks


def _lacking(material: RunData) -> dict[str, tuple[int, int]]:
    """Return of each case how many of its planned steps have no valid figure, and of how many."""
    sound = material.verdict.sound_steps()
    planned = [step for step in material.run.plan.steps() if step.repeat == 1]
    cases = dict.fromkeys(step.case for step in planned)
    steps = {case: [step.id for step in planned if step.case == case] for case in cases}
    return {case: (sum(step not in sound for step in ids), len(ids)) for case, ids in steps.items()}


def _left_out(material: RunData) -> tuple[str, ...]:
    invalid = sum(_drawn(result.record) for result in material.verdict.of("INVALID"))
    if not invalid:
        return ()
    return (f"{count(invalid, 'INVALID figure')} left out of the plots below.",)


def keep(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of the figures; those of an earlier report that are none of them go."""
    folder.mkdir(exist_ok=True)
    for path in [each for ending in KEPT for each in folder.glob(f"*.{ending}")]:
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
