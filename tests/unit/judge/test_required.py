"""Required metrics and exit codes, with boundary values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.kit import item, known_case
from tests.fixtures.messages import said
from tests.unit.judge.test_verdict import invalid, record, reference

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks, Required
from proofmark.judge.coverage import Coverage, Uncovered
from proofmark.judge.evidence import Evidence
from proofmark.judge.headline import NodeClass
from proofmark.judge.judging import judge
from proofmark.judge.verdict import Verdict, exit_code
from proofmark.plan.plan import Plan
from proofmark.records.columns import Record, Records
from proofmark.site.contract_document import ContractItem

REQUIRED = "fake rate on unknown hardware"
"""The name of the requirement: case, metric, class of nodes. No node has reported its hardware."""
UNCOVERED = Uncovered("x", said("x"))
NO_ROW = f"{REQUIRED}: no output has a matching row"
BROKEN = f"{REQUIRED}: broken"
KEPT = reference(at_least=0.5)
SIZE_2 = {"size": 2}


kit = known_case(sweep={"size": [1, 2]})


def verdict(
    kit: tuple[Plan, Benchmarks],
    records: Sequence[Record],
    references: Sequence[Reference] = (KEPT,),
    limits: Sequence[ContractItem] = (),
    **required: Any,
) -> Verdict:
    """Return the verdict of a suite that requires the rate of size 1, with changes."""
    plan, benchmarks = kit
    needs = Required(**{"case": "fake", "metrics": ["rate"], "where": {"size": 1}, **required})
    suite = benchmarks.suites["quick"].model_copy(update={"required_metrics": [needs]})
    case = benchmarks.cases["fake"].model_copy(update={"references": list(references)})
    update = {"cases": {"fake": case}, "suites": {"quick": suite}}
    changed = benchmarks.model_copy(update=update)
    return judge(Evidence("r", plan, Records.of(records), changed, limits))


class TestRequired:
    def test_a_judged_metric(self, kit: tuple[Plan, Benchmarks]) -> None:
        """Control: every condition holds."""
        assert verdict(kit, [record()]).required == ()

    def test_a_missed_reference_is_a_judgement(self, kit: tuple[Plan, Benchmarks]) -> None:
        assert verdict(kit, [record(value=1.0)]).required == ()

    def test_an_unjudged_figure(self, kit: tuple[Plan, Benchmarks]) -> None:
        (line,) = verdict(kit, [record()], []).required
        assert line.startswith(f"{REQUIRED}: ")
        assert line != NO_ROW

    def test_an_invalid_figure_and_its_reason(self, kit: tuple[Plan, Benchmarks]) -> None:
        (line,) = verdict(kit, [invalid()]).required
        assert line == BROKEN

    def test_a_figure_without_the_required_parameter_is_not_required(
        self, kit: tuple[Plan, Benchmarks]
    ) -> None:
        assert verdict(kit, [record(parameters={})]).required == (NO_ROW,)

    def test_a_figure_with_another_value_is_of_no_class(self, kit: tuple[Plan, Benchmarks]) -> None:
        assert verdict(kit, [record(2)]).required == ()

    def test_a_figure_of_another_metric_makes_the_class(self, kit: tuple[Plan, Benchmarks]) -> None:
        assert verdict(kit, [record(metric="time")]).required == (NO_ROW,)
        assert verdict(kit, [record(metric="time"), record()]).required == ()

    def test_a_figure_of_another_case_makes_no_class(self, kit: tuple[Plan, Benchmarks]) -> None:
        assert verdict(kit, [record(case="other")]).required == ()

    def test_the_sensors_of_a_node_are_no_class_of_another_metric(
        self, kit: tuple[Plan, Benchmarks]
    ) -> None:
        """A job of two nodes has the sensors of each of them."""
        sensed = record(metric="node_power", parameters={"size": 1, "sensor": "bmc"}, node="n1")
        pair = record(node="n[1-2]")
        assert verdict(kit, [pair, sensed]).required == ()
        (line,) = verdict(kit, [pair, sensed], metrics=["node_power"]).required
        assert line.startswith("fake node_power on unknown hardware: ")

    def test_all_traits_can_be_required(self, kit: tuple[Plan, Benchmarks]) -> None:
        where = {"size": 1, "benchmark": "FAKE", "placement": ""}
        assert verdict(kit, [record()], where=where).required == ()
        assert len(verdict(kit, [record()], [], where=where).required) == 1

    def test_each_mode_is_a_class(self, kit: tuple[Plan, Benchmarks]) -> None:
        both = [record(), record(mode="flat", valid=False, reason=said("broken"), step="0009-fake")]
        (line,) = verdict(kit, both).required
        assert line == f"{REQUIRED}; mode flat: broken"

    @pytest.mark.parametrize(
        ("valid", "expected"),
        [((True, False), ()), ((False, False), (BROKEN,))],
    )
    def test_an_emulated_figure_must_be_valid(
        self, kit: tuple[Plan, Benchmarks], valid: tuple[bool, ...], expected: tuple[str, ...]
    ) -> None:
        records = [
            record(
                node=f"n{n}", origin="emulated", valid=each, reason=said("" if each else "broken")
            )
            for n, each in enumerate(valid)
        ]
        assert verdict(kit, records, []).required == expected

    def test_the_name_of_a_class(self) -> None:
        one = NodeClass("Xeon", 1, "current", ())
        assert str(one) == "Xeon"
        assert str(replace(one, nodes=2, mode="flat", part=("memory ddr", "distance 1"))) == (
            "2 nodes of Xeon; mode flat; memory ddr; distance 1"
        )


class TestLimits:
    """A limit of the contract needs a planned step that can have a figure for it."""

    @staticmethod
    def limit(**changes: Any) -> ContractItem:
        fields = {"case": "fake", "metric": "rate", "source": "c", "value": 1, "at_least": 1}
        return item(**{**fields, **changes})

    @pytest.mark.parametrize(
        "changes",
        [
            {"where": {"size": 3}},
            {"where": {"unknown": 1}},
            {"metric": "unknown"},
            {"mode": "flat"},
            {"system": "other"},
            {"case": "other"},
        ],
    )
    def test_a_limit_that_no_step_of_the_plan_can_have_a_figure_for(
        self, kit: tuple[Plan, Benchmarks], changes: dict[str, Any]
    ) -> None:
        both = [record(), record(2)]
        assert verdict(kit, both, limits=[self.limit(**changes)]).contract == ()

    def test_a_limit_of_one_of_two_steps(self, kit: tuple[Plan, Benchmarks]) -> None:
        both = [record(), record(2)]
        limits = [
            self.limit(where={"size": 3}),
            self.limit(where={"size": 2}, number="2"),
            self.limit(number="3"),
        ]
        found = verdict(kit, both, limits=limits).contract
        assert [(each.name, each.compared) for each in found] == [
            ("2 an item", 1),
            ("3 an item", 2),
        ]
        assert all(each.not_evaluated == () for each in found)

    def test_a_row_is_missing_in_the_step_that_can_have_it(
        self, kit: tuple[Plan, Benchmarks]
    ) -> None:
        time = record(metric="time")
        one, two = self.limit(where={"size": 1}), self.limit(where={"size": 2})
        found = verdict(kit, [time, record(2)], limits=[one, two]).contract
        reason = "the output of 0001-fake-1 has no row for it: localhost"
        assert [each.not_evaluated for each in found] == [(reason,), ()]


class TestExitCode:
    COVERED = Coverage(expected=1, measured=1, duplicate=0, missing=())

    @pytest.mark.parametrize(
        ("counts", "unmet", "enough", "code"),
        [
            ({"PASS": 1}, (), False, 0),
            ({"UNJUDGED": 1}, (), False, 4),
            ({"UNJUDGED": 1}, (), True, 0),
            ({"UNJUDGED": 1}, ("x",), True, 4),
            ({"FAIL": 1, "PASS": 9}, ("x",), True, 1),
            ({"INVALID": 1, "FAIL": 1}, ("x",), True, 2),
        ],
    )
    def test_the_worst_counts(
        self, counts: dict[str, int], unmet: tuple[str, ...], enough: bool, code: int
    ) -> None:
        assert exit_code(counts, self.COVERED, unmet, enough) == code

    @pytest.mark.parametrize("changes", [{"measured": 0}, {"duplicate": 1}])
    def test_the_coverage_counts_before_a_failure(self, changes: dict[str, Any]) -> None:
        assert exit_code({"FAIL": 1}, replace(self.COVERED, **changes), ()) == 2

    def test_nothing_is_rehearsed_unless_it_is_stated(self, kit: tuple[Plan, Benchmarks]) -> None:
        results = verdict(kit, [record()], []).results
        counts = {"PASS": 0, "FAIL": 0, "INVALID": 0, "UNJUDGED": 1}
        assert Verdict("r", counts, self.COVERED, results).exit_code() == 4

    @pytest.mark.parametrize(
        ("counts", "not_run", "code"),
        [
            ({"PASS": 1, "UNJUDGED": 0}, (), 0),
            ({"PASS": 1, "UNJUDGED": 1}, (), 4),
            ({"PASS": 1, "UNJUDGED": 0}, (UNCOVERED,), 4),
            ({"PASS": 1, "UNJUDGED": 1, "FAIL": 1}, (UNCOVERED,), 1),
        ],
    )
    def test_strict_accepts_only_what_was_judged(
        self,
        kit: tuple[Plan, Benchmarks],
        counts: dict[str, int],
        not_run: tuple[Uncovered, ...],
        code: int,
    ) -> None:
        results = verdict(kit, [record()]).results
        given = Verdict("r", counts, replace(self.COVERED, not_run=not_run), results)
        assert given.exit_code(strict=True) == code
        assert given.exit_code() == (1 if code == 1 else 0)


class TestContract:
    """The items of the contract that a run measures replace the metrics of the suite."""

    OTHER = (record(2), record(2, step="0002-fake-2", node="n2"))

    @pytest.mark.fault("required-beside-the-contract")
    def test_what_the_parties_agreed_decides(self, kit: tuple[Plan, Benchmarks]) -> None:
        """The suite requires size 1, and the contract has size 2."""
        measured = [record(), *self.OTHER]
        agreed = item(case="fake", metric="rate", value=1, unit="MB/s", at_least=1, where=SIZE_2)
        found = verdict(kit, measured, [], [agreed])
        assert (found.required, found.unmet) == ((), ())
        assert found.counts["PASS"] > 0

    @pytest.mark.parametrize("changes", [{"severity": "minor"}, {"where": {"size": 3}}])
    def test_control_without_a_mandatory_item_the_suite_decides(
        self, kit: tuple[Plan, Benchmarks], changes: dict[str, Any]
    ) -> None:
        fields: dict[str, Any] = {"value": 1, "unit": "MB/s", "at_least": 1, "where": SIZE_2}
        other = item(case="fake", metric="rate", **{**fields, **changes})
        found = verdict(kit, [record(), *self.OTHER], [], [other])
        assert [each.code for each in found.required] == ["required-open"]

    def test_an_item_that_was_not_measured_is_open(self, kit: tuple[Plan, Benchmarks]) -> None:
        agreed = item(case="fake", metric="rate", value=1, unit="MB/s", at_least=1, where=SIZE_2)
        found = verdict(kit, [record()], [], [agreed])
        assert found.required == ()
        assert found.exit_code() == 2, "the run is not complete"
