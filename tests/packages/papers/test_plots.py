"""Plots: the records that they want, the lines that they draw, and hostile names."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import results_of
from tests.fixtures.messages import said

from proofmark.packages.papers.charts import COLOURS, MARKERS, STYLE, Drawing, svg_element, svg_file
from proofmark.packages.papers.message_plots import Collectives, PointToPoint
from proofmark.packages.papers.node_plots import FileSize, file_bytes
from proofmark.packages.papers.plot import Plot, PlotContext
from proofmark.packages.papers.plots_page import csv_of, plots
from proofmark.packages.papers.series import (
    Sample,
    byte_ticks,
    lines_by_settings,
    log_ticks,
    megabytes_per_second,
    parameter,
    samples_of,
)
from proofmark.records.columns import Record

NOTHING = PlotContext()


def record(metric: str, value: float, unit: str, **other: Any) -> Record:
    defaults: dict[str, Any] = {
        "run": "r",
        "step": "0001",
        "attempt": 1,
        "system": "s",
        "partition": "p",
        "node": "n1",
        "origin": "measured",
        "case": "c",
        "benchmark": "b",
        "metric": metric,
        "value": value,
        "unit": unit,
        "repeat": 1,
        "mode": "current",
        "placement": "close",
        "parameters": {},
        "environment_hash": "e",
        "valid": True,
        "reason": "",
    }
    return Record(**{**defaults, **other})


def sample(metric: str, value: float, unit: str, **other: Any) -> Sample:
    return Sample(record(metric, value, unit, **other), value, value * 0.9, value * 1.1)


def written(size: int, layout: str, value: float, **other: Any) -> Sample:
    parameters = {"block_bytes": size, "tasks": 4, "layout": layout}
    return sample("write", value, "KiB/s", parameters=parameters, benchmark="fio", **other)


def messages(benchmark: str, sizes: list[int]) -> list[Sample]:
    return [
        sample("t_avg", 1.0 + size, "usec", benchmark=benchmark, parameters={"bytes": size})
        for size in sizes
    ]


def drawn(plot: Plot, samples: list[Sample], context: PlotContext = NOTHING) -> list[Drawing]:
    assert all(plot.wants(sample.record) for sample in samples)
    with matplotlib.rc_context(STYLE):
        return plot.draw(samples, context)


def svg_of(drawing: Drawing) -> str:
    with matplotlib.rc_context(STYLE):
        return svg_file(drawing)


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter() if each.text]


@given(st.floats(1e-12, 1e12), st.floats(1, 1e9))
def test_ticks_of_a_logarithmic_axis_enclose_the_data(low: float, spread: float) -> None:
    ticks = log_ticks(low, low * spread)
    assert ticks[0] <= low * (1 + 1e-9)
    assert ticks[-1] >= low * spread * (1 - 1e-9)
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= 14


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_ticks_of_bytes_are_few_and_inside(one: int, other: int) -> None:
    low, high = sorted((one, other))
    ticks = byte_ticks(low, high)
    assert len(ticks) <= 8
    assert all(low <= tick <= max(high, 1) for tick in ticks)
    assert (0 in ticks) == (low == 0)


def test_invalid_results_are_not_drawn() -> None:
    good = [record("write", value, "KiB/s", repeat=n) for n, value in enumerate((1.0, 2.0, 3.0))]
    bad = replace(good[0], metric="read", valid=False, reason=said("exit code 9"))
    samples = samples_of(results_of([*good, bad]))
    assert [(each.value, each.low, each.high) for each in samples] == [(2.0, 1.0, 3.0)]


def test_each_layout_has_a_line_with_its_name() -> None:
    samples = [
        written(size, layout, value)
        for layout, value in (("shared", 1000.0), ("per process", 2000.0))
        for size in (2**20, 2**21)
    ]
    lines = lines_by_settings(samples, file_bytes, {"block_bytes"}, megabytes_per_second)
    assert [line.label for line in lines] == ["shared", "per process"]
    assert [point.x for point in lines[0].points] == [2**22, 2**23]
    assert lines[0].points[0].y == pytest.approx(1.024)


def test_like_nodes_are_one_line_with_their_range() -> None:
    samples = [written(2**20, "shared", 100.0 * n, node=f"n{n}") for n in (1, 2, 3)]
    (line,) = lines_by_settings(samples, file_bytes, {"block_bytes"}, lambda _: 1.0)
    (point,) = line.points
    assert [point.y, point.low, point.high] == pytest.approx([200.0, 90.0, 330.0])
    assert line.label == ""


def test_placement_and_build_separate_lines() -> None:
    samples = [
        written(2**20, "shared", 1.0, placement="BD", environment_hash="aaaaaaaaaaaa"),
        written(2**20, "shared", 1.0, placement="BA", environment_hash="bbbbbbbbbbbb"),
    ]
    lines = lines_by_settings(samples, file_bytes, {"block_bytes"}, lambda _: 1.0)
    assert [line.label for line in lines] == ["BD, aaaaaaaa", "BA, bbbbbbbb"]


def test_file_size_draws_writing_and_reading_in_one_unit() -> None:
    write = written(2**20, "shared", 1000.0)
    read = Sample(replace(write.record, metric="read"), 4000.0, 4000.0, 4000.0)
    both = drawn(FileSize(), [write, read])
    assert [each.name for each in both] == ["file-size-write", "file-size-read"]
    assert "Bandwidth in MB/s – 1.02." in both[0].text
    labels = texts(svg_of(both[0]))
    assert "bandwidth in MB/s" in labels
    assert "size of all files together" in labels


def test_point_to_point_and_collective_plots_want_different_records() -> None:
    pairs = [*messages("PingPong", [0, 1, 1024]), *messages("Multi Latency", [1])]
    operations = [*messages("Allreduce", [0, 4]), *messages("Non-blocking All-to-All Latency", [4])]
    bandwidth = sample(
        "bandwidth", 5.0, "Mbytes/sec", benchmark="PingPong", parameters={"bytes": 8}
    )
    empty = replace(bandwidth.record, parameters={"bytes": 0})
    assert all(PointToPoint().wants(each.record) for each in pairs)
    assert not any(Collectives().wants(each.record) for each in pairs)
    assert all(Collectives().wants(each.record) for each in operations)
    assert not any(PointToPoint().wants(each.record) for each in operations)
    assert not PointToPoint().wants(empty), "a message without content has no bandwidth"
    names = [each.name for each in drawn(PointToPoint(), [*pairs, bandwidth])]
    assert names == ["point-to-point-time", "point-to-point-bandwidth"]
    (drawing,) = drawn(Collectives(), operations)
    labels = texts(svg_of(drawing))
    assert {"Allreduce", "Non-blocking All-to-All Latency", "0"} <= set(labels)


def test_lines_beyond_the_number_of_colours_are_counted() -> None:
    names = [f"Reduce{index}" for index in range(len(COLOURS) + 3)]
    samples = [each for name in names for each in messages(name, [1, 2])]
    (drawing,) = drawn(Collectives(), samples)
    assert "3 more lines in the data only." in drawing.text
    assert len(list(csv.reader(StringIO(csv_of(drawing))))) == 1 + len(samples)


def test_lines_differ_in_more_than_colour() -> None:
    assert len(set(COLOURS)) == len(COLOURS) == len(set(MARKERS))


@pytest.mark.parametrize("name", ["Reduce_local", "Stencil2D", ""])
def test_a_local_benchmark_is_in_no_message_plot(name: str) -> None:
    (local,) = messages(name, [8])
    assert not any(plot.wants(local.record) for plot in (PointToPoint(), Collectives()))


@pytest.mark.parametrize("plot", plots(), ids=lambda plot: plot.title)
def test_no_plot_wants_a_record_with_another_unit_or_without_numbers(plot: Plot) -> None:
    for metric in ("write", "t_avg", "bandwidth", "hpl_rmax", "dgemm_star"):
        assert not plot.wants(record(metric, 1.0, "parsecs", parameters={"bytes": 1}))
        assert not plot.wants(record(metric, 1.0, "MB/s", parameters={"bytes": "many"}))


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0], [5.0], [1e-9, 1e15]])
def test_zero_equal_and_extreme_values_are_drawn(values: list[float]) -> None:
    samples = [written(2**20 << index, "shared", value) for index, value in enumerate(values)]
    drawings = drawn(FileSize(), samples)
    assert len(drawings) == (1 if any(values) else 0)
    for drawing in drawings:
        svg_of(drawing)


def test_values_of_0_are_counted_but_not_drawn() -> None:
    (drawing,) = drawn(FileSize(), [written(2**20, "a", 1.0), written(2**21, "a", 0.0)])
    assert drawing.text.endswith("1 value of 0 not drawn.")


HOSTILE = "</desc><script>alert('x')</script>$\\frac{1}{0}$ _a ]]> \x1b[31m\u202e" + "w" * 200


def test_hostile_names_are_escaped() -> None:
    samples = [*messages(f"Bcast{HOSTILE}", [1, 2]), *messages("Reduce", [1, 2])]
    (drawing,) = drawn(Collectives(), samples)
    svg = svg_of(drawing)
    page = svg_element(drawing, svg)
    for text in (svg, page):
        root = ElementTree.fromstring(text)
        assert not [each for each in root.iter() if "script" in str(each.tag)]
        assert "\x1b" not in text
    assert "$\\frac{1}{0}$" in svg, "the text is not a formula"


def test_inline_plots_have_unique_ids_and_a_description() -> None:
    samples = [written(2**20, "shared", 1.0)]
    (one,) = drawn(FileSize(), samples)
    other = replace(one, name="other")
    roots = [ElementTree.fromstring(svg_element(each, svg_of(each))) for each in (one, other)]
    ids = [[each.get("id") for each in root.iter() if each.get("id")] for root in roots]
    assert not set(ids[0]) & set(ids[1])
    for root, name in zip(roots, ("file-size-write", "other"), strict=True):
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == f"{name}-title {name}-text"
        assert [child.tag for child in root][:2] == ["title", "desc"]
        references = [
            each.get("href", "").removeprefix("#") for each in root.iter() if each.get("href")
        ]
        known = {each.get("id") for each in root.iter()}
        assert references
        assert set(references) <= known
        assert not [each for each in root.iter() if each.tag in ("style", "metadata")]
        assert "currentColor" in ElementTree.tostring(root, encoding="unicode")
        assert "#101010" not in ElementTree.tostring(root, encoding="unicode")


def test_a_parameter_without_a_number_is_none() -> None:
    odd = record("write", 1.0, "KiB/s", parameters={"tasks": "four"})
    assert parameter(odd, "tasks") is None
    assert parameter(odd, "ranks") is None
