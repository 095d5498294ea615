"""Error counters of a node that rise between the two probes of a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run
from tests.fixtures.machine_probe import parse_counters
from tests.folders import PROBES

from proofmark.judge.diagnosis.node_faults import error_faults
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.runs.nodes import nodes_of
from proofmark.site.node.counters import bits_per_s, error_rules, rule_of
from proofmark.site.node.facts import parse_probe

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


@pytest.mark.parametrize(
    ("counter", "found", "hours", "why"),
    [
        ("edac/mc0/dimm0/dimm_ce_count", "11", 24, " 11; 10 in 24 h"),
        ("edac/mc0/dimm0/dimm_ce_count", "10", 24, ""),
        ("edac/mc0/dimm0/dimm_ce_count", "21", 48, " 21; 20 in 48 h"),
        ("edac/mc0/dimm0/dimm_ce_count", "20", 48, ""),
        ("edac/mc0/dimm0/dimm_ce_count", "9000", None, ""),
        ("edac/mc0/dimm0/dimm_ce_count", "many", 24, ""),
        ("edac/mc1/ue_count", "1", None, " 1; 0 in ? h"),
        ("infiniband/mlx5_0/ports/1/counters/link_downed", "90", 24, ""),
    ],
)
def test_errors_before_the_job_are_judged_by_the_time_since_the_start(
    tmp_path: Path, counter: str, found: str, hours: int | None, why: str
) -> None:
    """Their number does not rise while the job runs. A number without a time is no rate."""
    uptime = {"| user: 0\n": f"| user: 0\n| uptime_s: {3600 * hours}\n"} if hours else {}
    verdict = judge_run(
        fleet_run(
            tmp_path, RATES, changes={"n03": {f"{counter}: 0": f"{counter}: {found}", **uptime}}
        )
    )
    assert [each.host for each in verdict.bad.nodes] == (["n03"] if why else [])
    assert all(f"{counter}" in each.likely and why in each.likely for each in verdict.bad.nodes)


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


LINK = "infiniband/mlx5_0/ports/1/counters"
HOUR = {"| date: 2026-11-21T10:18:26Z": "| date: 2026-11-21T11:18:26Z"}
JUDGED = [
    ("edac/mc1/dimm0/dimm_ce_count", 11, "10 in 1 h are accepted (mcelog.conf"),
    ("edac/mc1/ce_count", 900_000, "100 in 1 h are accepted (mcelog.conf"),
    ("edac/mc1/ce_noinfo_count", 101, "corrected memory errors in an unknown DIMM"),
    ("edac/mc1/ue_count", 1, "uncorrected memory errors"),
    ("thermal/core_throttle_count", 1, "throttled because of its temperature"),
    (f"{LINK}/link_downed", 1, "the link of a port went down"),
    (f"{LINK}/link_error_recovery", 11, "error_thresholds of rdma-core"),
    # 100 Gb/s for an hour carry 3.6e14 bits: 360 errors are one in 1e12.
    (f"{LINK}/symbol_error", 456, "455 in 1 h are accepted (InfiniBand"),
    (f"{LINK}/port_rcv_errors", 1000, "InfiniBand Architecture Specification"),
    ("pcie/ib0/aer_dev_fatal", 1, "fatal PCIe errors"),
]


@pytest.mark.fault("hardware-errors")
@pytest.mark.parametrize(("counter", "rise", "text"), JUDGED)
def test_more_errors_than_the_rule_accepts_are_a_fault_of_the_node(
    tmp_path: Path, counter: str, rise: int, text: str
) -> None:
    """The kit reads the raw probes. The control has as many errors as the rule accepts."""
    rule = rule_of(counter)
    assert rule is not None
    bits = 1e11 if "infiniband" in counter else 0.0
    accepted = int(rule.limit(1, bits))
    for errors, folder in ((rise, "bad"), (accepted, "sound")):
        change = {f"{counter}: 0": f"{counter}: {errors}", **HOUR}
        found = judged(tmp_path / folder, change if errors else dict(HOUR))
        faults = {fault.node: fault.reason for fault in found.faults}
        if folder == "sound":
            assert faults == {}
            continue
        assert faults.keys() == {"n03"} and text in faults["n03"]
        assert f"{counter} +{rise}" in faults["n03"] and found.exit_code() in (1, 2)
        (bad,) = found.bad.nodes
        assert bad.host == "n03" and not bad.retest
        assert found.head()["faults"] and bad.as_json()["known"][0]["code"] == "errors-judged"


@pytest.mark.parametrize("value", ["-1", "4294967295", "18446744073709551615", "N/A (no PMA)"])
@pytest.mark.parametrize("counter", ["edac/mc1/ce_count", f"{LINK}/symbol_error"])
def test_a_value_that_is_no_count_is_no_rise(tmp_path: Path, counter: str, value: str) -> None:
    """Of a driver without the counter; the control is one event less than the full counter."""
    run = fleet_run(tmp_path, RATES, after={"n03": {f"{counter}: 0": f"{counter}: {value}"}})
    verdict = judge_run(run)
    assert (list(verdict.faults), reasons(verdict)) == ([], {})
    (job,) = nodes_of(run)["n03"].jobs
    (change,) = job.provenance.changes
    assert (change.name, change.after, change.difference) == (counter, "absent", None)
    last = job.provenance.after
    assert last is not None and f"'{value}' is no count" in last.absent[f"counters.{counter}"]
    rose = judged(tmp_path / "control", {f"{counter}: 0": f"{counter}: 4294967294"})
    assert {fault.node for fault in rose.faults} == {"n03"}


@pytest.mark.parametrize(
    ("name", "count", "is_judged"),
    [
        ("symbol_error", 4294967295, True),
        ("symbol_error", 65535, True),
        ("symbol_error", 65534, False),
        ("port_rcv_constraint_errors", 255, False),  # no rule judges it
        ("local_link_integrity_errors", 14, False),
        ("local_link_integrity_errors", 15, True),
        ("excessive_buffer_overrun_errors", 15, True),
        ("port_xmit_wait", 4294967295, False),
    ],
)
def test_a_node_that_has_no_count_before_its_job(
    tmp_path: Path, name: str, count: int, *, is_judged: bool
) -> None:
    """Its errors are not known, those of like nodes are; what no rule judges proves nothing.

    A narrow counter of InfiniBand stays at its largest number.
    """
    counter = f"{LINK}/{name}"
    line = f"| {LINK}/symbol_error: 0\n"
    sound = {} if name in ("symbol_error", "port_xmit_wait") else {line: f"{line}| {counter}: 0\n"}
    changes = {node: dict(sound) for node in RATES}
    changes["n03"] |= {f"{counter}: 0": f"{counter}: {count}"}
    found = reasons(judge_run(fleet_run(tmp_path, RATES, changes=changes)))
    assert found.keys() == ({"n03"} if is_judged else set())
    assert all(f"counters.{counter}: '{count}' is no count" in each for each in found.values())


@pytest.mark.fault("hardware-errors")
def test_a_counter_that_fills_during_a_job_has_risen(tmp_path: Path) -> None:
    counter = f"{LINK}/link_downed"
    found = judged(tmp_path, {f"{counter}: 0": f"{counter}: 255"})
    assert {fault.node for fault in found.faults} == {"n03"}


@pytest.mark.fault("hardware-errors")
def test_errors_of_all_jobs_of_a_single_node_are_added(tmp_path: Path) -> None:
    """Each of four short jobs has three corrected errors; 24 hours may have ten."""
    counter = "edac/mc1/dimm0/dimm_ce_count"
    run = fleet_run(tmp_path, {"n03": 100.0}, after={"n03": {f"{counter}: 0": f"{counter}: 3"}})
    (node,) = nodes_of(run).values()
    assert error_faults({"n03": node}) == {}
    (fault,) = error_faults({"n03": node.model_copy(update={"jobs": node.jobs * 4})})["n03"]
    assert f"{counter} +12" in fault


@pytest.mark.fault("hardware-errors")
@pytest.mark.parametrize(
    ("counter", "errors", "uptime", "named"),
    [
        ("edac/mc1/ue_count", 1, "", True),
        ("edac/mc1/ce_count", 900_000, "86400.00", True),
        ("edac/mc1/ce_count", 900_000, "", False),  # no rate is known
        ("edac/mc1/ce_count", 100, "86400.00", False),
        ("edac/mc1/ce_count", 250, "259200.5", False),  # three days
        ("interrupts/MCE", 1, "", True),
        (f"{LINK}/symbol_error", 10_000, "86400", False),  # of the training of the link
        ("thermal/core_throttle_count", 5, "86400", False),  # by earlier jobs
    ],
)
def test_errors_before_the_job_are_judged(
    tmp_path: Path, counter: str, errors: int, uptime: str, named: bool
) -> None:
    changes = {f"{counter}: 0": f"{counter}: {errors}"}
    if uptime:
        changes["| user: 0"] = f"| user: 0\n| uptime_s: {uptime}"
    verdict = judge_run(fleet_run(tmp_path, RATES, changes={"n03": changes}))
    assert [fault.node for fault in verdict.faults] == (["n03"] if named else [])
    assert not verdict.counts["INVALID"]
    assert all("before the job: " in fault.reason for fault in verdict.faults)


def test_a_link_that_loses_lanes_is_a_fault(tmp_path: Path) -> None:
    width = "pcie/ib0/current_link_width"
    found = judged(tmp_path / "bad", {f"{width}: 16": f"{width}: 8"})
    (fault,) = found.faults
    assert fault.node == "n03" and "16 → 8" in fault.reason
    more = fleet_run(
        tmp_path / "more",
        RATES,
        changes={"n03": {f"{width}: 16": f"{width}: 8"}},
        after={"n03": {f"{width}: 8": f"{width}: 16"}},
    )
    assert judge_run(more).faults == ()


def test_the_rate_of_each_kind_of_link() -> None:
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    facts, values = parse_probe(probe, "probe"), parse_counters(probe, "probe").values
    assert bits_per_s(f"{LINK}/symbol_error", facts, values) == 100e9
    assert bits_per_s("net/ib0/statistics/rx_crc_errors", facts, values) == 100e9
    assert bits_per_s("pcie/ib0/aer_dev_correctable", facts, values) == 8e9 * 16
    assert bits_per_s("infiniband/other/ports/1/counters/symbol_error", facts, values) == 0
    sixth = {**values, "pcie/ib0/current_link_speed": "64.0 GT/s PCIe"}
    assert bits_per_s("pcie/ib0/aer_dev_correctable", facts, sixth) == 0


def test_each_rule_has_a_source() -> None:
    assert all(len(rule.source) > 20 for rule in error_rules())
    assert rule_of("infiniband/mlx5_0/ports/1/counters/port_xmit_wait") is None
    assert rule_of("thermal/core_power_limit_count") is None
