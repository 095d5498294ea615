"""Repeats of one figure that disagree, in imported outputs and in own runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.cli.main import main
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adoption import adopt_folder, site_of_hosts
from proofmark.packages.foreign.adoption_request import AdoptionRequest
from proofmark.packages.foreign.path_rules import LabelRule, PathRule
from proofmark.report.run_data import gather
from proofmark.report.sections import issues
from proofmark.report.sections.signed_sheets import exceptions
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


def test_repeats_of_two_states_are_an_issue(tmp_path: Path) -> None:
    run, verdict = judged(tmp_path, {DATES[0]: 1.6})
    (one,) = verdict.executions.disagreements
    assert 0.36 < one.difference < 0.4
    assert one.spread is not None
    assert one.spread < 0.02
    low, high = one.states
    assert (low.executions, high.executions) == (
        tuple(f"sweep_{date}" for date in DATES[1:]),
        (f"sweep_{DATES[0]}",),
    )
    assert (one.figures, one.compared) == (4, 4)
    section = issues.section(gather(run, verdict))
    assert any("disagree" in title for block in section.blocks for title in block.titles)
    assert f"sweep_{DATES[0]}" in issues.disagreement_text(one, verdict)


@pytest.mark.parametrize("factor", [1.0, 1.05])
def test_repeats_that_scatter_as_like_nodes_are_none(tmp_path: Path, factor: float) -> None:
    assert judged(tmp_path, {DATES[0]: factor})[1].executions.disagreements == ()


@pytest.mark.parametrize(("factor", "issue"), [(1.15, False), (1.4, True)])
def test_without_like_nodes_only_a_large_difference_is_one(
    tmp_path: Path, factor: float, issue: bool
) -> None:
    found = judged(tmp_path, {DATES[0]: factor}, ("n1",))[1].executions.disagreements
    assert bool(found) == issue
    assert all(each.spread is None for each in found)


@pytest.mark.fault("adopted-dates-pooled")
@pytest.mark.parametrize(("factor", "issue"), [(1.6, True), (1.0, False)])
def test_dates_are_a_trend_and_no_repeats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], factor: float, issue: bool
) -> None:
    pooled, _ = judged(tmp_path, {DATES[0]: factor})
    shutil.rmtree(pooled.folder)
    run, verdict = adopted(tmp_path, NODES, "date=/sweep_([^/]*)/")
    values = {(r.record.node, r.record.parameters["date"]): r.values for r in verdict.results}
    assert values.keys() == {(node, date) for node in NODES for date in DATES}
    assert {len(each) for each in values.values()} == {1}
    assert bool(verdict.executions.disagreements) is issue
    for one in verdict.executions.disagreements:
        assert one.dates
        assert [each.executions for each in one.states] == [DATES[1:], DATES[:1]]
        assert (one.figures, one.compared) == (4, 4)
        main(["verdict", str(run.folder)])
        assert f"the dates differ by {100 * one.difference:.2g} %" in capsys.readouterr().out


def test_like_nodes_that_are_pairs_are_called_pairs(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    for number in range(1, 6):
        path = tmp_path / "vendor" / f"n{number}+n{number + 1}.out"
        path.write_text(OUTPUT.format(1000 + number), encoding="utf-8")
    _, verdict = adopted(tmp_path, tuple(f"n{number}" for number in range(1, 7)))
    reasons = {result.reason.main_code: result.reason for result in verdict.results}
    assert "5 like pairs" in reasons["pairs-alike"]
    assert "node" not in reasons["pairs-alike"]


def test_figures_that_agree_are_not_counted(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, {f"{DATES[0]} n2": 2.0})
    (one,) = verdict.executions.disagreements
    assert verdict.results[one.figure].record.node == "n2"
    assert (one.figures, one.compared) == (1, 4)


@pytest.mark.parametrize(
    ("values", "issue"), [([100, 101, 60, 101], True), ([100, 101, 96], False)]
)
def test_executions_of_one_repeat_of_an_own_run_are_not_averaged(
    tmp_path: Path, values: list[float], issue: bool
) -> None:
    """Several executions of a step have the same number of the repeat."""
    run = fleet_run(tmp_path, {f"n{number}": [100.0] for number in range(5)} | {"n0": values})
    found = judge_run(run).executions.disagreements
    assert bool(found) == issue
    for one in found:
        assert one.states[0].executions == ("0001-fake/n0#3",)


def test_runs_in_one_file_have_a_number(tmp_path: Path) -> None:
    text = "".join(OUTPUT.format(rate) for rate in (1000, 1010, 600))
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "n1.out").write_text(text, encoding="utf-8")
    _, verdict = adopted(tmp_path, ("n1",))
    (one,) = verdict.executions.disagreements
    assert one.states[0].executions == ("n1.out#3",)


def test_the_summary_and_the_text_of_the_verdict_have_the_issue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, verdict = judged(tmp_path, {DATES[0]: 1.6})
    rows = exceptions(gather(run, verdict))
    assert any("the repeats differ by" in cell for row in rows for cell in row)
    assert main(["verdict", str(run.folder)]) == verdict.exit_code()
    printed = capsys.readouterr().out
    assert f"in sweep_{DATES[0]}" in printed
    assert f"; dates: {', '.join(DATES)}" in printed
