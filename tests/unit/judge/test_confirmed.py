"""A node is named for return only if undisturbed executions confirm its failure."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import seal, written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import execution, steps_of
from tests.fixtures.report_run import page_of

from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.next_steps import next_steps
from proofmark.judge.results import Again
from proofmark.runs.run import Run

HEALTHY = {f"n{number:02d}": 100.0 + number / 10 for number in range(12)}
SLOW = 100 / 2.7
NOISE = {
    **{"host": "n07", "seconds": 10.0, "rank_seconds": 10.0, "cpus": 1, "ranks_s": 6.0},
    **{"others_s": 4.0, "steal_s": 0.0, "worst_steal_s": 0.0, "worst_delay_s": 4.0},
    **{"burst": 0.0, "burst_others": 0.0, "others": [{"name": "make", "seconds": 4.0}]},
}
"""Another process took a CPU of the ranks for 4 of 10 seconds."""


def fleet(folder: Path, values: Sequence[float], **facts: Any) -> Run:
    """Return a run of 12 nodes; `values` are the executions of n07."""
    return fleet_run(folder, HEALTHY | {"n07": list(values)}, **facts)


def listed(run: Run) -> tuple[BadNode, list[str], str]:
    """Judge `run`; return the bad node, the nodes in rma.csv, and the page."""
    verdict = written_verdict(run)
    assert verdict.counts["FAIL"] == 1
    (node,) = verdict.bad.nodes
    rows = csv.DictReader(run.files.vendor_list.read_text(encoding="utf-8").splitlines())
    page = page_of(run, verdict)
    return node, [row["node"] for row in rows], page


@pytest.mark.parametrize("values", [[SLOW, SLOW], [SLOW, SLOW * 1.01, SLOW * 0.99]])
def test_a_really_slow_node_enters_the_list(tmp_path: Path, values: list[float]) -> None:
    """Control: no repeat is disturbed."""
    node, named, page = listed(fleet(tmp_path, values))
    assert (node.host, node.retest, named) == ("n07", False, ["n07"])
    assert "Send rma.csv to the vendor. Measure again after the repair." in page
    (figure,) = node.as_json()["figures"]
    assert figure["shown_by"] == [f"0001-fake/n07#{n + 1}" for n in range(len(values))]


@pytest.mark.fault("disturbed-repeat")
@pytest.mark.parametrize("values", [[SLOW]])
def test_one_disturbed_repeat_of_a_healthy_node_does_not(
    tmp_path: Path, values: list[float]
) -> None:
    run = fleet(tmp_path, values)
    node, named, page = listed(run)
    assert (node.host, node.retest, named) == ("n07", True, [])
    section = page.partition('id="bad-nodes"')[2].partition("</section>")[0]
    assert "Measure again before you act: " in section
    assert "Send rma.csv to the vendor" not in section
    written = json.loads(run.files.verdict.read_text(encoding="utf-8"))
    assert written["retest"]["command"] == f"proofmark rerun runs/{run.id} 0001-fake/n07"
    (failed,) = (each for each in written["results"] if each["verdict"] == "FAIL")
    assert failed["retest_reason"] in ("unconfirmed", "within-noise")


@pytest.mark.fault("disturbed-repeat")
@pytest.mark.parametrize(
    "values", [[85.0], [SLOW, 101.0], [SLOW, 101.0, SLOW, 101.0], [SLOW, SLOW, 101.0]]
)
def test_repeats_that_do_not_agree_are_measured_again(tmp_path: Path, values: list[float]) -> None:
    """Exactly half of the repeats, or two of three, show no fault of the node."""
    run = fleet(tmp_path, values)
    verdict = written_verdict(run)
    assert (verdict.counts["FAIL"], verdict.bad.nodes, verdict.exit_code()) == (0, (), 4)
    (message,) = (each for each in verdict.unmet if each.code == "measure-nodes-again")
    assert message.fields == {"nodes": "n07", "count": 1}
    step = next(each for each in next_steps(verdict) if each.nodes == "n07")
    assert (step.word, step.again, step.steps) == ("UNJUDGED", Again.RERUN, ("0001-fake/n07",))
    assert step.action == "Measure n07 again: its repeats do not prove a fault"
    assert verdict.retest_command() == f"proofmark rerun runs/{run.id} 0001-fake/n07"
    written = json.loads(run.files.verdict.read_text(encoding="utf-8"))
    (open_,) = (each for each in written["results"] if each["retest"])
    assert (open_["node"], open_["verdict"]) == ("n07", "UNJUDGED")
    assert "Measure n07 again" in page_of(run, verdict)


@pytest.mark.fault("disturbed-repeat")
def test_a_repeat_that_is_fast_again_is_no_failure(tmp_path: Path) -> None:
    verdict = written_verdict(fleet(tmp_path, [SLOW, 101.0, 100.0]))
    assert (verdict.counts["FAIL"], verdict.bad.nodes) == (0, ())


@pytest.mark.fault("disturbed-repeat")
@pytest.mark.parametrize(("disturbed", "named"), [(0, ["n07"]), (1, []), (2, [])])
def test_a_disturbed_execution_confirms_nothing(
    tmp_path: Path, disturbed: int, named: list[str]
) -> None:
    """On emulated nodes a disturbed execution is valid."""
    run = fleet(tmp_path, [SLOW] * 2, partition={"origin": "emulated"}, case={"undisturbed": {}})
    for number in range(1, disturbed + 1):
        place = execution(steps_of(run)[0] / "n07", number)
        (place / "noise.json").write_text(json.dumps([NOISE]))
        seal(place)
    verdict = written_verdict(run)
    assert [node.host for node in verdict.bad.nodes if not node.retest] == named
    assert [each.record.node for each in verdict.of("FAIL") if not each.retest] == named


def test_a_counter_of_errors_needs_no_second_execution(tmp_path: Path) -> None:
    after = {"n07": {"mc2/dimm0/dimm_ce_count: 0": "mc2/dimm0/dimm_ce_count: 5"}}
    run = fleet(tmp_path, [SLOW], after=after)
    node, named, _ = listed(run)
    assert (node.retest, named) == (True, []), "corrected errors are no fault"
