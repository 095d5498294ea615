"""Outputs of clusters of several kinds of machines, by the two default commands of ``adopt``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.adopted_cluster import GROUPS, Faults, Group, write_cluster
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import open_run

PAIR = ("w0003", "w0007")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROOFMARK_KIT", str(ROOT))
    return tmp_path / "vendor"


def judged(folder: Path) -> Verdict:
    runs = folder.parent / "runs"
    assert main(["adopt", str(folder)]) == 0
    assert main(["adopt", str(folder), "--accept", "--runs", str(runs), "--run-id", "r"]) == 0
    return read_and_judge(open_run(runs / "r"))[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_control_a_healthy_cluster_of_several_kinds_has_no_fault(folder: Path, seed: int) -> None:
    write_cluster(folder, seed=seed)
    verdict = judged(folder)
    assert verdict.counts["FAIL"] == verdict.counts["INVALID"] == 0
    assert [each.code for each in verdict.required] == ["groups-unknown"]
    assert verdict.required[0].fields["count"] == len(GROUPS)
    assert verdict.exit_code() == 4


@pytest.mark.fault("adopted-fault-in-one-kind")
def test_planted_faults_are_found_alone(folder: Path) -> None:
    write_cluster(folder, faults=Faults({"x0005": 0.8}, {PAIR: 0.5}), sweeps=3)
    verdict = judged(folder)
    assert {result.record.node for result in verdict.of("FAIL")} == {"x0005", "w[0003,0007]"}
    failed = {result.record.case for result in verdict.of("FAIL")}
    assert failed == {"stream", "osu-bw", "osu-latency"}


def test_a_node_that_was_slow_once_is_measured_again(folder: Path) -> None:
    write_cluster(folder, faults=Faults({"x0005": 0.8}))
    verdict = judged(folder)
    assert not verdict.counts["FAIL"]
    assert {result.record.node for result in verdict.again} == {"x0005"}


def test_a_third_of_the_nodes_is_a_kind(folder: Path) -> None:
    """Nodes that no pair connects are compared together; a third of them are a level."""
    nodes = {f"w{number:04}": 0.8 for number in range(1, 5)}
    write_cluster(folder, (Group("w", 12),), Faults(nodes))
    for name in ("bw", "lat"):
        for path in (folder / name).rglob("*.out"):
            path.unlink()
    verdict = judged(folder)
    assert verdict.counts["FAIL"] == 0
    assert {apart.code for apart in verdict.fleet.apart.values()} == {"levels"}


def test_separate_pairs_of_one_machine_are_no_groups(folder: Path) -> None:
    """Each node is in one pair: a slow pair is found among the others."""
    write_cluster(folder, (Group("n", 24),), Faults(pairs={("n0003", "n0004"): 0.5}))
    for path in folder.rglob("*.out"):
        first, second = (int(name[1:]) for name in path.stem.split("--"))
        if not (first % 2 and second == first + 1):
            path.unlink()
    verdict = judged(folder)
    assert not verdict.required
    assert {result.record.node for result in verdict.of("FAIL")} == {"n[0003-0004]"}


def test_the_page_and_the_terminal_ask_whether_groups_are_alike(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cluster(folder, (Group("w", 5, 0.6), Group("x", 5)))
    judged(folder)
    run = str(folder.parent / "runs" / "r")
    assert main(["verdict", run]) == 4
    assert "are the nodes of these 2 groups alike" in capsys.readouterr().out
    assert main(["report", run]) == 0
    assert "are the nodes of these 2 groups alike" in Path(run, "report.html").read_text()
