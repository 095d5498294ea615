"""References of a figure: units that are converted or refused, limits derived from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.fixtures.kit import make_kit
from tests.fixtures.messages import said
from tests.fixtures.probes import node_facts
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT
from tests.unit.judge.test_accepting import healthy
from tests.unit.judge.test_verdict import record, reference

from proofmark.cases.reference import UNIT_OF, Against, Reference, Rule
from proofmark.common.errors import BadInput
from proofmark.common.text import factor, measure
from proofmark.judge.aggregate import aggregate
from proofmark.judge.references.derived import Derived, derive
from proofmark.judge.references.figure_comparison import Comparison, Figure, Figures
from proofmark.judge.references.judgement import Judgement, applies, uses_all_cores
from proofmark.records.columns import Record, Records
from proofmark.site.hardware_limits import link, processor
from proofmark.site.node.facts import NodeFacts

PROBES = ROOT / "tests" / "data" / "probe"


def figures(records: Sequence[Record]) -> Figures:
    return Figures(aggregate(Records.of(records)))


@pytest.fixture(scope="module")
def skl() -> NodeFacts:
    return node_facts("skl-2x6148", virtual=None)


class TestUnits:
    @pytest.mark.parametrize(
        ("given", "wanted", "times"),
        [
            ("MiB/s", "MB/s", 1.048576),
            ("GB/s", "MB/s", 1000),
            ("Mbytes/sec", "MB/s", 1),
            ("MB/sec", "MB/s", 1),
            ("Gflops", "GFlop/s", 1),
            ("Gflop/s", "Tflop/s", 1e-3),
            ("us", "usec", 1),
            ("ms", "s", 1e-3),
            ("Gb/s", "GB/s", 0.125),
            ("Msg/sec", "Messages/s", 1),
            ("KiB/s", "MiB/s", 1 / 1024),
            ("furlong", "furlong", 1),
        ],
    )
    def test_like_units_are_converted(self, given: str, wanted: str, times: float) -> None:
        assert factor(given, wanted) == pytest.approx(times)

    @pytest.mark.parametrize(
        ("given", "wanted"),
        [("MB/s", "us"), ("MB", "MB/s"), ("Gflops", "GB/s"), ("furlong", "MB/s"), ("Mop/s", "us")],
    )
    def test_unlike_units_are_not_converted(self, given: str, wanted: str) -> None:
        assert factor(given, wanted) is None

    def test_every_unit_of_the_cases_is_known(self) -> None:
        cases = shipped_benchmarks().cases.values()
        units = {metric.unit for case in cases for metric in case.metrics.values()}
        counts = {"s", "1/s", "h", "events", "jobs", "nodes"}
        assert {unit for unit in units if measure(unit) == (unit, 1.0)} <= counts

    @given(st.sampled_from(["MB/s", "MiB/s", "GB/s"]), st.sampled_from(["KiB/s", "Gb/s"]))
    def test_factors_of_both_directions_are_inverse(self, one: str, other: str) -> None:
        forward, backward = factor(one, other), factor(other, one)
        assert forward is not None and backward is not None
        assert forward * backward == pytest.approx(1)

    def test_a_reference_of_another_unit_is_converted(self) -> None:
        given = reference(value=0.1, unit="GB/s")
        judgement = Comparison(figures([]), {}).judge(Figure(record(value=95.0), 95.0), given)
        assert judgement.outcome == "PASS"
        assert judgement.value == pytest.approx(100)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"value": 1, "unit": "us"},
            {"rule": "rpeak_avx"},
        ],
    )
    def test_a_reference_of_an_unlike_unit_is_refused(
        self, tmp_path: Path, wrong: dict[str, Any]
    ) -> None:
        kit = make_kit(tmp_path)
        given = {"metric": "rate", "kind": "floor", "source": "s", "at_least": 1, **wrong}
        kit.case(references=[given])
        with pytest.raises(BadInput, match="a unit that converts to MB/s"):
            kit.benchmarks()

    def test_a_measured_reference_of_another_unit_is_converted(self) -> None:
        against = reference(value=None, against={"metric": "other", "case": "fake"})
        other = record(metric="other", value=1.0, unit="GB/s", parameters={"size": 1})
        judgement = Comparison(figures([other]), {}).judge(Figure(record(), 500.0), against)
        assert (judgement.outcome, judgement.ratio) == ("FAIL", 0.5)


def paired(rates: list[float], other: list[float]) -> Judgement:
    """Return the judgement of `rate` by `other`; both have one value for each repeat."""
    against = reference(value=None, against={"metric": "other", "case": "fake"})
    others = [
        record(metric="other", value=value, repeat=repeat)
        for repeat, value in enumerate(other, start=1)
    ]
    repeats = dict(enumerate(rates, start=1))
    figure = Figure(record(), median(rates), rates, repeats)
    return Comparison(figures(others), {}).judge(figure, against)


class TestPairs:
    def test_the_median_of_the_ratios_counts_and_not_the_ratio_of_the_medians(self) -> None:
        judgement = paired([100, 30, 31], [100, 31, 100])
        assert judgement.ratios == (1, 30 / 31, 0.31)
        assert (judgement.outcome, judgement.ratio) == ("UNJUDGED", 30 / 31)
        assert judgement.reason.main_code == "limit-noisy"
        assert "median of 3 repeats: 0.968 × other (100 MB/s)" in judgement.reason
        slow = paired([30, 30, 31], [100, 31, 100])
        assert (slow.outcome, slow.ratio) == ("FAIL", 0.31)

    def test_a_single_common_repeat_is_not_paired(self) -> None:
        assert paired([95], [100]).ratios == ()
        assert paired([95, 80], [100]).ratios == ()

    def test_only_common_repeats_are_paired(self) -> None:
        assert paired([90, 80, 70], [100, 100]).ratios == (0.9, 0.8)

    @given(
        st.lists(st.tuples(st.floats(1, 1e3), st.floats(0.1, 10)), min_size=2, max_size=9),
    )
    def test_a_speed_that_changes_between_repeats_does_not_change_the_ratio(
        self, machine: list[tuple[float, float]]
    ) -> None:
        """`machine` has the speed of each repeat, and the share of it that is measured."""
        rates = [speed * share for speed, share in machine]
        ratio = paired(rates, [speed for speed, _ in machine]).ratio
        assert ratio == pytest.approx(median(share for _, share in machine))


class TestDerived:
    def test_rpeak_under_avx(self, skl: NodeFacts) -> None:
        """40 cores × 32 flop × 2.2 GHz."""
        limit = derive("rpeak_avx", [skl], {})
        assert isinstance(limit, Derived)
        assert limit.value == pytest.approx(2816)

    def test_memory_bandwidth_is_that_of_the_filled_channels_at_their_rated_speed(
        self, skl: NodeFacts
    ) -> None:
        """One of the six modules of the probe runs slower than rated."""
        assert len({dimm.configured for dimm in skl.dimms}) == 2
        limit = derive("memory_bandwidth", [skl], {"memory": "ddr"})
        assert isinstance(limit, Derived)
        assert limit.value == pytest.approx(len(skl.dimms) * 2.666 * 8)

    def test_mcdram_bandwidth_is_that_of_paper_p1(self) -> None:
        knl = node_facts("knl-7250-quadrant-flat", virtual=None)
        limit = derive("memory_bandwidth", [knl], {"memory": "mcdram"})
        assert isinstance(limit, Derived)
        assert limit.value == 490

    @pytest.mark.parametrize(
        ("rule", "changes", "why"),
        [
            (
                "rpeak_avx",
                {"cpu_model": "Xeon of tomorrow"},
                "the AVX frequency of Xeon of tomorrow",
            ),
            (
                "memory_bandwidth",
                {"cpu_model": "Xeon of tomorrow"},
                "the number of memory channels of Xeon",
            ),
            ("memory_bandwidth", {"dimms": ()}, "the speed of any memory module of"),
            ("rpeak_avx", {"virtual": "kvm"}, "is virtual"),
            ("rpeak_nominal", {"base_hz": None}, "is not known"),
            ("link_bandwidth", {"ports": ()}, "no active port"),
        ],
    )
    def test_a_missing_fact_gives_no_limit_but_a_reason(
        self, skl: NodeFacts, rule: Rule, changes: dict[str, Any], why: str
    ) -> None:
        node = skl.model_copy(update=changes)
        reason = derive(rule, [node], {})
        assert isinstance(reason, str)
        assert why in reason
        unit = UNIT_OF[rule]
        given = reference(value=None, rule=rule)
        judgement = Comparison(figures([]), {"n1": node}).judge(
            Figure(record(unit=unit), 1.0), given
        )
        assert (judgement.outcome, judgement.reason) == ("UNJUDGED", reason)

    def test_a_node_of_unknown_hardware_is_unjudged(self) -> None:
        given = reference(value=None, rule="rpeak_avx")
        assert Comparison(figures([]), {}).judge(Figure(record(), 1.0), given).outcome == "UNJUDGED"

    def test_the_bandwidth_of_a_link_is_without_coding(self) -> None:
        slow, fast = link("40 Gb/sec (4X QDR)"), link("100 Gb/sec (4X EDR)")
        assert slow is not None and fast is not None
        assert (slow.bytes_per_s, fast.bytes_per_s) == (4e9, 12.5e9)
        assert link("17 Gb/sec (3X ODD)") is None

    def test_a_port_without_a_state_is_not_active(self, skl: NodeFacts) -> None:
        (port,) = skl.ports
        silent = port.model_copy(update={"port": "2", "state": None})
        one = derive("link_bandwidth", [skl], {})
        both = derive("link_bandwidth", [skl.model_copy(update={"ports": (port, silent)})], {})
        assert isinstance(one, Derived)
        assert both == one

    def test_the_configured_speed_counts_if_the_rated_one_is_unknown(self, skl: NodeFacts) -> None:
        dimms = tuple(
            dimm.model_copy(update={"rated": None, "configured": 2400}) for dimm in skl.dimms
        )
        found = derive("memory_bandwidth", [skl.model_copy(update={"dimms": dimms})], {})
        assert isinstance(found, Derived)
        assert found.value == pytest.approx(12 * 8 * 2.4)

    def test_a_processor_is_matched_by_its_whole_name(self) -> None:
        assert processor("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz") is not None
        assert processor("Intel(R) Xeon(R) Gold 61480 CPU @ 2.40GHz") is None


class TestKinds:
    @pytest.mark.parametrize("kind", ["contract", "expected", "floor"])
    @pytest.mark.parametrize(
        ("origin", "value", "outcomes"),
        [
            ("measured", 89.0, ("FAIL", "FAIL", "FAIL")),
            ("measured", 90.0, ("PASS", "PASS", "UNJUDGED")),
            ("emulated", 89.0, ("UNJUDGED", "UNJUDGED", "UNJUDGED")),
            ("emulated", 90.0, ("PASS", "PASS", "UNJUDGED")),
            ("predicted", 89.0, ("UNJUDGED", "UNJUDGED", "UNJUDGED")),
            ("predicted", 90.0, ("UNJUDGED", "UNJUDGED", "UNJUDGED")),
        ],
    )
    def test_each_kind_says_what_it_may_say(
        self, origin: str, value: float, outcomes: tuple[str, ...], kind: str
    ) -> None:
        given = reference(kind=kind, system="local")
        found = Comparison(figures([]), {}).judge(Figure(record(origin=origin), value), given)
        assert found.outcome == outcomes[("contract", "expected", "floor").index(kind)]
        assert (found.kind, found.ratio, found.visible) == (kind, value / 100, None)
        code = "least-met" if value >= 90 else "least-missed"
        assert code in found.reason.codes
        only = kind == "floor" and value >= 90 and origin != "predicted"
        assert ("floor-met" in found.reason.codes) is only

    @pytest.mark.parametrize(("kind", "outcome"), [("floor", "UNJUDGED"), ("contract", "PASS")])
    def test_a_floor_makes_no_pass_however_quiet_the_repeats_are(
        self, kind: str, outcome: str
    ) -> None:
        quiet = Figure(record(), 1e6, [1e6] * 9)
        assert Comparison(figures([]), {}).judge(quiet, reference(kind=kind)).outcome == outcome

    @pytest.mark.parametrize(
        "wrong",
        [
            {"kind": "floor", "rule": "typical_hpl"},
            {"kind": "contract", "rule": "typical_hpl"},
            {"kind": "expected", "rule": "typical_hpl", "at_least": 0.9},
            {"kind": "expected", "rule": "typical_hpl", "at_most": 2},
            {"kind": "expected", "value": 100, "at_least": 0.9},
            {"kind": "published", "value": 100, "at_least": 0.9, "system": "local"},
            {"kind": "derived", "value": 100, "at_least": 0.9},
        ],
    )
    def test_an_expected_value_has_a_system_or_the_tolerance_of_its_source(
        self, wrong: dict[str, Any]
    ) -> None:
        right = {"metric": "rate", "source": "s", "kind": "expected", "rule": "typical_hpl"}
        assert Reference(**right).bounded is False
        with pytest.raises(ValidationError):
            Reference.model_validate({"metric": "rate", "source": "s", **wrong})

    @pytest.mark.parametrize(
        "wrong",
        [
            {"rule": "rpeak_avx"},
            {"value": None},
            {"value": None, "rule": "rpeak_avx", "unit": "GB/s"},
            {"value": None, "rule": "rpeak"},
        ],
    )
    def test_a_reference_has_exactly_one_source_of_its_value(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            reference(**wrong)


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
            (89.9, "FAIL", "0.899 × {} is not"),
            (90, "PASS", "0.9 × {} is"),
            (110, "PASS", "1.1 × {} is"),
            (110.1, "FAIL", "1.101 × {} is not"),
        ],
    )
    def test_the_outcome_and_the_reason_agree(self, value: float, outcome: str, verb: str) -> None:
        found = judgement(record(value=value), at_least=0.9, at_most=1.1)
        assert found.outcome == outcome
        ratio = verb.format("the expected figure (100 MB/s)")
        assert found.reason == (f"{ratio} at least 0.9 and at most 1.1")

    @pytest.mark.parametrize(
        ("value", "limit", "outcome"),
        [
            (400, {"at_least": 1}, "PASS"),
            (401, {"at_least": 1}, "UNJUDGED"),
            (25, {"at_least": None, "at_most": 1}, "PASS"),
            (24, {"at_least": None, "at_most": 1}, "UNJUDGED"),
            (100, {"at_least": 1}, "PASS"),
            (100, {"at_least": None, "at_most": 1}, "PASS"),
        ],
    )
    def test_a_figure_that_is_much_better_than_its_limit_proves_nothing(
        self, value: float, limit: dict[str, Any], outcome: str
    ) -> None:
        """Four times is the most that is believed."""
        given = record(value=float(value))
        figure = Figure(given, float(value), [float(value)])
        comparison = Comparison(figures([]), {}, largest_ratio=4)
        found = comparison.judge(figure, reference(value=100, **limit))
        assert found.outcome == outcome
        assert (found.reason.code == "unbelievable") is (outcome == "UNJUDGED")

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
