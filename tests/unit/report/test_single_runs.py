"""Results of single runs are labelled in verdict.json, in the report and in the exports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.cli.main import main
from proofmark.runs.run import Run

NODES = [f"n{number:02d}" for number in range(12)]
ONCE = {"n03", "n07"}


def measured(folder: Path, *, repeated: bool) -> Run:
    """Return a run whose nodes in `ONCE` have one measurement, and the others two if `repeated`.

    The node n07 is an outlier; the other one of `ONCE` passes.
    """
    rates: dict[str, float | Sequence[float]] = {
        name: [100 + number / 10, 100.5] if repeated else 100 + number / 10
        for number, name in enumerate(NODES)
    }
    rates |= {"n03": 100.0, "n07": 50.0}
    run = fleet_run(folder, rates)
    assert main(["report", str(run.folder)]) in (0, 1)
    return run


def single_runs(run: Run, name: str, folder: Path) -> set[str]:
    """Return the nodes that the file `name` labels as measured once."""
    if name == "verdict.json":
        verdict = json.loads(run.files.verdict.read_text(encoding="utf-8"))
        found = {each["node"] for each in verdict["results"] if each["single_run"]}
        assert verdict["single_runs"] == len(found)
        return found
    assert main(["export", str(run.folder), "--format", name, "-o", str(folder)]) == 0
    if name == "parquet":
        return set(pl.read_parquet(folder / "records.parquet").filter("single_run")["node"])
    if name == "csv":
        table = pl.read_csv(folder / "records.csv")
        return set(table.filter(pl.col("single_run").cast(pl.String) == "true")["node"])
    assert name == "junit"
    cases = ElementTree.parse(folder / "junit.xml").getroot().iter("testcase")
    return {
        str(case.get("name")).split()[0]
        for case in cases
        if case.findtext("system-out") == "single run"
    }


@pytest.mark.fault("single-run-not-labelled")
@pytest.mark.parametrize("repeated", [True, False], ids=["some repeated", "all once"])
def test_a_figure_that_was_measured_once_is_labelled(tmp_path: Path, repeated: bool) -> None:
    run = measured(tmp_path, repeated=repeated)
    expected = ONCE if repeated else set(NODES)
    for name in ("verdict.json", "csv", "parquet", "junit"):
        assert single_runs(run, name, tmp_path / name) == expected, name
    report = run.files.report.read_text(encoding="utf-8")
    assert f"{len(expected)} of 12 figures are from a single run" in report
    assert report.count(">single run<") >= len(expected)


def test_a_figure_that_was_repeated_is_not_labelled(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, {name: [100.0, 101.0] for name in NODES})
    assert main(["report", str(run.folder)]) in (0, 4)
    for name in ("verdict.json", "csv", "parquet", "junit"):
        assert single_runs(run, name, tmp_path / name) == set(), name
    assert ">single run<" not in run.files.report.read_text(encoding="utf-8")
