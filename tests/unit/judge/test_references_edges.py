"""Tests the judgement of one figure by one reference with boundary values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.fixtures.messages import said
from tests.unit.judge.test_accepting import healthy
from tests.unit.judge.test_verdict import record, reference

from proofmark.cases.reference import Against
from proofmark.common.message import NOTHING
from proofmark.judge.aggregate import aggregate
from proofmark.judge.references.figure_comparison import Comparison, Figure
from proofmark.judge.references.judgement import Judgement, applies, uses_all_cores
from proofmark.judge.references.measured_references import Figures
from proofmark.records.columns import Record, Records
from proofmark.site.node.facts import NodeFacts


def judgement(
    of: Record,
    others: Sequence[Record] = (),
    nodes: Mapping[str, NodeFacts] | None = None,
    repeats: Mapping[int, float] | None = None,
    **changes: Any,
) -> Judgement:
    """Return the judgement of `of` by a reference with `changes`, in a run with `others`."""
    figures = Figures(aggregate(Records.of([of, *others])))
    value = of.value
    assert value is not None
    figure = Figure(of, value, repeats=repeats or {})
    return Comparison(figures, nodes or {}).judge(figure, reference(**changes))


def against(of: Record, *others: Record, **changes: Any) -> Judgement:
    """Return the judgement of `of` against the metric ``time`` of others."""
    wanted = Against.model_validate({"metric": "time", **changes})
    return judgement(of, others, value=None, against=wanted)


def time(value: float | None = 50.0, **changes: Any) -> Record:
    """Return a possible counterpart; its unit is that of the judged figure."""
    return record(value=value, **{"metric": "time", "step": "0009-fake", **changes})


class TestLimits:
    @pytest.mark.parametrize(
        ("value", "outcome", "verb"),
        [
            (89.9, "FAIL", "is not"),
            (90, "PASS", "is"),
            (110, "PASS", "is"),
            (110.1, "FAIL", "is not"),
        ],
    )
    def test_the_outcome_and_the_reason_agree(self, value: float, outcome: str, verb: str) -> None:
        found = judgement(record(value=value), at_least=0.9, at_most=1.1)
        assert found.outcome == outcome
        ratio = f"{value / 100:.3g} × the expected figure (100 MB/s)"
        assert found.reason == (f"{ratio} {verb} at least 0.9 and at most 1.1")

    @pytest.mark.parametrize(
        ("origin", "outcome"), [("predicted", "UNJUDGED"), ("measured", "FAIL")]
    )
    @pytest.mark.parametrize("limit", [{"at_least": 2}, {"at_least": None, "at_most": 0.5}])
    def test_a_missed_prediction_is_unjudged(
        self, limit: dict[str, Any], origin: str, outcome: str
    ) -> None:
        found = judgement(record(origin=origin), **limit)
        assert (found.outcome, found.evaluated) == (outcome, True)
        assert " is not at " in found.reason

    def test_a_failure_that_is_about_no_limit_is_not_within_noise(self) -> None:
        failed = Judgement("peers", "s", "FAIL", NOTHING, 1.0, None, None, None)
        assert failed.within_noise([1.0, 1.0]) is False
        assert replace(failed, outcome="UNJUDGED").within_noise([1.0, 1.0]) is True


class TestRepeats:
    def test_repeats_whose_reference_is_0_are_not_paired(self) -> None:
        zero = time(0.0, repeat=3, step="0003-x")
        others = [time(50.0, repeat=1, step="0001-x"), time(25.0, repeat=2, step="0002-x"), zero]
        given = {1: 100.0, 2: 100.0, 3: 100.0}
        wanted = Against(metric="time")
        found = judgement(record(), others, repeats=given, value=None, against=wanted)
        assert found.ratios == (2.0, 4.0)
        assert found.ratio == 3.0
        assert found.reason.startswith("median of 2 repeats: 3 × time (25 MB/s) is ")

    def test_a_single_common_repeat_is_not_paired(self) -> None:
        wanted = Against(metric="time")
        found = judgement(record(), [time()], repeats={1: 10.0}, value=None, against=wanted)
        assert (found.ratios, found.ratio) == ((), 2.0)

    def test_the_order_of_the_pairs_is_that_of_the_repeats(self) -> None:
        others = [time(float(n), repeat=n, step=f"{n:04d}-x") for n in (2, 1)]
        given = {2: 2.0, 1: 2.0}
        wanted = Against(metric="time", times=2)
        found = judgement(record(), others, repeats=given, value=None, against=wanted)
        assert found.ratios == (1.0, 0.5)


class TestCounterpart:
    def test_the_median_of_all_that_fit(self) -> None:
        others = [time(value, step=f"{value}-x") for value in (10.0, 50.0, 70.0)]
        assert against(record(), *others).value == 50

    def test_the_unit_of_the_figure_counts(self) -> None:
        assert against(record(), time(0.05, unit="GB/s")).value == pytest.approx(50)
        found = against(record(), time(unit="s"))
        assert (found.outcome, found.reason) == ("UNJUDGED", "time was not measured")

    def test_an_invalid_figure_is_none(self) -> None:
        broken = time(valid=False, reason=said("broken"))
        assert against(record(), broken).reason == "time was not measured"

    def test_a_figure_without_a_value_is_none(self) -> None:
        assert against(record(), time(None)).reason == "time was not measured"

    @pytest.mark.parametrize("changes", [{"node": "n2"}, {"mode": "flat"}, {"metric": "other"}])
    def test_a_figure_of_another_node_mode_or_metric_is_none(self, changes: dict[str, Any]) -> None:
        assert against(record(), time(**changes)).value is None

    @pytest.mark.parametrize("changes", [{"placement": "spread"}, {"benchmark": "OTHER"}])
    def test_the_traits_are_those_of_the_figure_if_the_case_is_the_same(
        self, changes: dict[str, Any]
    ) -> None:
        assert against(record(), time(**changes)).value is None
        of_other = time(case="other", **changes)
        assert against(record(), of_other, case="other").value == 50

    def test_where_replaces_the_traits_of_the_figure(self) -> None:
        other = time(parameters={"size": 2})
        assert against(record(), other).value is None
        found = against(record(), other, where={"size": 2}, times=2)
        assert (found.value, found.ratio) == (100, 1)
        assert found.reason == "1 × time at size 2 × 2 (100 MB/s) is at least 0.9"

    def test_threads_that_no_step_recorded_are_one(self) -> None:
        found = against(record(), time(), times="{2 * threads}")
        assert (found.value, found.ratio) == (100, 1)

    def test_all_changed_traits_are_named(self) -> None:
        found = against(record(), time(parameters={"size": 2}), where={"size": 2, "x": 3})
        assert " × time at size 2 at x 3 (50 MB/s) " in found.reason

    def test_a_trait_that_only_one_of_the_two_has_is_ignored(self) -> None:
        one, other = {"size": 1, "x": 1}, {"size": 1, "y": 2}
        assert against(record(parameters=one), time(parameters=other)).value == 50

    def test_a_factor_of_1_is_not_named(self) -> None:
        assert " time (50 MB/s) " in against(record(), time()).reason

    def test_a_counterpart_of_0(self) -> None:
        found = against(record(), time(0.0))
        assert (found.reason, found.value, found.ratio) == ("time is 0", 0, None)


class TestRule:
    RULE: ClassVar[dict[str, Any]] = {"value": None, "rule": "rpeak_nominal"}

    def test_a_derived_value_of_0_is_named(self) -> None:
        stopped = healthy().model_copy(update={"base_hz": 0})
        found = judgement(record(unit="Gflops"), nodes={"n1": stopped}, **self.RULE)
        assert (found.outcome, found.reason) == ("UNJUDGED", "rpeak_nominal is 0")

    def test_the_source_of_the_inputs_is_named(self) -> None:
        found = judgement(record(unit="Gflops"), nodes={"n1": healthy()}, **self.RULE)
        assert found.source.startswith("s; 40 cores × 32 flop/cycle × 2.4 GHz; ")

    def test_a_derived_value_is_in_the_unit_of_the_figure(self) -> None:
        found = judgement(record(unit="Mflops"), nodes={"n1": healthy()}, **self.RULE)
        assert found.value == pytest.approx(40 * 32 * 2400)

    def test_a_missing_fact_is_the_whole_reason(self) -> None:
        unknown = healthy().model_copy(update={"base_hz": None})
        found = judgement(record(unit="Gflops"), nodes={"n1": unknown}, **self.RULE)
        assert found.reason.startswith("the nominal frequency of ")
        assert (found.value, found.source) == (None, "s")


class TestApplies:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"metric": "time"}, False),
            ({"system": "local"}, True),
            ({"system": "other"}, False),
            ({"mode": "current"}, True),
            ({"mode": "flat"}, False),
            ({"where": {"size": 1, "benchmark": "FAKE", "placement": ""}}, True),
            ({"where": {"size": 1, "placement": "close"}}, False),
            ({"where": {"unknown": 1}}, False),
        ],
    )
    def test_all_conditions_must_hold(self, changes: dict[str, Any], expected: bool) -> None:
        assert applies(reference(**changes), record()) is expected

    @pytest.mark.parametrize(
        ("kind", "label", "where", "expected"),
        [
            ("contract", "short", {}, False),
            ("expected", "short", {}, False),
            ("floor", "short", {}, True),
            ("contract", "steady", {}, True),
            ("contract", None, {}, True),
            ("contract", "short", {"solve": "short"}, True),
            ("contract", "steady", {"solve": "short"}, False),
        ],
    )
    def test_a_contract_judges_figures_with_the_label_of_the_metric(
        self, kind: str, label: str | None, where: dict[str, Any], expected: bool
    ) -> None:
        of = record()
        if label:
            of = replace(of, parameters={**of.parameters, "solve": label})
        system = {"system": of.system} if kind == "expected" else {}
        limit = reference(kind=kind, where=where, **system)
        assert applies(limit, of, {"solve": "steady"}) is expected

    @pytest.mark.parametrize(
        ("threads", "node", "expected"),
        [(40, "n1", True), (39, "n1", False), (None, "n1", True), (39, "n2", True)],
    )
    def test_what_is_not_known_uses_all_cores(
        self, threads: int | None, node: str, expected: bool
    ) -> None:
        parameters = {} if threads is None else {"threads": threads}
        of = record(parameters=parameters, node=node)
        assert uses_all_cores(of, {"n1": healthy()}) is expected
