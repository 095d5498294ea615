"""What a figure is held against: units that convert or are refused, limits from tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.fixtures.kit import make_kit
from tests.folders import ROOT
from tests.unit.judge.test_verdict import record

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import UNIT_OF, Reference, Rule
from proofmark.common.errors import BadInput
from proofmark.common.units import factor, measure
from proofmark.judge.aggregate import aggregate
from proofmark.judge.references.compare import Figures, Judgement, compare
from proofmark.judge.references.derived import Derived, derive, rpeak_nominal
from proofmark.judge.references.tables import link, links, processor, processors
from proofmark.records.columns import Record, Records
from proofmark.site.node.facts import NodeFacts, parse_probe

PROBES = ROOT / "tests" / "data" / "probe"


def figures(records: Sequence[Record]) -> Figures:
    return Figures(aggregate(Records.of(records)))


def facts(name: str, **changes: Any) -> NodeFacts:
    text = (PROBES / f"{name}.txt").read_text(encoding="utf-8")
    return parse_probe(text, name).model_copy(update=changes)


@pytest.fixture(scope="module")
def skl() -> NodeFacts:
    return facts("skl-2x6148", virtual=None)


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
    def test_convert(self, given: str, wanted: str, times: float) -> None:
        assert factor(given, wanted) == pytest.approx(times)

    @pytest.mark.parametrize(
        ("given", "wanted"),
        [("MB/s", "us"), ("MB", "MB/s"), ("Gflops", "GB/s"), ("furlong", "MB/s"), ("Mop/s", "us")],
    )
    def test_or_do_not(self, given: str, wanted: str) -> None:
        assert factor(given, wanted) is None

    def test_every_unit_of_the_cases_is_known(self) -> None:
        cases = load_benchmarks(ROOT / "benchmarks").cases.values()
        units = {metric.unit for case in cases for metric in case.metrics.values()}
        assert {unit for unit in units if measure(unit) == (unit, 1.0)} <= {"s"}

    @given(st.sampled_from(["MB/s", "MiB/s", "GB/s"]), st.sampled_from(["KiB/s", "Gb/s"]))
    def test_there_and_back_is_nothing(self, one: str, other: str) -> None:
        there, back = factor(one, other), factor(other, one)
        assert there is not None and back is not None
        assert there * back == pytest.approx(1)

    def test_a_reference_of_another_unit_is_converted(self) -> None:
        given = reference(value=0.1, unit="GB/s")
        found = compare(record(value=95.0), 95.0, given, figures([]), {})
        assert found.outcome == "PASS"
        assert found.value == pytest.approx(100)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"value": 1, "unit": "us"},
            {"rule": "rpeak_avx"},
        ],
    )
    def test_one_that_does_not_convert_is_refused(
        self, tmp_path: Path, wrong: dict[str, Any]
    ) -> None:
        kit = make_kit(tmp_path)
        given = {"metric": "rate", "kind": "derived", "source": "s", "at_least": 1, **wrong}
        kit.case(references=[given])
        with pytest.raises(BadInput, match="a unit that converts to MB/s"):
            kit.benchmarks()

    def test_against_converts_too(self) -> None:
        held = reference(value=None, against={"metric": "other", "case": "fake"})
        other = record(metric="other", value=1.0, unit="GB/s", parameters={"size": 1})
        found = compare(record(), 500.0, held, figures([other]), {})
        assert (found.outcome, found.ratio) == ("FAIL", 0.5)


def paired(own: list[float], other: list[float]) -> Judgement:
    """Hold `rate` against `other`, which has one value a repeat as well."""
    held = reference(value=None, against={"metric": "other", "case": "fake"})
    others = [
        record(metric="other", value=value, repeat=repeat)
        for repeat, value in enumerate(other, start=1)
    ]
    repeats = dict(enumerate(own, start=1))
    return compare(record(), median(own), held, figures(others), {}, repeats)


class TestPairs:
    def test_the_ratios_within_the_repeats_count_and_not_that_of_the_medians(self) -> None:
        found = paired([100, 30, 31], [100, 31, 100])
        assert found.ratios == (1, 30 / 31, 0.31)
        assert (found.outcome, found.ratio) == ("PASS", 30 / 31)
        assert "median of 3 repeats: 0.968 × other (100 MB/s)" in found.reason
        slow = paired([30, 30, 31], [100, 31, 100])
        assert (slow.outcome, slow.ratio) == ("FAIL", 0.31)

    def test_one_repeat_is_no_pair(self) -> None:
        assert paired([95], [100]).ratios == ()
        assert paired([95, 80], [100]).ratios == ()

    def test_only_common_repeats_are_paired(self) -> None:
        assert paired([90, 80, 70], [100, 100]).ratios == (0.9, 0.8)

    @given(
        st.lists(st.tuples(st.floats(1, 1e3), st.floats(0.1, 10)), min_size=2, max_size=9),
    )
    def test_a_rate_that_changes_between_repeats_changes_nothing(
        self, machine: list[tuple[float, float]]
    ) -> None:
        """Each repeat has the speed of the machine, and the other's share of it."""
        own = [speed * share for speed, share in machine]
        ratio = paired(own, [speed for speed, _ in machine]).ratio
        assert ratio == pytest.approx(median(share for _, share in machine))

    @pytest.mark.parametrize(
        ("own", "retest"), [([80, 95, 85], True), ([80, 81, 82], False), ([95, 96, 97], True)]
    )
    def test_a_miss_is_noise_where_the_limit_lies_among_the_ratios(
        self, own: list[float], retest: bool
    ) -> None:
        assert paired(own, [100, 100, 100]).within_noise(own) is retest


def reference(**changes: Any) -> Reference:
    fields = {"metric": "rate", "kind": "derived", "source": "s", "value": 100, "at_least": 0.9}
    return Reference(**{**fields, **changes})


class TestDerived:
    def test_rpeak_nominal_is_the_papers_to_the_digit(self) -> None:
        """P1, equations 1 and 2."""
        assert f"{rpeak_nominal(68, 32, 1.4):.1f}" == "3046.4"
        assert f"{rpeak_nominal(40, 32, 2.4):.1f}" == "3072.0"

    def test_rpeak_under_avx(self, skl: NodeFacts) -> None:
        """40 cores × 32 flop × 2.2 GHz."""
        found = derive("rpeak_avx", skl, {})
        assert isinstance(found, Derived)
        assert found.unit == "GFlop/s"
        assert found.value == pytest.approx(2816)

    def test_memory_is_that_of_the_filled_channels_as_rated(self, skl: NodeFacts) -> None:
        """One of the six modules of the probe runs slower: the limit is what was bought."""
        assert len({dimm.configured for dimm in skl.dimms}) == 2
        found = derive("memory_bandwidth", skl, {"memory": "ddr"})
        assert isinstance(found, Derived)
        assert found.value == pytest.approx(len(skl.dimms) * 2.666 * 8)

    def test_mcdram_is_the_papers(self) -> None:
        knl = facts("knl-7250-quadrant-flat", virtual=None)
        found = derive("memory_bandwidth", knl, {"memory": "mcdram"})
        assert isinstance(found, Derived)
        assert (found.value, found.unit) == (490, "GB/s")

    @pytest.mark.parametrize(
        ("rule", "changes", "why"),
        [
            ("rpeak_avx", {"cpu_model": "Xeon of tomorrow"}, "no table has the AVX frequency"),
            ("memory_bandwidth", {"cpu_model": "Xeon of tomorrow"}, "no table has the memory"),
            ("memory_bandwidth", {"dimms": ()}, "modules are not known"),
            ("rpeak_avx", {"virtual": "kvm"}, "is virtual"),
            ("rpeak_nominal", {"base_hz": None}, "is not known"),
            ("link_bandwidth", {"ports": ()}, "no active port"),
        ],
    )
    def test_what_no_table_knows_is_not_guessed(
        self, skl: NodeFacts, rule: Rule, changes: dict[str, Any], why: str
    ) -> None:
        node = skl.model_copy(update=changes)
        found = derive(rule, node, {})
        assert isinstance(found, str)
        assert why in found
        unit = UNIT_OF[rule]
        given = reference(value=None, rule=rule)
        held = compare(record(unit=unit), 1.0, given, figures([]), {"n1": node})
        assert (held.outcome, held.reason) == ("UNJUDGED", found)

    def test_a_node_without_provenance_is_not_judged(self) -> None:
        held = compare(record(), 1.0, reference(value=None, rule="rpeak_avx"), figures([]), {})
        assert held.outcome == "UNJUDGED"

    def test_links_count_data_and_not_coding(self) -> None:
        slow, fast = link("40 Gb/sec (4X QDR)"), link("100 Gb/sec (4X EDR)")
        assert slow is not None and fast is not None
        assert (slow.bytes_per_s, fast.bytes_per_s) == (4e9, 12.5e9)
        assert link("17 Gb/sec (3X ODD)") is None

    def test_every_line_of_the_tables_has_a_source(self) -> None:
        assert all(row.source for row in processors())
        assert all(row.source for row in links())
        assert processor("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz") is not None
        assert processor("Intel(R) Xeon(R) Gold 61480 CPU @ 2.40GHz") is None


class TestKinds:
    def test_what_is_only_expected_never_fails(self) -> None:
        given = reference(kind="expected")
        assert compare(record(), 10.0, given, figures([]), {}).outcome == "UNJUDGED"
        assert compare(record(), 100.0, given, figures([]), {}).outcome == "PASS"

    @pytest.mark.parametrize(
        ("origin", "outcome"), [("measured", "FAIL"), ("emulated", "UNJUDGED")]
    )
    def test_how_fast_a_virtual_node_is_never_fails(self, origin: str, outcome: str) -> None:
        found = compare(record(origin=origin), 10.0, reference(), figures([]), {})
        assert found.outcome == outcome
        assert found.reason.endswith("is not at least 0.9")
        assert compare(record(origin=origin), 100.0, reference(), figures([]), {}).outcome == "PASS"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"rule": "rpeak_avx"},
            {"value": None},
            {"value": None, "rule": "rpeak_avx", "unit": "GB/s"},
            {"value": None, "rule": "rpeak_avx", "kind": "published", "system": "knl"},
            {"value": None, "rule": "rpeak"},
        ],
    )
    def test_one_source_of_the_number_and_no_other(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            reference(**wrong)
