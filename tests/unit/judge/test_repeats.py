"""Results cannot be picked: added executions, slow repeats, and repeats beside a daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import judged, seal, write_execution
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import execution, item, make_kit, steps_of

from proofmark.cli.main import main
from proofmark.judge.ending import ending
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.report.run_data import gather
from proofmark.report.sections import issues
from proofmark.runs.run import Run

LIMIT = {
    "case": "fake",
    "metric": "rate",
    "value": 90,
    "unit": "MB/s",
    "at_least": 1,
    "source": "contract",
}
DAEMON = {
    **{"seconds": 10.0, "rank_seconds": 10.0, "cpus": 1, "ranks_s": 3.0},
    **{"others_s": 7.0, "steal_s": 0.0, "worst_steal_s": 0.0, "worst_delay_s": 7.0},
    **{"burst": 0.0, "burst_others": 0.0, "others": [{"name": "backupd", "seconds": 7.0}]},
}
"""A process had a CPU of the ranks for 7 of 10 seconds."""
STEADY: dict[str, Any] = {"undisturbed": {}}
HEALTHY = {f"n{number}": [100.0 + number / 10] * 9 for number in range(1, 6)}


def run_of(folder: Path, rates: Mapping[str, float | Sequence[float]], **partition: Any) -> Run:
    """Return a run that measured `rates`; each value of a node is an execution of one step."""
    return fleet_run(folder, rates, partition=partition, items=[item(**LIMIT)], case=STEADY)


def disturb(run: Run, node: str, numbers: Sequence[int]) -> None:
    """Let a daemon take the CPU of the ranks in executions of a node."""
    (step,) = steps_of(run)
    place = step / node if (step / node).is_dir() else step
    for number in numbers:
        folder = execution(place, number)
        (folder / "noise.json").write_text(json.dumps([{"host": node, **DAEMON}]))
        seal(folder)


def last_lines(verdict: Verdict) -> str:
    return "\n".join(ending(verdict, "report.html", f"runs/{verdict.run}"))


def titles(run: Run, verdict: Verdict) -> list[str]:
    section = issues.section(gather(run, verdict))
    return [title for block in section.blocks for title in block.titles]


def test_control_repeats_that_agree_pass(tmp_path: Path) -> None:
    verdict = judge_run(run_of(tmp_path, {"n1": [100.0]}))
    assert (verdict.counts["PASS"], verdict.exit_code(), verdict.executions.added) == (1, 0, ())


@pytest.mark.fault("executions-picked")
@pytest.mark.parametrize(
    "values", [[10.0, *[100.0] * 4], [80.0, 100.0, 100.0], [80.0, *[100.0] * 9]]
)
def test_added_executions_do_not_turn_a_miss_into_a_pass(
    tmp_path: Path, values: list[float]
) -> None:
    run = run_of(tmp_path, {"n1": values})
    verdict = judge_run(run)
    (result,) = verdict.results
    # One execution that misses the limit by less than a factor is no FAIL, and no PASS either.
    word = ("FAIL", 1) if values[0] < 50 else ("UNJUDGED", 4)
    assert (result.verdict, verdict.exit_code()) == word
    assert result.values == tuple(values)
    assert "the 1 planned of" in result.reason
    assert result.reason.code == "planned-alone"
    (added,) = verdict.executions.added
    assert (added.planned, added.added) == (1, len(values) - 1)
    assert verdict.head()["added"] == [vars(added)]
    assert "Executions that were added to the plan" in titles(run, verdict)
    assert "rerun" not in last_lines(verdict)


@pytest.mark.fault("executions-picked")
def test_slow_added_executions_count_too(tmp_path: Path) -> None:
    verdict = judge_run(run_of(tmp_path, {"n1": [100.0, 50.0, 50.0, 50.0]}))
    assert [each.verdict for each in verdict.results] == ["FAIL"]


@pytest.mark.fault("executions-picked")
def test_three_planned_repeats_and_four_added_ones(tmp_path: Path) -> None:
    """The repeats of a plan are steps; the added executions are of its first step."""
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": 1}, suites={"quick": {"repeats": 3}})
    run = kit.run(site=kit.site([item(**LIMIT)]))
    host = os.uname().nodename
    for step, values in zip(steps_of(run), ([10, 100, 100, 100, 100], [10], [10]), strict=True):
        for number, value in enumerate(values, start=1):
            output = {"stdout": f"size 1\nrate {value}\nEND\n"}
            binding = [{"rank": 0, "host": host, "cpus": "0-1"}]
            write_execution(step, host, output, number=number, binding=binding)
    verdict = judged(run)
    (result,) = verdict.results
    assert sorted(result.values) == [10.0] * 3 + [100.0] * 4
    assert (result.verdict, verdict.exit_code()) == ("FAIL", 1)
    assert "the 3 planned of 7 executions" in result.reason


@pytest.mark.fault("repeats-of-two-states")
@pytest.mark.parametrize("slow", [4, 3])
def test_many_slow_repeats_fail_beside_a_good_median(tmp_path: Path, slow: int) -> None:
    values = [*[100.0] * (9 - slow), *[33.0] * slow]
    verdict = judge_run(run_of(tmp_path, {"n1": values}))
    (result,) = verdict.results
    assert (result.verdict, result.record.value, verdict.exit_code()) == ("FAIL", 100.0, 1)
    assert f"{slow} of 9 repeats miss the limit by more than 10 %" in result.reason
    assert (result.retest, len(result.shown_by)) == (False, slow)
    assert "FAIL fake rate" in last_lines(verdict)


@pytest.mark.fault("repeats-of-two-states")
def test_a_node_with_many_slow_repeats_is_named_beside_its_peers(tmp_path: Path) -> None:
    values = [*[100.0] * 5, *[33.0] * 4]
    verdict = judge_run(run_of(tmp_path, {"n0": values, **HEALTHY}))
    (node,) = verdict.bad.nodes
    assert (node.host, node.retest) == ("n0", False)
    assert node.worst == pytest.approx(33 / 90 - 1)


@pytest.mark.fault("repeats-of-two-states")
def test_one_slow_repeat_passes_with_a_word(tmp_path: Path) -> None:
    verdict = judge_run(run_of(tmp_path, {"n1": [*[100.0] * 30, 33.0]}))
    (result,) = verdict.results
    assert (result.verdict, result.reason.main_code) == ("PASS", "repeats-beyond")


@pytest.mark.parametrize("low", [89.0, 85.0, 82.0])
def test_repeats_within_the_material_change_pass(tmp_path: Path, low: float) -> None:
    verdict = judge_run(run_of(tmp_path, {"n1": [*[100.0] * 5, *[low] * 4]}))
    assert [each.verdict for each in verdict.results] == ["PASS"]
    assert verdict.results[0].reason.main_code == "limit-confidence"


@pytest.mark.fault("disturbed-node")
@pytest.mark.parametrize("others", [{}, HEALTHY], ids=["one node", "beside like nodes"])
def test_a_node_beside_a_daemon_that_is_always_there_does_not_pass(
    tmp_path: Path, others: dict[str, list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path, {"n0": [*[30.0] * 8, 100.0], **others})
    disturb(run, "n0", range(1, 9))
    verdict = judge_run(run)
    (result,) = (each for each in verdict.results if each.record.node in ("n0", "localhost"))
    assert result.verdict == "INVALID"
    assert "backupd (70 % of a CPU)" in result.reason
    (node,) = verdict.executions.disturbed
    assert (node.disturbed, node.executions, node.is_fault) == (8, 9, bool(others))
    assert "disturbed in 8 of 9 executions by backupd (70 % of a CPU)" in node.message
    assert [fault.node for fault in verdict.faults] == ([node.node] if others else [])
    assert verdict.exit_code() == 2
    assert "backupd" in last_lines(verdict)
    assert "Nodes that are disturbed mostly" in titles(run, verdict)
    assert main(["verdict", f"{run.folder}"]) == 2


@pytest.mark.parametrize("disturbed", [1, 2])
def test_a_step_that_its_job_repeated_counts_with_its_undisturbed_execution(
    tmp_path: Path, disturbed: int
) -> None:
    """The control: a job executes a disturbed step at most three times."""
    run = run_of(tmp_path, {"n0": [*[30.0] * disturbed, 100.0]})
    disturb(run, "n0", range(1, disturbed + 1))
    verdict = judge_run(run)
    assert [each.verdict for each in verdict.results] == ["PASS"]
    assert (verdict.executions.disturbed, verdict.executions.added, verdict.exit_code()) == (
        (),
        (),
        0,
    )


def test_emulated_nodes_share_the_processes_of_their_machine(tmp_path: Path) -> None:
    run = fleet_run(
        tmp_path,
        {"n0": [100.0] * 9, **HEALTHY},
        partition={"origin": "emulated"},
        case={"undisturbed": {}},
    )
    disturb(run, "n0", range(1, 9))
    assert judge_run(run).executions.disturbed == ()
