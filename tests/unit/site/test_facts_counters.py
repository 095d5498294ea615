"""Error counters before and after a job."""

from __future__ import annotations

import pytest
from tests.fixtures.machine_probe import parse_counters
from tests.fixtures.probes import probe_text

from proofmark.common.errors import BadInput
from proofmark.site.node.counters import (
    BusyProcess,
    Counters,
    counter_differences,
    disturbance,
)
from proofmark.site.node.provenance import NodeProvenance, node_provenance


def reading(**changes: object) -> Counters:
    plain: dict[str, object] = {
        "hostname": "n1",
        "boot_id": "a",
        "date": "2026-01-01T00:00:00Z",
        "values": {},
        "places": {},
        "load": (0.0, 0.0, 0.0),
        "busy": (),
        "absent": {},
    }
    return Counters.model_validate(plain | changes)


def test_counter_changes_during_a_job_on_a_skl_node() -> None:
    before, after = (
        parse_counters(probe_text(f"skl-2x6148.{when}"), when) for when in ("before", "after")
    )
    changes = counter_differences(before, after)
    assert {change.name: change.difference for change in changes if change.invalid} == {
        "edac/mc2/dimm0/dimm_ue_count": 1,
        "edac/mc2/ue_count": 1,
        "thermal/core_throttle_count": 6,
    }
    information = {change.name: change for change in changes if not change.invalid}
    assert information["edac/mc1/dimm2/dimm_ce_count"].place == "CPU_SrcID#0_MC#1_Chan#2_DIMM#0"
    assert information["infiniband/mlx5_0/ports/1/counters/symbol_error"].difference == 9
    assert information["ipmi/sel_entries"].difference == 2
    link = information["pcie/ib0/current_link_width"]
    assert (link.before, link.after, link.difference) == ("16", "8", None)
    assert information["lustre/newest_eviction"].meaning == "a Lustre server evicted this client"


@pytest.mark.parametrize(
    ("name", "invalid"),
    [
        ("edac/mc0/ue_count", True),
        ("edac/mc0/ue_noinfo_count", True),
        ("edac/mc0/csrow3/ue_count", True),
        ("edac/mc0/dimm2/dimm_ce_count", False),
        ("thermal/package_throttle_count", True),
        ("thermal/core_power_limit_count", False),
        ("interrupts/MCE", True),
        ("interrupts/TRM", False),
        ("vmstat/oom_kill", False),
        ("cpu/steal", False),
        ("infiniband/hfi1_0/ports/1/counters/link_downed", False),
        ("pcie/ib0/aer_dev_fatal", True),
        ("pcie/ib0/aer_dev_correctable", False),
        ("something/new", False),
    ],
)
def test_which_counters_make_results_invalid(name: str, invalid: bool) -> None:
    (change,) = counter_differences(reading(values={name: "3"}), reading(values={name: "4"}))
    assert (change.invalid, change.difference) == (invalid, 1)
    assert counter_differences(reading(values={name: "3"}), reading(values={name: "3"})) == []


def test_a_counter_of_faults_that_was_reset_proves_nothing() -> None:
    before = reading(values={"edac/mc0/ue_count": "5", "net/ib0/statistics/rx_errors": "1"})
    after = reading(values={"edac/mc0/ue_count": "2"})
    reset, removed = counter_differences(before, after)
    assert (reset.invalid, reset.difference, reset.is_fault) == (True, None, False)
    assert "was reset" in reset.meaning
    assert (removed.after, removed.invalid) == ("absent", False)


def test_a_restart_during_the_job_makes_it_invalid() -> None:
    (change,) = counter_differences(reading(), reading(boot_id="b"))
    assert (change.invalid, change.meaning) == (True, "the node was restarted")


def test_counters_of_two_nodes_are_not_compared() -> None:
    with pytest.raises(BadInput, match="found n2; accepted: n1"):
        counter_differences(reading(), reading(hostname="n2"))


def test_the_busiest_processes_are_named_first() -> None:
    busy = tuple(BusyProcess(pid=n, percent=20 + n, command=f"job{n}") for n in (1, 5, 3, 2))
    message = disturbance(reading(busy=busy))
    assert message is not None
    assert message.endswith("job5 (25 %), job3 (23 %), job2 (22 %) and 1 more")


def test_missing_counters_have_a_reason() -> None:
    counters = parse_counters(probe_text("live-kvm-zen3"), "live")
    assert "no EDAC driver" in counters.absent["counters.edac"]
    assert not any(name.startswith("edac/") for name in counters.values)


def test_provenance_of_a_node() -> None:
    provenance = node_provenance(
        probe_text("skl-2x6148"), probe_text("skl-2x6148.after"), "skl0007"
    )
    assert provenance.facts.hostname == provenance.before.hostname == "skl0007"
    assert "uncorrected memory errors at CPU_SrcID#1_MC#0_Chan#0_DIMM#0" in provenance.invalid
    assert NodeProvenance.model_validate_json(provenance.model_dump_json()) == provenance


def test_provenance_of_a_job_without_second_probe() -> None:
    provenance = node_provenance(probe_text("skl-2x6148"), None, "skl0007")
    assert (provenance.after, provenance.changes, provenance.invalid) == (None, (), "")


def test_provenance_of_two_nodes_is_refused() -> None:
    with pytest.raises(BadInput, match=r"n\.after: hostname: found skl0007"):
        node_provenance(probe_text("spr-vm"), probe_text("skl-2x6148.after"), "n")


@pytest.mark.parametrize("after", ["0", "1"])
def test_a_counter_of_uncorrected_errors_that_is_no_number_proves_nothing(after: str) -> None:
    """The link of an adapter has words as well: ``unknown`` is no rise."""
    name = "edac/mc0/ue_count"
    (change,) = counter_differences(reading(values={name: "x"}), reading(values={name: after}))
    assert (change.invalid, change.difference) == (True, None)
    (change,) = counter_differences(reading(values={name: after}), reading(values={name: "x"}))
    assert (change.invalid, change.difference, change.after) == (True, None, "x")


def test_a_time_of_an_eviction_has_no_difference() -> None:
    name = "lustre/newest_eviction"
    (change,) = counter_differences(reading(values={name: "1"}), reading(values={name: "9"}))
    assert (change.difference, str(change)) == (None, f"{change.meaning}: {name} 1 → 9")


def test_changes_are_in_the_order_of_their_names_the_invalid_ones_first() -> None:
    names = ["net/b", "edac/mc1/ue_count", "net/a", "edac/mc0/ue_count"]
    before, after = (reading(values=dict.fromkeys(names, number)) for number in "12")
    assert [change.name for change in counter_differences(before, after)] == [
        *("edac/mc0/ue_count", "edac/mc1/ue_count", "net/a", "net/b"),
    ]


@pytest.mark.parametrize(
    ("resent", "sent", "listed"),
    [(99, 100_000, False), (100, 100_000, True), (0, 100_000, False), (5, 10, True)],
)
def test_tcp_segments_are_listed_if_many_were_sent_again(
    resent: int, sent: int, listed: bool
) -> None:
    def values(resent: int, sent: int) -> Counters:
        return reading(values={"tcp/RetransSegs": f"{resent}", "tcp/OutSegs": f"{sent}"})

    changes = counter_differences(values(7, 50), values(7 + resent, 50 + sent))
    assert [change.difference for change in changes] == ([resent] if listed else [])
    assert counter_differences(reading(values={}), values(9, 9)) == []


def test_the_reasons_of_missing_readings_are_kept() -> None:
    given = probe_text("live-kvm-zen3")
    head = "=== counters\n"
    assert head in given
    more = "! busy: no /proc\n! load: no loadavg\n! counters.x: none\n"
    absent = parse_counters(given.replace(head, f"{head}{more}"), "live").absent
    assert absent.keys() >= {"busy", "load", "counters.x"}


def test_only_events_that_invalidate_are_the_reason_of_a_node() -> None:
    provenance = node_provenance(
        probe_text("skl-2x6148"), probe_text("skl-2x6148.after"), "skl0007"
    )
    assert any(not change.invalid for change in provenance.changes)
    assert provenance.invalid.count("; ") == sum(each.invalid for each in provenance.changes) - 1
