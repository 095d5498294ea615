"""Exports of a run: CSV, Parquet, JUnit and HPL submission."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.cli.main import main
from proofmark.judge.judging import read_and_judge
from proofmark.records.parquet_table import SCHEMA
from proofmark.runs.run import Run

MORE = ("single_run", "degraded", "verdict", "file")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    rates = {f"n{number:02d}": 100.0 + number / 10 for number in range(20)}
    return fleet_run(tmp_path, rates | {"n07": 50.0})


def exported(run: Run, name: str, folder: Path) -> int:
    return main(["export", str(run.folder), "--format", name, "-o", str(folder)])


def test_csv_and_parquet_have_the_same_records(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("csv", "parquet"):
        assert exported(run, name, tmp_path / "out") == 0
    text = pl.read_csv(tmp_path / "out" / "records.csv")
    table = pl.read_parquet(tmp_path / "out" / "records.parquet")
    assert list(table.columns) == [*SCHEMA, *MORE] == list(text.columns)
    for row in text.rows(named=True):
        assert (run.folder / row["file"]).is_file()
    failed = text.filter(pl.col("verdict") == "FAIL")
    assert failed["node"].to_list() == ["n07"]
    capsys.readouterr()
    assert main(["verdict", str(run.folder)]) == 1
    head, line = capsys.readouterr().out.splitlines()[:2]
    assert head.split() == ["verdict", "node", "case", "metric", "value", "unit", "reason", "file"]
    assert line.split()[:2] == ["FAIL", "n07"]
    assert line.split()[-1] == failed["file"][0]
    assert text["value"].to_list() == table["value"].to_list()
    assert len(table) == len(read_and_judge(run)[0]) == 20


def test_junit_counts_the_failures(run: Run, tmp_path: Path) -> None:
    assert exported(run, "junit", tmp_path / "out") == 0
    suite = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("20", "1")


def test_an_hpl_submission_has_input_output_script_and_environment(
    run: Run, tmp_path: Path
) -> None:
    step = run.folder / "workdir/steps" / "0001-fake" / "n01"
    (step / "execution-1" / "HPL.dat").write_text("HPLinpack benchmark input file\n")
    script = run.files.scripts.step("0001-fake").node_script
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    assert exported(run, "hpl", tmp_path / "out") == 0
    assert (tmp_path / "out" / "software.json").is_file()
    assert {path.name for path in (tmp_path / "out" / "0001-fake" / "n01").iterdir()} == {
        "HPL.dat", "stdout", "stderr", "node.sh", "rc", "when.json", "binding.json"
    }  # fmt: skip


def test_a_run_without_hpl_has_no_submission(run: Run, tmp_path: Path) -> None:
    assert exported(run, "hpl", tmp_path / "out") == 3


def test_an_unknown_format_is_refused(run: Run, tmp_path: Path) -> None:
    assert exported(run, "excel", tmp_path) == 3
