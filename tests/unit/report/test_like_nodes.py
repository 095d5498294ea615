"""What must be read stands out: like nodes and steps share a line, and numbers agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.fixtures.finished import own_number
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.pages import plain
from tests.fixtures.report_run import reported

from proofmark.cli.main import main
from proofmark.judge.ending import ending, named_steps
from proofmark.judge.next_steps import next_steps
from proofmark.report.page import LONGEST_LIST, listed
from proofmark.report.run_data import gather
from proofmark.report.sections.main_figures import cells_of, key_rows

NODES = 24
RATES = {f"n{number:02}": (1000.0, 1001.0, 1002.0) for number in range(1, NODES + 1)}
ALL = f"n[01-{NODES}]"
READ = {"key_figures": {"read": "rate"}}
FLOOR = {"metric": "rate", "value": 500, "unit": "MB/s", "at_least": 1, "kind": "floor"}


def text_of(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", plain(page)).split())


@pytest.mark.fault("like-nodes-counted-as-faults")
def test_a_node_with_several_faults_counts_once(tmp_path: Path) -> None:
    board = {node: {own_number(node, "B"): "B000007"} for node in RATES}
    run = fleet_run(tmp_path, RATES, changes=board, one_boot=True, more=2)
    verdict, page = reported(run)
    assert len(verdict.faults) > NODES  # each node has several
    assert f"{NODES} nodes with a fault that no figure has" in page
    lines = ending(verdict, "report.html", "runs/r")
    assert f"worst: {ALL}: {ALL} are one machine" in lines[1]
    problems = [step.problem for step in next_steps(verdict)]
    assert [problem for problem in problems if problem.startswith(f"{ALL} are one machine")]


def test_healthy_nodes_have_no_fault(tmp_path: Path) -> None:
    verdict, page = reported(fleet_run(tmp_path, RATES, more=2))
    assert not verdict.faults
    assert "with a fault that no figure has" not in page


def test_added_executions_of_like_steps_share_a_line(tmp_path: Path) -> None:
    verdict, page = reported(fleet_run(tmp_path, RATES))
    assert len(verdict.executions.added) == NODES
    assert text_of(page).count("1 planned, 2 added") == 1
    assert f"0001-fake/{ALL}: 1 planned, 2 added" in text_of(page)
    assert ending(verdict, "report.html", "runs/r")[1].count("were added to the plan") == 1


def test_steps_are_named_by_their_nodes_and_at_most_three_of_them() -> None:
    assert named_steps(["0001-a/n1", "0001-a/n2", "0002-b"]) == "0001-a/n[1-2], 0002-b"
    assert named_steps(f"{number}-a" for number in range(9)) == "0-a, 1-a, 2-a and 6 more"


def test_the_rest_of_a_long_list_opens_at_a_click() -> None:
    names = [f"{number}" for number in range(LONGEST_LIST + 5)]
    block = listed("title", names, "why")
    (fold,) = block.folds
    assert [*block.items, *fold.block.items] == names
    assert (len(block.items), fold.summary) == (LONGEST_LIST, "Show 5 more")
    assert listed("title", names[:LONGEST_LIST]).folds == ()


def test_a_verdict_prints_the_worst_five_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = {node: tuple(value / 2 for value in RATES[node]) for node in list(RATES)[:9]}
    limit = item(case="fake", metric="rate", value=900, unit="MB/s", at_least=1, text="the rate")
    run = fleet_run(tmp_path, {**RATES, **slow}, more=2, items=(limit,))
    assert main(["verdict", f"{run.folder}"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("FAIL: 0 of 1 contract limits")
    assert sum(line.startswith("FAIL  ") for line in lines) == 5
    assert lines[-1].startswith("next: ") and len(lines) < 20
    assert any(line.startswith("every judged figure: ") or "--all" in line for line in lines)
    assert main(["verdict", f"{run.folder}", "--all"]) == 1
    every = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("FAIL  ") for line in every) == 9


@pytest.mark.parametrize(("executions", "again"), [(1, True), (3, False)])
def test_a_node_that_is_not_accused_yet_is_said_to_be(
    tmp_path: Path, executions: int, again: bool
) -> None:
    """The list for the vendor has only nodes that two executions confirm."""
    rates = {node: values[:executions] for node, values in RATES.items()}
    rates["n03"] = (500.0, 501.0, 502.0)[:executions]
    run = fleet_run(tmp_path, rates, more=executions - 1)
    _verdict, page = reported(run)
    assert "n03 (1 of 24, the worst first)" in page
    assert ("1 to be measured again before they are accused" in page) is again
    listed_nodes = run.files.vendor_list.read_text(encoding="utf-8")
    assert ("n03" in listed_nodes) is not again


def test_two_runs_show_the_changes_that_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = fleet_run(tmp_path / "old", RATES)
    like = fleet_run(tmp_path / "like", RATES)
    slow = fleet_run(tmp_path / "slow", {node: (500.0, 501.0) for node in RATES})
    assert main(["trend", f"{old.folder}", f"{like.folder}"]) == 0
    printed = capsys.readouterr().out
    assert "no figure changed" in printed and "all: --all" in printed
    assert main(["trend", f"{old.folder}", f"{slow.folder}"]) == 0
    printed = capsys.readouterr().out
    assert "-50.0 % *" in printed and max(map(len, printed.splitlines()[1:])) < 200


def test_a_key_figure_shows_the_node_and_the_limit_that_decide(tmp_path: Path) -> None:
    """The slowest node meets the floor; another limit makes the row FAIL."""
    cold = {**RATES, "n03": (700.0, 700.5, 701.0)}
    run = fleet_run(tmp_path, cold, more=2, case={**READ, "references": [FLOOR | {"source": "s"}]})
    verdict, _page = reported(run)
    (row,) = key_rows(gather(run, verdict))
    assert row.figure.outcome == "FAIL" and row.figure.judgement is not None
    assert row.figure.judgement.outcome == "FAIL" and row.figure.judgement.kind != "floor"
    _name, value, *_rest = cells_of(row)
    assert (value.text, *value.details) == ("0.7005 GB/s", "n03", "median 1.001 GB/s", "700.5 MB/s")


def test_a_key_figure_of_one_node_has_no_node_and_no_median(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, {"n01": (700.0, 700.5, 701.0)}, more=2, case=READ)
    verdict, _page = reported(run)
    (row,) = key_rows(gather(run, verdict))
    value = cells_of(row)[1]
    assert (row.nodes, value.text, value.details) == (1, "0.7005 GB/s", ("700.5 MB/s",))


def test_a_run_without_a_contract_says_what_it_is(tmp_path: Path) -> None:
    limit = item(case="fake", metric="rate", value=900, unit="MB/s", at_least=1, text="the rate")
    plainly = "A sanity check: nothing here accepts this machine."
    assert plainly in reported(fleet_run(tmp_path / "a", RATES, more=2, case=READ))[1]
    page = reported(fleet_run(tmp_path / "b", RATES, more=2, case=READ, items=(limit,)))[1]
    assert plainly not in page
    assert page.index('id="contract"') < page.index('id="key-figures"')
