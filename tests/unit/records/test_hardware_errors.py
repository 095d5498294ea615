"""Error counters of a node that rise between the two probes of a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict

RATES = {f"n{number:02d}": 100.0 + number / 10 for number in range(8)}


def judged(folder: Path, changes: dict[str, str]) -> Verdict:
    """Return the verdict of a fleet; the second probe of n03 has `changes`."""
    return judge_run(fleet_run(folder, RATES, after={"n03": changes}))


def reasons(verdict: Verdict) -> dict[str, str]:
    """Return the reasons of INVALID results, by node."""
    return {each.record.node: each.reason for each in verdict.of("INVALID")}


@pytest.mark.fault("memory-error-uncorrected")
@pytest.mark.parametrize(
    ("counter", "rise", "reason"),
    [
        ("edac/mc1/ue_count", 1, "uncorrected memory errors: edac/mc1/ue_count +1"),
        (
            "edac/mc0/ue_noinfo_count",
            3,
            "uncorrected memory errors in an unknown DIMM: edac/mc0/ue_noinfo_count +3",
        ),
    ],
)
def test_an_uncorrected_memory_error_makes_the_figures_of_its_node_invalid(
    tmp_path: Path, counter: str, rise: int, reason: str
) -> None:
    verdict = judged(tmp_path, {f"{counter}: 0": f"{counter}: {rise}"})
    assert reasons(verdict) == {"n03": reason}
    assert verdict.counts["INVALID"] == 1
    assert verdict.counts["UNJUDGED"] == len(RATES) - 1
    assert verdict.exit_code() == 2


def test_corrected_errors_are_information(tmp_path: Path) -> None:
    """The control: a counter that rises is not always a reason."""
    verdict = judged(tmp_path, {"edac/mc1/ce_count: 0": "edac/mc1/ce_count: 12"})
    assert reasons(verdict) == {}
    assert verdict.counts["UNJUDGED"] == len(RATES)


def test_only_the_counters_that_invalidate_are_in_the_reason(tmp_path: Path) -> None:
    changes = {
        "edac/mc1/ce_count: 0": "edac/mc1/ce_count: 12",
        "edac/mc0/ue_count: 0": "edac/mc0/ue_count: 2",
        "edac/mc3/ue_count: 0": "edac/mc3/ue_count: 1",
    }
    assert reasons(judged(tmp_path, changes)) == {
        "n03": "uncorrected memory errors: edac/mc0/ue_count +2; "
        "uncorrected memory errors: edac/mc3/ue_count +1"
    }


@pytest.mark.fault("memory-error-uncorrected")
def test_a_node_that_was_restarted_during_its_job_is_invalid(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"| boot_id: 2a0c0f5e": "| boot_id: ffffffff"})
    (reason,) = reasons(verdict).values()
    assert reason.startswith("the node was restarted: boot_id ")
