"""Exports with time series, read back by the parsers of others: Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry
from tests.fixtures.fleet import fleet_run

from proofmark.cli.main import main
from proofmark.common.text import one_line
from proofmark.packages.exports import time_series
from proofmark.runs.run import Run

texts = st.text(max_size=30)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of 20 nodes. n07 is slow, and n04 measured twice."""
    rates: dict[str, Any] = {f"n{number:02d}": 100.0 + number / 10 for number in range(20)}
    return fleet_run(tmp_path_factory.mktemp("fleet"), rates | {"n07": 50.0, "n04": [100.0, 102.0]})


def exported(run: Run, name: str, folder: Path) -> str:
    assert main(["export", str(run.folder), "--format", name, "-o", str(folder)]) == 0
    (path,) = folder.iterdir()
    return path.read_text(encoding="utf-8")


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples of each metric, by the sorted values of its labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            assert sample.timestamp is None
            assert {"site", "partition"} <= sample.labels.keys()
            further = {key: sample.labels[key] for key in sample.labels.keys() - {"site"}}
            key = tuple(further[name] for name in sorted(further.keys() - {"partition"}))
            assert key not in found.setdefault(sample.name, {})
            found[sample.name][key] = sample.value
    return found


def test_prometheus_reads_verdicts_nodes_and_figures(run: Run, tmp_path: Path) -> None:
    found = samples(exported(run, "prometheus", tmp_path))
    assert found["proofmark_run_exit_code"] == {(): 1}
    assert found["proofmark_run_results"][("FAIL",)] == 1
    assert len(found["proofmark_node_results"]) == 20 * 4
    assert found["proofmark_node_results"]["n07", "FAIL"] == 1
    bad = [node for (node,), value in found["proofmark_node_bad"].items() if value]
    assert bad == ["n07"]
    figures = found["proofmark_figure_bytes_per_second"]
    assert sorted(figures.values()) == [50e6, 101e6, 101.9e6]
    # The end of the last step of `finished`, 2026-11-21T10:18:00Z and one second.
    assert found["proofmark_run_end_timestamp_seconds"] == {(): 1795256281.0}


def test_the_number_of_figures_does_not_grow_with_the_nodes(run: Run, tmp_path: Path) -> None:
    found = samples(exported(run, "prometheus", tmp_path))
    series = sum(map(len, found.values()))
    of_nodes = len(found["proofmark_node_results"]) + len(found["proofmark_node_bad"])
    assert of_nodes == 5 * 20
    assert series - of_nodes < 30


def test_more_series_than_a_textfile_should_have_are_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time_series, "MOST_SERIES", 50)
    words = ["export", str(run.folder), "--format", "prometheus", "-o", str(tmp_path)]
    assert main(words) == 3
    assert "time series" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@given(texts)
def test_any_label_returns_from_prometheus(text: str) -> None:
    class One(Collector):
        def collect(self) -> list[GaugeMetricFamily]:
            family = GaugeMetricFamily("proofmark_x", "x", labels=["label"])
            family.add_metric([one_line(text)], 1.5)
            return [family]

    registry = CollectorRegistry()
    registry.register(One())
    (family,) = text_string_to_metric_families(generate_latest(registry).decode())
    (sample,) = family.samples
    assert sample.labels["label"] == one_line(text)


@given(st.floats(allow_nan=False) | st.integers(), texts)
def test_two_parameters_look_alike_only_if_they_are(number: float, text: str) -> None:
    word = time_series._parameter(text)
    assert " " not in word or word.startswith('"')
    assert time_series._parameter(number) == f"{number}"
