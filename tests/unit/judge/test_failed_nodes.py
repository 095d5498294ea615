"""The nodes that a run does not accept, each with one reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from tests.fixtures.finished import seal
from tests.fixtures.fleet import fleet_run

from proofmark.cli.main import main
from proofmark.common.errors import take_failed_nodes
from proofmark.common.message import Message
from proofmark.judge.diagnosis.storage_faults import FileSystemFault, StorageFaults
from proofmark.judge.ending import failed_nodes
from proofmark.judge.judging import judge_run
from proofmark.runs.run import Run
from proofmark.runs.stage_faults import StageFault

RATES = {f"n{number}": 100.0 + number / 10 for number in range(1, 9)}


def reasons(run: Run) -> dict[str, str]:
    return failed_nodes(judge_run(run), run.plan)


def test_no_node_of_like_nodes_failed(tmp_path: Path) -> None:
    assert reasons(fleet_run(tmp_path, RATES)) == {}


def test_a_slow_node_failed_with_its_figure(tmp_path: Path) -> None:
    found = reasons(fleet_run(tmp_path, RATES | {"n3": 50.0}))
    assert found.keys() == {"n3"}
    assert found["n3"].startswith("fake FAKE rate -50.")


def test_a_node_with_a_damaged_output_failed_with_the_reason(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES)
    (output,) = run.folder.glob("workdir/steps/*/n4/execution-1/stdout")
    output.write_text("damaged")
    seal(output.parent)
    found = reasons(run)
    assert found.keys() == {"n4"}
    assert found["n4"].startswith("INVALID fake rate: no rate found")


def test_a_node_without_a_record_failed(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES)
    (folder,) = run.folder.glob("workdir/steps/*/n5")
    rmtree(folder)
    (step,) = run.plan.steps()
    assert reasons(run) == {"n5": f"{step.id}: not measured"}


def test_a_stage_that_failed_is_the_reason_of_a_node_without_another(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES | {"n3": 50.0})
    verdict = judge_run(run)
    fault = StageFault(stage="modes", nodes="n[3-4]", code="unreachable", text="the BMC is silent")
    conditions = replace(verdict.conditions, stage_faults=(fault,))
    found = failed_nodes(replace(verdict, conditions=conditions), run.plan)
    assert found.keys() == {"n3", "n4"}
    assert found["n3"] == reasons(run)["n3"] and found["n4"] == f"{fault.reason}"


@pytest.mark.parametrize("others", [(), ("n1", "n2")])
def test_a_node_without_the_file_system_of_the_others_failed(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    """The fault replaces the slow figure that follows from it. That of all nodes is no node's."""
    run = fleet_run(tmp_path, RATES | {"n3": 50.0})
    fault = FileSystemFault("/scratch", Message("output", problem="no mount"), ("n3", "n4"), others)
    verdict = replace(judge_run(run), storage=StorageFaults(file_systems=(fault,)))
    found = failed_nodes(verdict, run.plan)
    assert found.keys() == {"n3", *(("n4",) if others else ())}
    assert (found["n3"] == f"{fault.message}") is bool(others)


@pytest.mark.parametrize(("slow", "names"), [(50.0, {"n3"}), (100.3, set())])
def test_the_report_collects_the_nodes_only_if_the_run_is_not_accepted(
    tmp_path: Path, slow: float, names: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Like nodes without a reference are UNJUDGED: no node is the reason."""
    run = fleet_run(tmp_path, RATES | {"n3": slow})
    take_failed_nodes()
    assert main(["report", f"{run.folder}", "--json"]) == 0
    assert '"exit_code"' in capsys.readouterr().out
    assert take_failed_nodes().keys() == names
