"""Comparison of like nodes: healthy nodes are not flagged, slow nodes are, with their cause."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import own_number, written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import examples
from tests.fixtures.messages import said
from tests.fixtures.report_run import page_of
from tests.folders import PROBES

from proofmark.judge.diagnosis.bad_nodes import BadNode, as_csv, causes, drift, rma
from proofmark.judge.fleet.critical_values import (
    FAMILY_LEVEL,
    MIN_NODES_OF_MAD,
    critical_value,
    fleet_limit,
    level_of_one,
    untied,
)
from proofmark.judge.fleet.populations import separating
from proofmark.judge.judging import judge_run
from proofmark.site.node.counters import CounterChange
from proofmark.site.node.facts import parse_probe
from proofmark.site.partition import Partition

Rates = dict[str, float | list[float]]
MICROCODE = {"microcode\t: 0x2006a08": "microcode\t: 0x2000050"}


def healthy(nodes: int, seed: int, spread: float = 0.01) -> list[float]:
    return list(100 * (1 + spread * np.random.default_rng(seed).standard_normal(nodes)))


def rates(nodes: int, bad: Rates | None = None) -> Rates:
    """Return the rates of n000, n001, … around 100; nodes in `bad` have the rates given there."""
    good = {f"n{number:03d}": round(value, 4) for number, value in enumerate(healthy(nodes, 1))}
    return {**good, **(bad or {})}


def binomial_bound(runs: int, level: float) -> int:
    """Return the 99.9 % quantile of the binomial distribution: successes in `runs` of `level`."""
    chance = total = (1 - level) ** runs
    count = 0
    while total < 0.999:
        chance *= (runs - count) / (count + 1) * level / (1 - level)
        count += 1
        total += chance
    return count


class TestFalseAlarms:
    @pytest.mark.parametrize("runs", [60, pytest.param(2000, marks=pytest.mark.soak)])
    @pytest.mark.parametrize("spread", [0.01, 0.015])
    def test_a_healthy_machine_is_flagged_with_the_stated_probability(
        self, spread: float, runs: int
    ) -> None:
        """8,305 nodes and 12 figures: a run with any flagged node is a false alarm."""
        figures, level = 12, 0.05
        one = level_of_one(level, figures)
        generator = np.random.default_rng(8305)
        alarms = 0
        for _ in range(runs):
            values = 100 * (1 + spread * generator.standard_normal((figures, 8305)))
            alarms += any(
                row.min() < (fleet_limit(row, "higher", one).limit or 0.0) for row in values
            )
        assert alarms <= binomial_bound(runs, level)

    @pytest.mark.parametrize("runs", [400, pytest.param(20_000, marks=pytest.mark.soak)])
    @pytest.mark.parametrize("nodes", [4, 5, 7, 12, 19, 20, 40, 132])
    def test_few_nodes_are_not_flagged_more_often(self, nodes: int, runs: int) -> None:
        level = 0.02
        samples = 100 * (1 + 0.01 * np.random.default_rng(nodes).standard_normal((runs, nodes)))
        alarms = sum(
            bool(row.min() < (limit.limit or 0.0))
            for row in samples
            if (limit := fleet_limit(row, "higher", level)).critical * limit.spread > 0.01
        )
        assert alarms <= binomial_bound(runs, level)

    def test_a_faster_node_is_never_flagged(self) -> None:
        values = [*healthy(100, 2), 500.0]
        limit = fleet_limit(values, "higher", 0.01).limit
        assert limit is not None
        assert min(values) > limit

    def test_the_limit_is_two_percent_off_if_the_spread_is_small(self) -> None:
        assert fleet_limit([100.0] * 50 + [99.2], "higher", 0.01).limit == 98

    @pytest.mark.parametrize("nodes", [6, 12, 48])
    def test_one_step_of_the_printed_values_is_no_outlier(self, nodes: int) -> None:
        """Whole milliseconds: 40 and 41 ms for the same data. And two digits: 0.52 and 0.53 us."""
        data = 1_048_576
        rates = fleet_limit([data / 0.040] * (nodes - 1) + [data / 0.041], "higher", 1e-3)
        assert not rates.missed(data / 0.041)
        assert rates.spread > 0
        times = fleet_limit([0.52] * (nodes - 1) + [0.53], "lower", 1e-3)
        assert not times.missed(0.53)
        assert times.missed(0.80)
        assert fleet_limit([data / 0.040] * (nodes - 1) + [data / 0.1], "higher", 1e-3).missed(
            data / 0.1
        )


class TestPower:
    @pytest.mark.parametrize("trials", [20, pytest.param(200, marks=pytest.mark.soak)])
    def test_the_power_is_as_stated(self, trials: int) -> None:
        """The drop that is stated as detectable is flagged in 95 of 100 cases, on 8,305 nodes."""
        one = level_of_one(FAMILY_LEVEL, 12)
        generator = np.random.default_rng(3)
        for spread in (0.01, 0.015):
            flagged, bad = 0, 40
            for _ in range(trials):
                values = 1 + spread * generator.standard_normal(8305)
                limit = fleet_limit(values, "higher", one)
                assert limit.limit is not None
                values[:bad] -= limit.detectable
                flagged += int((values[:bad] < limit.limit).sum())
            error = 4 * math.sqrt(0.95 * 0.05 / trials / bad)
            assert abs(flagged / trials / bad - 0.95) < error, spread

    def test_one_of_five_nodes_at_half_speed_is_flagged(self) -> None:
        for seed in range(20):
            values = [*healthy(4, seed), 50.0]
            limit = fleet_limit(values, "higher", level_of_one(FAMILY_LEVEL, 12)).limit
            assert limit is not None
            assert 50 < limit < min(values[:4])

    def test_a_test_without_power_has_no_limit_and_a_reason(self) -> None:
        limit = fleet_limit([10.0, 60.0, 100.0, 140.0, 190.0], "higher", 1e-3)
        assert limit.limit is None
        assert "even a node that fails completely would not be detected" in limit.powerless

    def test_three_nodes_are_too_few_for_a_limit(self) -> None:
        limit = fleet_limit([100.0] * 3, "higher", 0.01)
        assert limit.limit is None
        assert "too few" in limit.powerless
        assert fleet_limit([100.0, 99.0, 98.0], "higher", 0.01).powerless.fields["gap"] == "2"
        for nothing in ([0.0] * 3, []):
            assert fleet_limit(nothing, "higher", 0.01).powerless.fields["gap"] == "0"

    @pytest.mark.parametrize(
        ("values", "spread"),
        [
            ([1, 5, 1, 5, 1], [2 / 3, 1, 4 / 3, 4.75, 5.25]),
            ([1, 2, 3], [1, 2, 3]),
            ([2, 2], [2, 2]),
            ([0.0, 0.0, 0.0, 0.0, 1.0], [0, 0, 0.125, 0.375, 1]),  # no value is negative
        ],
    )
    def test_equal_values_are_spread_over_what_was_rounded_to_them(
        self, values: list[float], spread: list[float]
    ) -> None:
        assert untied(np.array(values, dtype=float)).tolist() == pytest.approx(spread)

    def test_the_limit_holds_if_a_third_of_a_large_fleet_is_bad(self) -> None:
        values = [*healthy(200, 5), *([60.0] * 90)]
        limit = fleet_limit(values, "higher", 1e-3).limit
        assert limit is not None
        assert 60 < limit < 97

    def test_a_long_time_is_flagged(self) -> None:
        values = [*healthy(100, 6), 130.0]
        limit = fleet_limit(values, "lower", 1e-3).limit
        assert limit is not None
        assert max(values[:-1]) < limit < 130

    @examples(0.4)
    @given(st.sampled_from([5, 12, 30, 500, 8305]), st.floats(1e-6, 0.2))
    def test_a_lower_level_has_a_greater_critical_value(self, nodes: int, level: float) -> None:
        assert critical_value(nodes, level / 2) >= critical_value(nodes, level)

    def test_the_level_is_that_of_an_inventory_that_states_none(self) -> None:
        assert Partition.model_fields["family_level"].default == FAMILY_LEVEL

    @pytest.mark.parametrize("level", [0, 1])
    def test_a_level_is_between_0_and_1(self, level: float) -> None:
        with pytest.raises(ValueError, match="no critical value"):
            critical_value(MIN_NODES_OF_MAD, level)


class TestCauses:
    def nodes(self) -> dict[str, dict[str, str]]:
        """Return the traits of 200 nodes in racks of 20, with two BIOS versions in all racks."""
        return {
            f"n{number:03d}": {
                "rack": f"rack-{number // 20:02d}",
                "BIOS": "1.2" if number % 7 else "1.1",
                "kernel": "4.18",
            }
            for number in range(200)
        }

    def test_the_rack_of_the_bad_nodes_is_named(self) -> None:
        bad = [f"n{number:03d}" for number in (41, 43, 44, 48, 52, 55, 120)]
        (cause,) = causes(bad, self.nodes())
        assert (cause.trait, cause.value, cause.bad, cause.nodes) == ("rack", "rack-02", 6, 20)
        assert cause.p < 1e-3
        assert "n120" not in cause.members

    def test_a_trait_of_all_nodes_is_no_cause(self) -> None:
        assert not causes(["n001", "n050", "n122"], self.nodes())

    @pytest.mark.parametrize("bad", [[], ["n003"]])
    def test_a_single_bad_node_has_no_cause(self, bad: list[str]) -> None:
        assert not causes(bad, self.nodes())

    def test_random_bad_nodes_rarely_have_a_cause(self) -> None:
        generator = np.random.default_rng(11)
        names = list(self.nodes())
        nodes = self.nodes()
        false_alarms = sum(
            bool(causes(list(generator.choice(names, 12, replace=False)), nodes))
            for _ in range(300)
        )
        assert false_alarms <= binomial_bound(300, 0.01)


def test_drift_lists_rare_values_and_leaves_out_serial_numbers() -> None:
    nodes = {
        f"n{number}": {"BIOS": "1.1" if number == 3 else "1.2", "serial": str(number), "os": "x"}
        for number in range(8)
    }
    (bios,) = drift(nodes)
    assert (bios.trait, bios.usual, bios.nodes) == ("BIOS", "1.2", 7)
    assert bios.values == (("1.1", ("n3",)),)


def test_drift_lists_the_value_of_the_fewest_nodes_first() -> None:
    versions = ("1.0", "1.0", "1.2", "1.1", *["2.0"] * 6)
    (bios,) = drift({f"n{number}": {"BIOS": each} for number, each in enumerate(versions)})
    assert bios.values == (("1.1", ("n3",)), ("1.2", ("n2",)), ("1.0", ("n0", "n1")))


@pytest.mark.parametrize(
    ("slots", "serial", "expected"),
    [
        (("A1", "B1"), "M2", "M2"),
        (("A1", "B1"), None, "S1"),
        (("A1", "C1"), "M2", "S1"),
        ((), None, "not reported"),
    ],
)
def test_a_slot_has_the_serial_number_of_its_module_or_that_of_the_node(
    slots: Sequence[str], serial: str | None, expected: str
) -> None:
    node = parse_probe((PROBES / "skl-2x6148.txt").read_text(encoding="utf-8"), "probe")
    serials = {"A1": "M1", "B1": serial, "C1": serial}
    dimms = tuple(
        node.dimms[0].model_copy(update={"locator": slot, "serial": serials[slot]})
        for slot in slots
    )
    firmware = {"chassis_serial": "S2", "product_serial": "S1"}
    facts = node.model_copy(update={"dimms": dimms, "firmware": firmware})
    change = CounterChange(
        name="edac",
        before="0",
        after="9",
        difference=9,
        place="B1",
        invalid=False,
        meaning=said("errors"),
    )
    bad = BadNode("n1", (), retest=False, causes=(), counters=(change,))
    assert rma([bad], {"n1": facts} if slots else {}) == [("n1", expected, "B1", str(change))]
    assert rma([replace(bad, retest=True)], {"n1": facts}) == []


@pytest.mark.parametrize(("misfits", "is_named"), [(0, True), (1, True), (2, False)])
def test_a_place_separates_two_levels_if_it_explains_four_fifths(
    misfits: int, *, is_named: bool
) -> None:
    names = [f"n{number:02}" for number in range(16)]
    slow = np.arange(16) < 8
    racks = {
        name: {"rack": "a" if number < 8 - misfits else "b"} for number, name in enumerate(names)
    }
    found = separating(names, slow, racks)
    assert (found is not None and found[0] == "rack") == is_named


class TestRun:
    """From the outputs and probes of a run to verdict, report and the vendor's list."""

    @pytest.mark.fault("slow-nodes-of-a-rack")
    def test_slow_nodes_are_named_with_their_cause(self, tmp_path: Path) -> None:
        measured = rates(
            60, {"n022": [90.0] * 3, "n024": [89.0] * 3, "n025": [91.0] * 3, "n028": [85.0] * 3}
        )
        changes = {host: MICROCODE for host in ("n022", "n024", "n025", "n028")}
        run = fleet_run(tmp_path, measured, changes=changes)
        verdict = judge_run(run)
        assert verdict.counts == {"PASS": 0, "FAIL": 4, "INVALID": 0, "UNJUDGED": 56}
        assert [node.host for node in verdict.bad.nodes] == ["n028", "n024", "n022", "n025"]
        causes = {(cause.trait, cause.value) for cause in verdict.bad.causes}
        assert ("microcode", "0x2000050") in causes
        assert ("rack", "rack-003") in causes
        (different,) = verdict.bad.drift
        assert (different.trait, different.nodes) == ("microcode", 56)
        assert verdict.exit_code() == 1

    def test_control_healthy_nodes_are_not_flagged(self, tmp_path: Path) -> None:
        verdict = judge_run(fleet_run(tmp_path, rates(32)))
        assert verdict.counts == {"PASS": 0, "FAIL": 0, "INVALID": 0, "UNJUDGED": 32}
        assert verdict.exit_code() == 4
        assert verdict.bad.nodes == ()
        (figure,) = verdict.fleet.figures
        assert figure.fleet_limit.detectable < 0.10

    def test_figures_of_three_nodes_are_unjudged(self, tmp_path: Path) -> None:
        verdict = judge_run(fleet_run(tmp_path, rates(3, {"n001": 10.0})))
        assert verdict.counts["UNJUDGED"] == 3
        assert "too few" in verdict.results[0].reason

    def test_nodes_of_other_hardware_are_not_compared(self, tmp_path: Path) -> None:
        """Eight nodes of another model at half speed are compared with each other."""
        other: Rates = {f"n{number:03d}": 50.0 + number / 10 for number in range(8)}
        model = {"Gold 6148 CPU @ 2.40GHz": "Gold 6130 CPU @ 2.10GHz"}
        run = fleet_run(tmp_path, rates(30, other), changes={host: model for host in other})
        verdict = judge_run(run)
        assert verdict.counts["FAIL"] == 0
        assert sorted(figure.fleet_limit.nodes for figure in verdict.fleet.figures) == [8, 22]
        assert [each.code for each in verdict.required if each.code == "order-unknown"]

    def test_a_failure_within_its_noise_is_marked_for_retest(self, tmp_path: Path) -> None:
        measured = rates(32, {"n007": [88.0, 91.0, 105.0], "n009": [80.0, 81.0, 80.5]})
        verdict = judge_run(fleet_run(tmp_path, measured))
        retest = {result.record.node: result.retest for result in verdict.results}
        assert (retest["n007"], retest["n009"], retest["n001"]) == (True, False, False)
        assert verdict.retest() == ("0001-fake/n007",)
        written = verdict.as_json()["retest"]
        assert written["command"] == "proofmark rerun runs/fleet 0001-fake/n007"

    def test_the_list_for_the_vendor_has_serial_numbers_slots_and_evidence(
        self, tmp_path: Path
    ) -> None:
        after = {"n022": {"mc2/dimm0/dimm_ce_count: 0": "mc2/dimm0/dimm_ce_count: 17"}}
        measured = rates(32, {"n022": [80.0, 80.1, 80.2], "n030": [92.0, 100.0, 93.0]})
        run = fleet_run(tmp_path, measured, after=after)
        verdict = written_verdict(run)
        rows = list(csv.DictReader((run.folder / "rma.csv").read_text().splitlines()))
        assert {row["node"] for row in rows} == {"n022"}
        slot, node = rows
        assert slot["slot"] == "CPU_SrcID#1_MC#0_Chan#0_DIMM#0"
        assert "corrected memory errors" in slot["evidence"]
        assert node["serial_number"] == own_number("n022", "S")
        assert "workdir/steps/0001-fake/n022" in node["evidence"]
        page = page_of(run, verdict)
        section = page.partition('id="bad-nodes"')[2].partition("</section>")[0]
        assert "n022" in section
        assert "corrected memory errors" in section
        order = ("attention", "judged", "bad-nodes", "provenance", "commands")
        places = [page.index(f'<section id="{name}"') for name in order]
        assert places == sorted(places)
        head = page.partition("</header>")[0]
        assert "n022 (1 of 32, the worst first)" in head
        written = json.loads((run.folder / "verdict.json").read_text())
        bad = written["fleet"]["nodes"]
        assert [entry["node"] for entry in bad if not entry["retest"]] == ["n022"]


def test_no_cell_of_the_csv_is_a_formula() -> None:
    head = "node,serial_number,slot,evidence\n"
    assert as_csv([("=cmd", "+a", "@x", "-2")]) == f"{head}'=cmd,'+a,'@x,-2\n"
