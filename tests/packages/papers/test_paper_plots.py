"""Plots of the papers' figures: drawings of their sweeps, gaps in lines, files, and claims."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from tests.fixtures import sweeps as data
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import results_of
from tests.fixtures.report_run import made_run
from tests.fixtures.sweeps import Machine, Sheet

from proofmark.cli.main import main
from proofmark.common.expressions import grid
from proofmark.packages.papers import charts, network_plots
from proofmark.packages.papers.charts import STYLE, Drawing, png_file, svg_file
from proofmark.packages.papers.claim import PAPERS
from proofmark.packages.papers.claims_of_runs import RunClaims
from proofmark.packages.papers.network_plots import PUBLISHED
from proofmark.packages.papers.p5 import COLLECTIVES, RATIOS
from proofmark.packages.papers.panels import Axis, Chart, Panel, draw_panels
from proofmark.packages.papers.plot import PlotContext
from proofmark.packages.papers.plots_page import plots
from proofmark.packages.papers.series import PlotPoint, Sample, Series
from proofmark.records.columns import Record
from proofmark.report.products import write_page
from proofmark.report.run_data import gather
from proofmark.runs.run import Run

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def records(*sheets: Sheet) -> list[Record]:
    return [
        Record(**{**row, "parameters": json.loads(row["parameters"])})
        for sheet in sheets
        for row in sheet.rows
    ]


def samples(*sheets: Sheet) -> list[Sample]:
    return [
        Sample(record, record.value or 0, record.value or 0, record.value or 0)
        for record in records(*sheets)
    ]


def drawn(system: str, given: Sequence[Sample]) -> dict[str, Drawing]:
    """Return the drawings of the papers' figures, by name."""
    context = PlotContext(PAPERS[system], {"stream": (4, 408)})
    drawings: list[Drawing] = []
    for plot in (plot for plot in plots() if plot.suite):
        wanted = [sample for sample in given if plot.wants(sample.record)]
        with matplotlib.rc_context(STYLE):
            drawings += plot.draw(wanted, context) if wanted else []
    names = [drawing.name for drawing in drawings]
    assert len(set(names)) == len(names)
    return dict(zip(names, drawings, strict=True))


def threads(machine: Machine) -> Sheet:
    """Return the sweep of P2: close and spread threads, and close threads up to twice the cores."""
    more = data.two_threads_a_core(machine).rows
    beyond = [row for row in more if json.loads(row["parameters"])["threads"] > machine.cores]
    return Sheet(machine, data.placements(machine).rows + beyond)


def on(system: str, sheet: Sheet) -> Sheet:
    return Sheet(sheet.machine, [row for row in sheet.rows if row["system"] == system])


KNL, SKL, OLD, P595 = Machine(68), Machine(40), Machine(16), Machine(64)
FIGURES = {
    ("knl", "P1"): (
        [data.hpl_knl(KNL), data.stream_knl(KNL), data.ior_knl(KNL)],
        ["p1-hpl-knl", "p1-stream-knl", "p1-ior-knl"],
    ),
    ("skl", "P1"): (
        [data.hpl_skl(SKL), data.stream_skl(SKL), data.ior_skl(SKL)],
        ["p1-hpl", "p1-stream", "p1-ior"],
    ),
    ("knl", "P2"): (
        [threads(KNL)],
        ["p2-copy", "p2-scale", "p2-add", "p2-triad", "p2-threads"],
    ),
    ("tachyon1", "P3"): (
        [on("tachyon1", data.pairs_of_processes(OLD)), data.contention(OLD, "tachyon1")],
        ["p3-inside", "p3-between", "p3-contention"],
    ),
    ("p595", "P4"): ([data.bt_io(P595)], ["p4-class-a", "p4-class-b", "p4-class-c"]),
    ("p595", "P5"): ([data.collectives(P595)], ["p5-alltoall", "p5-differences"]),
}


@cache
def figures_of(system: str, paper: str) -> dict[str, Drawing]:
    """Return the drawings of a sweep in `FIGURES`, for tests that change none."""
    return drawn(system, samples(*FIGURES[system, paper][0]))


@pytest.mark.parametrize("prime", [7, 11, 13])
def test_a_grid_of_one_row_is_marked(prime: int) -> None:
    (sheet, *_), _ = FIGURES["skl", "P1"]
    plain = samples(sheet)

    def on_grid(sample: Sample) -> Sample:
        nodes = int(sample.record.parameters["nodes"])
        p, q = grid(nodes)
        record = replace(sample.record, parameters={**sample.record.parameters, "p": p, "q": q})
        return replace(sample, record=record)

    text = drawn("skl", [on_grid(each) for each in plain])["p1-hpl"].text
    assert f"1 × {prime}" in text and "1 × 2" not in text and "2 × 3" not in text
    assert "Marked" not in figures_of("skl", "P1")["p1-hpl"].text


def test_figure_1_of_p5_names_what_was_measured_once() -> None:
    sheets, _ = FIGURES["p595", "P5"]
    given = samples(*sheets)
    sizes = {int(s.record.parameters["bytes"]) for s in given if s.record.parameters["bytes"]}
    steps = {s.record.step for s in given}
    for once_from, named in ((max(sizes), True), (max(sizes) + 1, False)):
        derived = {step: {"once_from": once_from} for step in steps}
        context = PlotContext(PAPERS["p595"], derived=derived)
        (plot,) = [each for each in plots() if each.suite == "p5"]
        with matplotlib.rc_context(STYLE):
            figure, _ = plot.draw([each for each in given if plot.wants(each.record)], context)
        assert ("Measured by a single operation: " in figure.text) is named


@pytest.mark.parametrize("key", FIGURES, ids=" ".join)
def test_the_sweep_of_a_paper_gives_its_figures(key: tuple[str, str]) -> None:
    drawings = figures_of(*key)
    assert list(drawings) == FIGURES[key][1]
    for drawing in drawings.values():
        assert drawing.title.startswith(f"{key[1]}, figure ")
        assert drawing.text.endswith(".")
        panels = [axes for axes in drawing.figure.axes if axes.lines]
        assert panels
        for axes in panels:
            assert axes.get_xlabel()
            assert any(
                unit in axes.get_title(loc="left") for unit in ("/s", "%", " s", "µs", "diff")
            )


@pytest.mark.parametrize("key", FIGURES, ids=" ".join)
def test_lines_of_a_plot_differ_without_colour(key: tuple[str, str]) -> None:
    assert figures_of(*key)
    for drawing in figures_of(*key).values():
        for axes in drawing.figure.axes:
            styles = [
                (line.get_marker(), line.get_linestyle(), line.get_markerfacecolor() == "#ffffff")
                for line in axes.get_lines()
                if line.get_marker() != "None"
            ]
            assert len(set(styles)) == len(styles)


def test_a_missing_value_is_a_gap_in_the_line_and_in_the_text() -> None:
    complete = threads(KNL)
    kept = [
        row
        for row in complete.rows
        if not (
            row["metric"] == "add"
            and row["placement"] == "spread"
            and {**json.loads(row["parameters"]), "memory": "ddr"} == json.loads(row["parameters"])
            and json.loads(row["parameters"])["threads"] in (20, 21)
        )
    ]
    drawings = drawn("knl", samples(Sheet(KNL, kept)))
    assert "Missing: DDR, spread at 20, 21." in drawings["p2-add"].text
    assert "Missing" not in drawings["p2-copy"].text
    assert "4 of 408 planned steps of stream have no valid figure" in drawings["p2-copy"].text
    lines = drawings["p2-add"].figure.axes[0].get_lines()
    spread = next(line for line in lines if line.get_label() == "spread")
    coordinates: Any = spread.get_xydata()
    assert [x for x, y in coordinates if math.isnan(y)] == [20.0, 21.0]


@pytest.mark.parametrize(
    ("own", "gaps"),
    [
        (False, ["left, few", "right, few", "right, many"]),
        (True, ["right, many"]),
    ],
)
def test_a_line_may_have_x_values_of_its_own(own: bool, gaps: list[str]) -> None:
    """In P5 the number of processes bounds the sizes, so that lines with few have others."""

    def line(label: str, *values: float) -> Series:
        return Series(label, tuple(PlotPoint(x, x, x, x) for x in values))

    few, others = line("few", 1, 4), line("others", 1, 2, 4)
    content = [
        Panel("left", [few, line("many", 1, 2, 4), others]),
        Panel("right", [few, line("many", 1, 4), others]),
    ]
    chart = Chart("n", "title", Axis("x"), Axis("y"), "", own_x=own)
    (drawing,) = draw_panels(chart, content, [], PlotContext(None, {}))
    assert drawing.text.endswith(f"Missing: {'; '.join(f'{name} at 2' for name in gaps)}.")
    drawn_gaps = []
    for axes, panel in zip(drawing.figure.axes, content, strict=True):
        for each in axes.get_lines():
            coordinates: Any = each.get_xydata()
            if any(math.isnan(y) for _, y in coordinates):
                drawn_gaps.append(f"{panel.title}, {each.get_label()}")
    assert drawn_gaps == gaps


def test_a_line_of_one_point_is_not_drawn() -> None:
    rows = [row for row in data.stream_skl(SKL).rows if '"threads": 40' in row["parameters"]]
    assert drawn("skl", samples(Sheet(SKL, rows))) == {}


def test_table_2_has_the_relative_differences() -> None:
    layout = data.Layout({"": 0.1}, within=0.5, beyond=0.5)
    rows = network_plots.table_2(samples(data.collectives(Machine(64, noise=0), layout)))
    assert [(name, word) for name, word, _ in rows[:4]] == [
        ("Bcast", "mean"),
        ("Bcast", "min"),
        ("Bcast", "max"),
        ("Allreduce", "mean"),
    ]
    for _, _, values in rows:
        # The model makes balanced nodes slower by half, also at 1024 processes.
        assert values == pytest.approx([0.1, 0.1, 0.5, 0.5])


def test_the_same_plot_gives_the_same_bytes() -> None:
    sheets, _ = FIGURES["tachyon1", "P3"]
    one, two = (drawn("tachyon1", samples(*sheets))["p3-inside"] for _ in range(2))
    with matplotlib.rc_context(STYLE):
        assert svg_file(one) == svg_file(two)
        assert png_file(one) == png_file(two)


def paper_run(folder: Path, *sheets: Sheet) -> tuple[Run, str]:
    """Return a run with the results of `sheets`, and its page."""
    run = made_run(folder)
    results = results_of(records(*sheets))
    claims = {"papers": RunClaims(run, results.aggregates)}
    verdict = replace(written_verdict(run), results=results, added=claims)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "DOTS", 20)  # a tenth of the time of a bitmap
        return run, write_page(gather(run, verdict)).read_text(encoding="utf-8")


@pytest.mark.parametrize("origin", ["measured", "emulated", "predicted"])
def test_a_picture_of_virtual_nodes_states_it(tmp_path: Path, origin: str) -> None:
    sheet = data.stream_skl(SKL)
    rows = [{**row, "origin": origin} for row in sheet.rows]
    run, page = paper_run(tmp_path, replace(sheet, rows=rows))
    words = ("emulated", "predicted")
    (name,) = [path.stem for path in (run.folder / "figures").glob("p1-*.svg")]
    title = figures_of("skl", "P1")[name].title
    drawing = (run.folder / f"figures/{name}.svg").read_text()
    for word in words:
        assert (f"{title}, {word}" in page) == (word == origin)
        assert (f">{word}<" in drawing) == (word == origin)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    sheets = [
        data.hpl_knl(KNL),
        threads(KNL),
        data.collectives(P595),
    ]
    return paper_run(tmp_path_factory.mktemp("papers"), *sheets)


def test_each_plot_has_an_svg_a_png_and_a_csv_file(written: tuple[Run, str]) -> None:
    run, page = written
    for name in ("p1-hpl-knl", "p2-copy", "p5-alltoall"):
        drawing = (run.folder / "figures" / f"{name}.svg").read_bytes()
        assert ElementTree.fromstring(drawing).tag.endswith("svg")
        png = (run.folder / "figures" / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG")
        rows = list(csv.DictReader(StringIO((run.folder / "figures" / f"{name}.csv").read_text())))
        assert rows
        assert {row["origin"] for row in rows} == {"measured"}
        for kind in ("svg", "png", "csv"):
            assert f'href="figures/{name}.{kind}"' in page
    table = (run.folder / "figures" / "p5-table-2.csv").read_text().splitlines()
    assert table[0].startswith("origin,collective,statistic,(BD−BA)/BA")
    assert len(table) == 1 + 15
    assert table[0].endswith('"Power 595, P5: (BD−UD)/UD"')
    assert table[1].endswith(",0.0785,0.2381,1.1605,0.6587"), "the means of Bcast in the paper"
    assert "<small>0.0785</small>" in page


def test_the_published_table_2_is_complete() -> None:
    means = {name: dict(zip(RATIOS, PUBLISHED[name, "mean"], strict=True)) for name in COLLECTIVES}
    assert means == data.table_2()
    for name in COLLECTIVES:
        columns = zip(*(PUBLISHED[name, word] for word in ("min", "mean", "max")), strict=True)
        assert all(least < mean < greatest for least, mean, greatest in columns)


def test_the_report_has_the_claims(written: tuple[Run, str]) -> None:
    run, page = written
    claims = json.loads((run.files.plots / "claims.json").read_text())
    answers = {claim["claim"]: claim for claim in claims}
    assert answers["C2.2"]["answer"] == "holds"
    assert answers["C1.4"]["answer"] == "cannot be told"
    assert answers["C1.3"]["sentence"] == "the figures are of knl, p595; the claim is of skl"
    begin = page.index('<section id="claims"')
    section = page[begin : page.index('<section id="', begin + 1)]
    assert "At 35 threads (tiles + 1) Copy, Add and Triad drop with spread" in section
    assert 'class="word does-not-hold"' in section or 'class="word holds"' in section
    assert "the claim is of skl" not in section, "claims on other systems are only in claims.json"
    assert page.index('id="judged"') < page.index('id="plots"') < page.index('id="claims"')


def test_raw_outputs_are_linked(written: tuple[Run, str]) -> None:
    run, page = written
    step = next(run.plan.steps())
    assert f'href="workdir/steps/{step.id}/execution-1/{step.output}"' in page


def test_the_claims_of_another_system_cannot_be_told(
    written: tuple[Run, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(written[0].folder)
    assert main(["verdict", "--claims", folder, "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)
    assert {claim["answer"] for claim in claims} == {"cannot be told"}
    assert main(["verdict", folder, "--json"]) in (0, 1, 2, 4)
    assert "claims" not in json.loads(capsys.readouterr().out), "none is about this system"
    assert main(["verdict", "--claims", folder]) == 0
    assert "the figures are of local; the claim is of knl" in capsys.readouterr().out


def test_hostile_names_of_a_site_are_escaped(tmp_path: Path) -> None:
    """A site chooses the names of network distances, systems and nodes."""
    sheet = on("tachyon1", data.pairs_of_processes(OLD))
    for row in sheet.rows:
        parameters = json.loads(row["parameters"])
        if "distance" in parameters:
            parameters["distance"] += HOSTILE
        row |= {"parameters": json.dumps(parameters), "system": HOSTILE, "node": HOSTILE}
    _, page = paper_run(tmp_path, sheet)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
