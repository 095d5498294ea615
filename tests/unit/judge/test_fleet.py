"""Like nodes held against each other: healthy ones are left alone, slow ones found and named."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run

from proofmark.judge.diagnosis.causes import causes, hypergeometric_tail
from proofmark.judge.diagnosis.drift import drift
from proofmark.judge.diagnosis.rma import as_csv
from proofmark.judge.fleet.critical_values import FEW, critical_value
from proofmark.judge.fleet.thresholds import FAMILY_LEVEL, fleet_limit, level_of_one
from proofmark.judge.judging import judge_and_write, judge_run
from proofmark.report.write import write_report

Rates = dict[str, float | list[float]]
MICROCODE = {"microcode\t: 0x2006a08": "microcode\t: 0x2000050"}


def healthy(nodes: int, seed: int, spread: float = 0.01) -> list[float]:
    return list(100 * (1 + spread * np.random.default_rng(seed).standard_normal(nodes)))


def rates(nodes: int, bad: Rates | None = None) -> Rates:
    """Return the rates of n000, n001, …; those named in `bad` as they are given there."""
    good = {f"n{number:03d}": round(value, 4) for number, value in enumerate(healthy(nodes, 1))}
    return {**good, **(bad or {})}


def binomial_bound(runs: int, level: float) -> int:
    """Return the most successes that `runs` trials of `level` have with 99.9 %."""
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
    def test_a_healthy_machine_is_flagged_as_seldom_as_the_level_says(
        self, spread: float, runs: int
    ) -> None:
        """8,305 nodes and 12 figures: any flag at all counts as one false alarm."""
        figures, level = 12, 0.05
        one = level_of_one(level, figures)
        numbers = np.random.default_rng(8305)
        alarms = 0
        for _ in range(runs):
            values = 100 * (1 + spread * numbers.standard_normal((figures, 8305)))
            alarms += any(
                row.min() < (fleet_limit(row, "higher", one).limit or 0.0) for row in values
            )
        assert alarms <= binomial_bound(runs, level)

    @pytest.mark.parametrize("runs", [1000, pytest.param(20_000, marks=pytest.mark.soak)])
    @pytest.mark.parametrize("nodes", [4, 5, 7, 12, 19, 20, 40, 132])
    def test_small_fleets_are_not_accused_more_often(self, nodes: int, runs: int) -> None:
        level = 0.02
        samples = 100 * (1 + 0.01 * np.random.default_rng(nodes).standard_normal((runs, nodes)))
        alarms = sum(
            bool(row.min() < (stick.limit or 0.0))
            for row in samples
            if (stick := fleet_limit(row, "higher", level)).critical * stick.spread > 0.01
        )
        assert alarms <= binomial_bound(runs, level)

    def test_mean_and_two_sigma_would_have_flagged_hundreds(self) -> None:
        values = np.array(healthy(8305, 1))
        assert (values < values.mean() - 2 * values.std()).sum() > 100
        limit = fleet_limit(values, "higher", level_of_one(FAMILY_LEVEL, 12)).limit
        assert limit is not None
        assert (values < limit).sum() == 0

    def test_a_node_that_is_better_than_the_others_is_never_flagged(self) -> None:
        values = [*healthy(100, 2), 500.0]
        limit = fleet_limit(values, "higher", 0.01).limit
        assert limit is not None
        assert min(values) > limit

    def test_less_than_one_percent_is_no_fault_however_like_the_others_are(self) -> None:
        stick = fleet_limit([100.0] * 50 + [99.2], "higher", 0.01)
        assert stick.limit == 99
        assert fleet_limit([100.0] * 50 + [98.9], "higher", 0.01).limit == 99


class TestPower:
    @pytest.mark.parametrize("trials", [20, pytest.param(200, marks=pytest.mark.soak)])
    def test_power_is_as_stated(self, trials: int) -> None:
        """−3, −5 and −10 percent at 1 and 1.5 percent spread, on 8,305 nodes."""
        one = level_of_one(FAMILY_LEVEL, 12)
        numbers = np.random.default_rng(3)
        for spread in (0.01, 0.015):
            for drop in (0.03, 0.05, 0.10):
                found, stated = 0, 0.0
                bad = 40
                for _ in range(trials):
                    values = 1 + spread * numbers.standard_normal(8305)
                    values[:bad] -= drop
                    stick = fleet_limit(values, "higher", one)
                    assert stick.limit is not None
                    found += int((values[:bad] < stick.limit).sum())
                    stated += stick.power_at(drop)
                measured, expected = found / trials / bad, stated / trials
                error = 4 * math.sqrt(max(expected * (1 - expected), 1e-3) / trials / bad)
                assert abs(measured - expected) < error, (spread, drop, measured, expected)

    @pytest.mark.parametrize("seed", range(20))
    def test_one_of_five_at_half_speed_is_found(self, seed: int) -> None:
        values = [*healthy(4, seed), 50.0]
        limit = fleet_limit(values, "higher", level_of_one(FAMILY_LEVEL, 12)).limit
        assert limit is not None
        assert 50 < limit < min(values[:4])

    def test_what_has_no_power_says_so(self) -> None:
        stick = fleet_limit([10.0, 60.0, 100.0, 140.0, 190.0], "higher", 1e-3)
        assert stick.limit is None
        assert "not even one that fails altogether stands out" in stick.powerless
        assert stick.power_at(0.5) == 0

    @pytest.mark.parametrize("nodes", [2, 3])
    def test_too_few_nodes_are_not_compared(self, nodes: int) -> None:
        stick = fleet_limit([100.0] * nodes, "higher", 0.01)
        assert stick.limit is None
        assert "too few" in stick.powerless

    def test_a_third_of_a_large_fleet_may_be_bad(self) -> None:
        values = [*healthy(200, 5), *([60.0] * 90)]
        limit = fleet_limit(values, "higher", 1e-3).limit
        assert limit is not None
        assert 60 < limit < 97

    def test_times_are_bad_upwards(self) -> None:
        values = [*healthy(100, 6), 130.0]
        limit = fleet_limit(values, "lower", 1e-3).limit
        assert limit is not None
        assert max(values[:-1]) < limit < 130

    @given(st.sampled_from([5, 12, 30, 500, 8305]), st.floats(1e-6, 0.2))
    def test_the_more_seldom_the_farther(self, nodes: int, level: float) -> None:
        assert critical_value(nodes, level / 2) >= critical_value(nodes, level)

    @pytest.mark.parametrize("level", [0, 1, -1, 2])
    def test_levels_are_probabilities(self, level: float) -> None:
        with pytest.raises(ValueError, match="no critical value"):
            critical_value(FEW, level)


class TestCauses:
    def nodes(self, **own: str) -> dict[str, dict[str, str]]:
        """200 nodes in racks of 20 with two BIOS versions that have nothing to do with racks."""
        return {
            f"n{number:03d}": {
                "rack": f"rack-{number // 20:02d}",
                "BIOS": "1.2" if number % 7 else "1.1",
                "kernel": "4.18",
            }
            for number in range(200)
        }

    def test_a_rack_is_named(self) -> None:
        bad = [f"n{number:03d}" for number in (41, 43, 44, 48, 52, 55, 120)]
        (cause,) = causes(bad, self.nodes())
        assert (cause.trait, cause.value, cause.bad, cause.nodes) == ("rack", "rack-02", 6, 20)
        assert cause.p < 1e-3
        assert "n120" not in cause.members

    def test_what_all_share_explains_nothing(self) -> None:
        assert not causes(["n001", "n050", "n122"], self.nodes())

    @pytest.mark.parametrize("bad", [[], ["n003"]])
    def test_one_bad_node_has_no_pattern(self, bad: list[str]) -> None:
        assert not causes(bad, self.nodes())

    def test_chance_is_seldom_given_a_name(self) -> None:
        numbers = np.random.default_rng(11)
        names = list(self.nodes())
        nodes = self.nodes()
        wrong = sum(
            bool(causes(list(numbers.choice(names, 12, replace=False)), nodes)) for _ in range(300)
        )
        assert wrong <= binomial_bound(300, 0.01)

    @given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
    def test_the_tail_is_that_of_counting(
        self, population: int, marked: int, drawn: int, least: int
    ) -> None:
        marked, drawn = min(marked, population), min(drawn, population)
        ways = sum(
            math.comb(marked, count) * math.comb(population - marked, drawn - count)
            for count in range(least, min(marked, drawn) + 1)
        )
        exact = ways / math.comb(population, drawn)
        found = hypergeometric_tail(least, population, marked, drawn)
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_drift_lists_what_is_unusual_and_leaves_out_serial_numbers() -> None:
    nodes = {
        f"n{number}": {"BIOS": "1.1" if number == 3 else "1.2", "serial": str(number), "os": "x"}
        for number in range(8)
    }
    (found,) = drift(nodes)
    assert (found.trait, found.usual, found.nodes) == ("BIOS", "1.2", 7)
    assert found.values == (("1.1", ("n3",)),)


class TestRun:
    """The whole way: outputs and probes of a run in; verdict, report and the vendor's list out."""

    @pytest.mark.fault("slow-nodes-of-a-rack")
    def test_slow_nodes_are_named_with_their_cause(self, tmp_path: Path) -> None:
        measured = rates(60, {"n022": 90.0, "n024": 89.0, "n025": 91.0, "n028": 85.0})
        changes = {host: MICROCODE for host in ("n022", "n024", "n025", "n028")}
        run = fleet_run(tmp_path, measured, changes=changes)
        verdict = judge_run(run)
        assert verdict.counts == {"PASS": 56, "FAIL": 4, "INVALID": 0, "UNJUDGED": 0}
        assert [node.host for node in verdict.bad.nodes] == ["n028", "n024", "n022", "n025"]
        named = {(cause.trait, cause.value) for cause in verdict.bad.causes}
        assert ("microcode", "0x2000050") in named
        assert ("rack", "rack-003") in named
        (different,) = verdict.bad.drift
        assert (different.trait, different.nodes) == ("microcode", 56)
        assert verdict.exit_code() == 1

    def test_control_healthy_nodes_pass(self, tmp_path: Path) -> None:
        verdict = judge_run(fleet_run(tmp_path, rates(60)))
        assert verdict.counts == {"PASS": 60, "FAIL": 0, "INVALID": 0, "UNJUDGED": 0}
        assert verdict.bad.nodes == ()
        (figure,) = verdict.fleet.figures
        assert figure.fleet_limit.power_at(0.10) > 0.9

    def test_three_nodes_are_not_judged_by_each_other(self, tmp_path: Path) -> None:
        verdict = judge_run(fleet_run(tmp_path, rates(3, {"n001": 10.0})))
        assert verdict.counts["UNJUDGED"] == 3
        assert "too few" in verdict.results[0].reason

    def test_other_hardware_is_no_fellow(self, tmp_path: Path) -> None:
        """Four nodes of another model, half as fast, are compared among themselves."""
        other: Rates = {f"n{number:03d}": 50.0 + number / 10 for number in range(4)}
        model = {"Gold 6148 CPU @ 2.40GHz": "Gold 6130 CPU @ 2.10GHz"}
        run = fleet_run(tmp_path, rates(30, other), changes={host: model for host in other})
        verdict = judge_run(run)
        assert verdict.counts["FAIL"] == 0
        assert sorted(figure.fleet_limit.nodes for figure in verdict.fleet.figures) == [4, 26]

    def test_a_failure_within_its_noise_asks_for_a_retest(self, tmp_path: Path) -> None:
        measured = rates(60, {"n007": [88.0, 91.0, 105.0], "n009": [80.0, 81.0, 80.5]})
        verdict = judge_run(fleet_run(tmp_path, measured))
        again = {result.record.node: result.retest for result in verdict.results}
        assert (again["n007"], again["n009"], again["n001"]) == (True, False, False)
        assert verdict.retest() == ("0001-fake/n007",)
        written = verdict.as_json()["retest"]
        assert written["command"] == "proofmark rerun runs/fleet 0001-fake/n007"

    def test_the_vendor_gets_nodes_serial_numbers_slots_and_evidence(self, tmp_path: Path) -> None:
        after = {"n022": {"mc2/dimm0/dimm_ce_count: 0": "mc2/dimm0/dimm_ce_count: 17"}}
        measured = rates(60, {"n022": 80.0, "n030": [92.0, 100.0, 93.0]})
        run = fleet_run(tmp_path, measured, after=after)
        verdict = judge_and_write(run)
        rows = list(csv.DictReader((run.folder / "rma.csv").read_text().splitlines()))
        assert {row["node"] for row in rows} == {"n022"}
        slot, whole = rows
        assert slot["slot"] == "CPU_SrcID#1_MC#0_Chan#0_DIMM#0"
        assert "corrected memory errors" in slot["evidence"]
        assert whole["serial_number"] == "S000007"
        assert "steps/0001-fake/n022" in whole["evidence"]
        page = write_report(run, verdict).read_text(encoding="utf-8")
        section = page.partition('id="bad-nodes"')[2].partition("</section>")[0]
        assert "n022" in section
        assert "corrected memory errors" in section
        order = ("attention", "judged", "plots", "claims", "bad-nodes", "provenance", "commands")
        places = [page.index(f'<section id="{name}"') for name in order]
        assert places == sorted(places)
        head = page.partition("</header>")[0]
        assert "n022, n030 (2 of 60, the worst first)" in head
        whole_text = json.loads((run.folder / "verdict.json").read_text())
        assert {each["claim"] for each in whole_text["claims"]} >= {"C1.1", "C5.4"}
        written = whole_text["fleet"]
        assert [node["node"] for node in written["nodes"] if not node["retest"]] == ["n022"]


def test_no_cell_of_the_list_is_a_formula() -> None:
    assert as_csv([("=cmd", "+1", "@x", "-2")]).splitlines()[1] == "'=cmd,'+1,'@x,'-2"
