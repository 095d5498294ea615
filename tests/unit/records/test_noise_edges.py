"""Tests the thresholds for a disturbed node with boundary values."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.cases.case import Stability
from proofmark.records.os_noise import noise_reason
from proofmark.runs.noise_file import NodeNoise

GOT = "disturbed: the ranks got 50 % of their CPUs; "


def noise(**changes: Any) -> NodeNoise:
    """Return a node that ran 16 s on four CPUs, whose ranks got half of their CPUs."""
    fields: dict[str, Any] = {
        "host": "n1",
        "seconds": 16.0,
        "rank_seconds": 8.0,
        "cpus": 4,
        "ranks_s": 16.0,
        "others_s": 0.0,
        "steal_s": 0.0,
        "worst_steal_s": 0.0,
        "worst_delay_s": 0.0,
        "burst": 0.0,
        "burst_others": 0.0,
        "others": (),
    }
    return NodeNoise(**{**fields, **changes})


LIMITS = Stability(
    max_steal=0.25, max_others=0.25, max_delay=0.25, max_burst=0.25, least_seconds=16
)
DELAY = "a thread waited 50 % of the time, more than 25 %"
BURST = "a thread waited 50 % of a second, more than 25 %"
OTHERS = "others used 27 % of these CPUs, more than 25 %"
STEAL = "a hypervisor withheld 27 % of a CPU, more than 25 %"


def reason(*nodes: NodeNoise) -> str:
    return noise_reason(nodes, LIMITS)


class TestThresholds:
    @pytest.mark.parametrize(("steal", "cause"), [(4.0, ""), (4.25, STEAL), (64.0, "400 %")])
    def test_time_withheld_by_a_hypervisor_counts_above_its_share_of_the_step(
        self, steal: float, cause: str
    ) -> None:
        found = reason(noise(worst_steal_s=steal))
        assert cause in found
        assert bool(found) is bool(cause)

    @pytest.mark.parametrize(("others", "cause"), [(16.0, ""), (17.0, GOT + OTHERS)])
    def test_time_of_others_counts_above_its_share_of_all_cpus(
        self, others: float, cause: str
    ) -> None:
        assert reason(noise(others_s=others)) == cause

    @pytest.mark.parametrize(("ranks", "disturbed"), [(15.9, False), (16.0, True), (32.0, True)])
    def test_others_count_if_the_ranks_use_half_of_their_cpus(
        self, ranks: float, disturbed: bool
    ) -> None:
        assert (OTHERS in reason(noise(others_s=17.0, ranks_s=ranks))) is disturbed

    @pytest.mark.parametrize(("delay", "disturbed"), [(2.0, False), (2.01, True)])
    def test_a_delay_counts_above_its_share_of_the_time_of_the_ranks(
        self, delay: float, disturbed: bool
    ) -> None:
        found = reason(noise(worst_delay_s=delay, steal_s=delay))
        assert ("a thread waited 25 % of the time, more than 25 %" in found) is disturbed

    @pytest.mark.parametrize(
        ("others", "steal", "disturbed"),
        [(1.0, 1.0, True), (2.0, 0.0, True), (0.0, 2.0, True), (1.0, 0.9, False)],
    )
    def test_others_and_a_hypervisor_explain_half_of_a_delay_together(
        self, others: float, steal: float, disturbed: bool
    ) -> None:
        found = reason(noise(worst_delay_s=4.0, others_s=others, steal_s=steal))
        assert found == (GOT + DELAY if disturbed else "")

    def test_a_delay_before_the_first_rank_ran_is_the_whole_time(self) -> None:
        found = reason(noise(rank_seconds=0.0, worst_delay_s=1.0, others_s=1.0))
        assert "a thread waited 100 % of the time, more than 25 %" in found

    @pytest.mark.fault("noise-of-no-time")
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"worst_steal_s": 1.0}, "a hypervisor withheld 100 % of a CPU, more than 5 %"),
            (
                {"others_s": 1.0, "others": (("a", 1.0),)},
                "others used 100 % of these CPUs, more than 10 %; "
                "other processes: a (100 % of a CPU)",
            ),
        ],
    )
    def test_samples_of_no_time_are_judged(self, changes: dict[str, Any], words: str) -> None:
        found = noise_reason([noise(seconds=0.0, **changes)], Stability(least_seconds=0))
        assert found == GOT + words

    def test_quiet_samples_of_no_time(self) -> None:
        """Control: no time was lost."""
        assert noise_reason([noise(seconds=0.0)], Stability(least_seconds=0)) == ""

    @pytest.mark.parametrize(("burst", "disturbed"), [(0.25, False), (0.26, True)])
    def test_a_burst_counts_above_its_share_of_a_second(
        self, burst: float, disturbed: bool
    ) -> None:
        assert bool(reason(noise(burst=burst, burst_others=1.0))) is disturbed

    @pytest.mark.parametrize(("others", "disturbed"), [(0.25, True), (0.24, False)])
    def test_others_explain_half_of_a_burst(self, others: float, disturbed: bool) -> None:
        found = reason(noise(burst=0.5, burst_others=others))
        assert found == (GOT + BURST if disturbed else "")

    @pytest.mark.parametrize(("seconds", "disturbed"), [(16.0, True), (15.99, False)])
    def test_a_step_is_judged_from_its_least_seconds_on(
        self, seconds: float, disturbed: bool
    ) -> None:
        assert bool(reason(noise(seconds=seconds, worst_steal_s=8.0))) is disturbed

    def test_all_causes_are_named(self) -> None:
        found = reason(
            noise(worst_steal_s=4.3, others_s=17.0, worst_delay_s=4.0, burst=0.5, burst_others=1.0)
        )
        assert found == f"{GOT}{STEAL}; {OTHERS}; {DELAY}; {BURST}"


class TestWords:
    def test_the_three_busiest_other_processes_are_named(self) -> None:
        others = (("a", 16.0), ("b", 8.0), ("c", 4.0), ("d", 2.0))
        assert reason(noise(others_s=17.0, others=others)) == (
            f"{GOT}{OTHERS}; other processes: a (100 % of a CPU), b (50 % of a CPU), "
            "c (25 % of a CPU)"
        )

    @pytest.mark.parametrize(
        ("count", "more"), [(2, ""), (3, ""), (4, "; and 1 more nodes"), (6, "; and 3 more nodes")]
    )
    def test_the_first_three_disturbed_nodes_are_named(self, count: int, more: str) -> None:
        nodes = [noise(host=f"n{number}", others_s=17.0) for number in range(count)]
        text = "the ranks got 50 % of their CPUs; " + OTHERS
        named = "; ".join(f"n{number}: {text}" for number in range(min(count, 3)))
        assert reason(*nodes, noise(host="quiet")) == f"disturbed: {named}{more}"

    def test_the_only_node_is_not_named(self) -> None:
        assert reason(noise(others_s=17.0)) == GOT + OTHERS

    def test_the_disturbed_one_of_two_nodes_is_named(self) -> None:
        assert reason(noise(), noise(host="n2", others_s=17.0)) == (
            f"disturbed: n2: the ranks got 50 % of their CPUs; {OTHERS}"
        )

    def test_no_node_is_no_disturbance(self) -> None:
        assert reason() == ""
