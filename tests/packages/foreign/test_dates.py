"""Dates of imported outputs, and pairs of nodes in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adoption import adopt_folder, site_of_hosts
from proofmark.packages.foreign.adoption_request import AdoptionRequest
from proofmark.packages.foreign.path_rules import LabelRule, PathRule
from proofmark.runs.run import Run, open_run

Judged = tuple[Run, Verdict]
NODES = ("n1", "n2", "n3", "n4")
DATES = ("2026-04-01", "2026-04-17", "2026-05-19")
OUTPUT = """# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
8388608  {:.2f}
"""


def judged(folder: Path, factors: dict[str, float], nodes: tuple[str, ...] = NODES) -> Judged:
    """Return the verdict on outputs of nodes; a rate has a factor by date, or date and node."""
    for at, node in enumerate(nodes):
        for number, date in enumerate(DATES):
            factor = factors.get(date, factors.get(f"{date} {node}", 1.0))
            rate = 1000 * factor * (1 + 0.01 * ((at + number) % 3))
            path = folder / "vendor" / f"sweep_{date}" / f"{node}.out"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(OUTPUT.format(rate), encoding="utf-8")
    return adopted(folder, nodes)


def adopted(folder: Path, nodes: tuple[str, ...], *labels: str) -> Judged:
    benchmarks = shipped_benchmarks()
    cases = {"osu-bw": benchmarks.cases["osu-bw"]}
    request = AdoptionRequest(
        folder / "vendor",
        {"osu-bw": ["*.out"]},
        PathRule("[/+](n[0-9]+)", cases),
        run_id="vendor",
        labels=tuple(LabelRule(each, cases.values()) for each in labels),
    )
    run, _ = adopt_folder(folder / "runs", request, benchmarks, site_of_hosts(nodes))
    opened = open_run(run.folder)
    return opened, judge_run(opened)


def test_outputs_without_a_label_of_dates_are_repeats(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, {DATES[0]: 1.6})
    assert {len(each.values) for each in verdict.results} == {len(DATES)}


@pytest.mark.fault("adopted-dates-pooled")
def test_dates_are_figures_of_their_own_and_no_repeats(tmp_path: Path) -> None:
    pooled, _ = judged(tmp_path, {DATES[0]: 1.6})
    shutil.rmtree(pooled.folder)
    _, verdict = adopted(tmp_path, NODES, "date=/sweep_([^/]*)/")
    values = {(r.record.node, r.record.parameters["date"]): r.values for r in verdict.results}
    assert values.keys() == {(node, date) for node in NODES for date in DATES}
    assert {len(each) for each in values.values()} == {1}


def test_like_nodes_that_are_pairs_are_called_pairs(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    for number in range(1, 6):
        path = tmp_path / "vendor" / f"n{number}+n{number + 1}.out"
        path.write_text(OUTPUT.format(1000 + number), encoding="utf-8")
    _, verdict = adopted(tmp_path, tuple(f"n{number}" for number in range(1, 7)))
    reasons = {result.reason.main_code: result.reason for result in verdict.results}
    assert "5 like pairs" in reasons["pairs-alike"]
    assert "node" not in reasons["pairs-alike"]
