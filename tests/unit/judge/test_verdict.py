"""Verdicts: the worst outcome counts, and a figure without a judgement never passes."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import item, known_case, results_of
from tests.fixtures.messages import said

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.judge.coverage import Uncovered
from proofmark.judge.diagnosis.bad_nodes import Suspects, bad_nodes
from proofmark.judge.evidence import Doubt, Evidence
from proofmark.judge.judging import judge
from proofmark.judge.references.judgement import Judgement, Terms
from proofmark.judge.verdict import WORDS, Coverage, Verdict
from proofmark.packages.exports.junit import suite_of
from proofmark.plan.plan import Plan
from proofmark.records.columns import Record, Records
from proofmark.site.contract_document import ContractItem

OUTCOMES = ("FAIL", "PASS", "UNJUDGED")


known = known_case(sweep={"size": [1, 2, 3, 4]})


UNCOVERED = Uncovered("s", said("s"))


def record(size: int = 1, **changes: Any) -> Record:
    """Return a valid record of the step of that size, with `changes`."""
    fields: dict[str, Any] = {
        "run": "r",
        "step": f"000{size}-fake-{size}",
        "attempt": 1,
        "system": "local",
        "partition": "local",
        "node": "n1",
        "origin": "measured",
        "case": "fake",
        "benchmark": "FAKE",
        "metric": "rate",
        "value": 100.0,
        "unit": "MB/s",
        "repeat": 1,
        "mode": "current",
        "placement": "",
        "parameters": {"size": size},
        "environment_hash": "h",
        "valid": True,
        "reason": "",
    }
    given = {**fields, **changes}
    return Record(**{**given, "reason": said(given["reason"])})


def invalid(size: int = 1, **changes: Any) -> Record:
    return record(size, **{"valid": False, "reason": said("broken"), **changes})


def reference(**changes: Any) -> Reference:
    """Return an expected value of 100 that makes a PASS from 90 on, with `changes`."""
    kind = {"kind": "expected", "system": "local"}
    fields = {"metric": "rate", "source": "s", "value": 100, "at_least": 0.9}
    return Reference(**{**kind, **fields, **changes})


def judged(
    known: tuple[Plan, Benchmarks],
    records: Sequence[Record],
    references: Sequence[Reference] = (),
    limits: Sequence[ContractItem] = (),
) -> Verdict:
    plan, benchmarks = known
    case = benchmarks.cases["fake"].model_copy(update={"references": list(references)})
    changed = benchmarks.model_copy(update={"cases": {"fake": case}})
    return judge(Evidence("r", plan, Records.of(records), changed, limits))


class TestReferences:
    @pytest.mark.parametrize(
        ("value", "bounds", "outcome"),
        [
            (90, {"at_least": 0.9}, "PASS"),
            (89.9, {"at_least": 0.9}, "UNJUDGED"),
            (69.2, {"at_least": 0.9}, "FAIL"),
            (110, {"at_least": None, "at_most": 1.1}, "PASS"),
            (110.1, {"at_least": None, "at_most": 1.1}, "UNJUDGED"),
            (143.1, {"at_least": None, "at_most": 1.1}, "FAIL"),
            (100, {"at_least": 0.9, "at_most": 1.1}, "PASS"),
            (200, {"at_least": 0.9, "at_most": 1.1}, "FAIL"),
            (0, {"at_least": 0.9}, "FAIL"),
        ],
    )
    def test_limits_are_ratios_and_a_value_at_the_limit_passes(
        self, known: tuple[Plan, Benchmarks], value: float, bounds: dict[str, Any], outcome: str
    ) -> None:
        (result,) = judged(known, [record(value=value)], [reference(**bounds)]).results
        assert result.verdict == outcome
        assert result.references[0].ratio == value / 100

    def test_a_figure_without_a_reference_is_unjudged(self, known: tuple[Plan, Benchmarks]) -> None:
        verdict = judged(known, [record()])
        assert (verdict.results[0].verdict, verdict.results[0].reason) == (
            "UNJUDGED",
            "no reference applies",
        )
        assert verdict.counts == {"PASS": 0, "FAIL": 0, "INVALID": 0, "UNJUDGED": 1}

    @pytest.mark.parametrize(
        "other",
        [
            {"metric": "other"},
            {"kind": "expected", "system": "elsewhere"},
            {"where": {"size": 2}},
            {"where": {"colour": "red"}},
            {"where": {"benchmark": "OTHER"}},
            {"where": {"placement": "spread"}},
            {"mode": "flat"},
        ],
    )
    def test_a_reference_of_another_figure_does_not_apply(
        self, known: tuple[Plan, Benchmarks], other: dict[str, Any]
    ) -> None:
        assert judged(known, [record()], [reference(**other)]).results[0].verdict == "UNJUDGED"

    @pytest.mark.parametrize(
        "same",
        [
            {"kind": "expected", "system": "local"},
            {"where": {"size": 1}},
            {"where": {"benchmark": "FAKE", "placement": ""}},
            {"mode": "current"},
        ],
    )
    def test_a_reference_of_this_figure_applies(
        self, known: tuple[Plan, Benchmarks], same: dict[str, Any]
    ) -> None:
        assert judged(known, [record()], [reference(**same)]).results[0].verdict == "PASS"

    def test_a_contract_limit_is_a_reference_of_its_case(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        limit = item(case="fake", metric="rate", source="contract", value=200, at_least=1)
        (result,) = judged(known, [record()], [reference()], [limit]).results
        assert (result.verdict, len(result.references)) == ("FAIL", 2)
        elsewhere = limit.model_copy(update={"case": "other"})
        assert judged(known, [record()], [reference()], [elsewhere]).results[0].verdict == "PASS"

    @given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=5))
    def test_the_worst_outcome_counts_in_any_order(
        self, known: tuple[Plan, Benchmarks], outcomes: list[str]
    ) -> None:
        references = {
            "PASS": reference(),
            "FAIL": reference(value=1000),
            "UNJUDGED": reference(value=None, against={"metric": "rate", "where": {"size": 9}}),
        }
        given = [references[outcome] for outcome in outcomes]
        (result,) = judged(known, [record()], given).results
        once = list(dict.fromkeys(outcomes))  # equal references are one
        assert [judgement.outcome for judgement in result.references] == once
        assert result.verdict == min(outcomes, key=OUTCOMES.index)


class TestAgainst:
    def test_a_figure_is_compared_with_another_one_of_the_run(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        against = {"metric": "rate", "where": {"size": 2}, "times": "{size * 2}"}
        given = reference(value=None, against=against, where={"size": 1})
        result = judged(known, [record(1, value=150), record(2, value=80)], [given]).results[0]
        assert (result.verdict, result.references[0].value) == ("PASS", 160)
        assert result.reason == "0.938 × rate at size 2 × 2 (160 MB/s) is at least 0.9"

    @pytest.mark.parametrize(
        "other",
        [
            {"node": "n2"},
            {"mode": "flat"},
            {"benchmark": "OTHER"},
            {"placement": "spread"},
            {"parameters": {"size": 2, "colour": "red"}},
            {"valid": False},
        ],
    )
    def test_all_other_traits_must_be_equal(
        self, known: tuple[Plan, Benchmarks], other: dict[str, Any]
    ) -> None:
        given = reference(
            value=None, against={"metric": "rate", "where": {"size": 2}}, where={"size": 1}
        )
        figure = record(1, parameters={"size": 1, "colour": "blue"})
        same = record(2, parameters={"size": 2, "colour": "blue"})
        assert judged(known, [figure, same], [given]).results[0].verdict == "PASS"
        differs = record(2, **{"parameters": {"size": 2, "colour": "blue"}, **other})
        result = judged(known, [figure, differs], [given]).results[0]
        assert (result.verdict, result.reason) == ("UNJUDGED", "rate at size 2 was not measured")

    def test_a_measured_reference_of_zero_gives_unjudged(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        given = reference(value=None, against={"metric": "rate", "where": {"size": 2}})
        result = judged(known, [record(1), record(2, value=0)], [given]).results[0]
        assert (result.verdict, result.reason) == ("UNJUDGED", "rate at size 2 is 0")


class TestExecutions:
    """The rule of docs/design/jobs.md."""

    @given(st.lists(st.floats(1, 1e9), min_size=1, max_size=7))
    def test_all_valid_executions_count_with_their_median(
        self, known: tuple[Plan, Benchmarks], values: list[float]
    ) -> None:
        records = [record(attempt=n, value=value) for n, value in enumerate(values, start=1)]
        (result,) = judged(known, records).results
        assert result.record.value == median(values)
        assert sorted(result.values) == sorted(values)

    def test_a_valid_execution_replaces_invalid_ones(self, known: tuple[Plan, Benchmarks]) -> None:
        records = [invalid(attempt=1), record(attempt=2, value=7), invalid(attempt=3)]
        (result,) = judged(known, records).results
        assert (result.verdict, result.values) == ("UNJUDGED", (7,))

    def test_the_last_of_invalid_executions_counts(self, known: tuple[Plan, Benchmarks]) -> None:
        records = [invalid(attempt=n, reason=f"reason {n}") for n in (1, 3, 2)]
        (result,) = judged(known, records).results
        assert (result.verdict, result.reason) == ("INVALID", "reason 3")

    def test_an_execution_with_an_invalid_figure_does_not_count(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        records = [
            record(attempt=1, value=1),
            invalid(attempt=1, metric="other"),
            record(attempt=2, value=2),
            record(attempt=2, metric="other", value=3),
        ]
        results = {result.record.metric: result for result in judged(known, records).results}
        assert (results["rate"].values, results["other"].verdict) == ((2,), "UNJUDGED")

    def test_a_repetition_of_another_step_does_not_replace_an_invalid_figure(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        records = [invalid(1), record(2, attempt=1), record(2, attempt=2)]
        assert [result.verdict for result in judged(known, records).results] == [
            "INVALID",
            "UNJUDGED",
        ]

    def test_repeats_of_the_plan_are_one_figure(self, known: tuple[Plan, Benchmarks]) -> None:
        records = [
            record(size, parameters={"size": 1}, repeat=size, value=10 * size) for size in (1, 2, 3)
        ]
        (result,) = judged(known, records).results
        assert (result.values, result.record.value) == ((10, 20, 30), 20)


class TestRun:
    def test_coverage_lists_missing_steps_and_counts_duplicates(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        coverage = judged(known, [record(1), record(3), record(3), invalid(4)]).coverage
        assert (coverage.expected, coverage.measured, coverage.duplicate) == (4, 3, 1)
        assert [each.message for each in coverage.missing] == ["0002-fake-2"]

    def test_steps_of_the_current_mode_are_not_listed_as_not_run(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        plan, benchmarks = known
        other = plan.groups[0].model_copy(update={"mode": "cache"})
        both = plan.model_copy(update={"groups": [*plan.groups, other]})
        assert judged(known, [record()]).coverage.not_run == ()
        not_run = judged((both, benchmarks), [record()]).coverage.not_run
        assert [each.message for each in not_run] == [
            f"{step.id}: NOT RUN: needs mode cache" for step in other.jobs[0].steps
        ]

    def test_a_second_execution_is_no_duplicate(self, known: tuple[Plan, Benchmarks]) -> None:
        records = [record(attempt=1), record(attempt=2)]
        assert judged(known, records).coverage.duplicate == 0

    @given(st.data(), st.randoms(use_true_random=False))
    def test_the_verdict_does_not_depend_on_the_order_of_the_records(
        self, known: tuple[Plan, Benchmarks], data: st.DataObject, order: random.Random
    ) -> None:
        keys = list(itertools.product((1, 2, 3), (1, 2), ("rate", "other"), ("n1", "n2")))
        chosen = data.draw(st.lists(st.sampled_from(keys), unique=True))
        values = st.sampled_from([50.0, 90.0, 100.0, 120.0])
        records = [
            record(
                size,
                attempt=attempt,
                metric=metric,
                node=node,
                value=data.draw(values),
                valid=data.draw(st.booleans()),
                reason=f"{attempt}",
            )
            for size, attempt, metric, node in chosen
        ]
        references = [
            reference(where={"size": 1}),
            reference(value=None, against={"metric": "rate", "where": {"size": 2}}),
        ]
        shuffled = list(records)
        order.shuffle(shuffled)
        one, other = (judged(known, given, references) for given in (records, shuffled))
        assert (one.counts, one.coverage) == (other.counts, other.coverage)
        assert Counter(map(repr, one.results)) == Counter(map(repr, other.results))

    @given(st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 2), st.booleans())
    def test_the_exit_code_is_the_first_that_applies(
        self, words: list[str], problem: int, strict: bool
    ) -> None:
        counts = {word: words.count(word) for word in WORDS}
        coverage = Coverage(4, 4 - (problem == 1), int(problem == 2), ())
        code = Verdict("r", counts, coverage, results_of([])).exit_code(strict=strict)
        if "INVALID" in words or problem:
            assert code == 2
        elif "FAIL" in words:
            assert code == 1
        elif "PASS" not in words or (strict and "UNJUDGED" in words):
            assert code == 4
        else:
            assert code == 0

    @pytest.mark.parametrize(
        ("words", "coverage", "code", "strict"),
        [
            ({"PASS": 1}, Coverage(1, 1, 0, ()), 0, 0),
            ({"PASS": 1, "UNJUDGED": 1}, Coverage(1, 1, 0, ()), 0, 4),
            ({"PASS": 1}, Coverage(1, 1, 0, (), not_run=(UNCOVERED,)), 0, 4),
            ({"UNJUDGED": 1}, Coverage(1, 1, 0, ()), 4, 4),
            ({"PASS": 1, "FAIL": 1}, Coverage(1, 1, 0, ()), 1, 1),
            ({"PASS": 1, "FAIL": 1, "INVALID": 1}, Coverage(1, 1, 0, ()), 2, 2),
            ({"PASS": 1}, Coverage(2, 1, 0, (UNCOVERED,)), 2, 2),
            ({"PASS": 1}, Coverage(1, 1, 1, ()), 2, 2),
        ],
    )
    def test_each_exit_code(
        self, words: dict[str, int], coverage: Coverage, code: int, strict: int
    ) -> None:
        verdict = Verdict("r", {**dict.fromkeys(WORDS, 0), **words}, coverage, results_of([]))
        assert (verdict.exit_code(), verdict.exit_code(strict=True)) == (code, strict)

    def test_a_run_without_judgements_never_passes(self, known: tuple[Plan, Benchmarks]) -> None:
        records = [record(size) for size in (1, 2, 3, 4)]
        assert judged(known, records).exit_code() == 4
        one_judged = judged(known, records, [reference(where={"size": 1})])
        assert (one_judged.exit_code(), one_judged.exit_code(strict=True)) == (0, 4)
        assert one_judged.counts == {"PASS": 1, "FAIL": 0, "INVALID": 0, "UNJUDGED": 3}

    def test_a_run_without_records_has_exit_code_2(self, known: tuple[Plan, Benchmarks]) -> None:
        verdict = judged(known, [])
        assert (verdict.run, verdict.exit_code(), verdict.coverage.measured) == ("r", 2, 0)

    def test_the_json_has_the_documented_keys(self, known: tuple[Plan, Benchmarks]) -> None:
        written = judged(known, [record()], [reference()]).as_json()
        assert {"run", "counts", "coverage", "results"} <= written.keys()
        assert {"expected", "measured", "duplicate"} <= written["coverage"].keys()
        (result,) = written["results"]
        assert set(Record.__slots__) | {"verdict", "reason", "references"} <= result.keys()
        assert result["references"][0]["ratio"] == 1

    def test_junit_has_the_same_counts_and_a_name_for_each_figure(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        records = [record(1), record(2, value=1), invalid(3, reason='<&"'), record(4)]
        references = [reference(where={"size": 1}), reference(where={"size": 2})]
        suite = suite_of(judged(known, records, references))
        assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
            "tests": "4",
            "failures": "1",
            "errors": "1",
            "skipped": "1",
        }
        names = [case.get("name") for case in suite.iter("testcase")]
        assert len(set(names)) == 4
        (error,) = suite.iter("error")
        assert error.get("message") == '<&"'


@pytest.mark.fault("slow-link")
@pytest.mark.parametrize("slow", [0, 3], ids=["control", "the third"])
def test_a_node_whose_links_are_slow_is_named(known: tuple[Plan, Benchmarks], slow: int) -> None:
    """Eight emulated nodes in a ring; each link is measured once, as in a rehearsal."""
    records = [
        record(
            node=f"n{number},n{number % 8 + 1}",
            value=40.0 if slow in (number, number % 8 + 1) else 100.0 + number / 10,
            origin="emulated",
        )
        for number in range(1, 9)
    ]
    verdict = judged(known, records)
    bad = bad_nodes(verdict.of("FAIL"), {}, {}, Suspects(verdict.measured()))
    assert [node.host for node in bad.nodes] == ([f"n{slow}"] if slow else [])
    assert verdict.counts["FAIL"] == (2 if slow else 0)
    assert bad.links == ()


class AsCompared(Terms):
    """The terms of outputs of others, without conditions."""

    largest_ratio: ClassVar[float] = 10.0

    def judge(
        self, record: Record, reference: Reference, compared: Callable[[], Judgement]
    ) -> Judgement:
        return compared()


@pytest.mark.parametrize(("terms", "outcome"), [(None, "FAIL"), (AsCompared(), "UNJUDGED")])
def test_slow_executions_fail_only_what_the_kit_measured(
    known: tuple[Plan, Benchmarks], terms: Terms | None, outcome: str
) -> None:
    """Of outputs of others it is not known which ran together, nor how often."""
    plan, benchmarks = known
    limit = item(case="fake", metric="rate", value=95, unit="MB/s", at_least=1)
    values = enumerate((100.0, 101.0, 99.0, 50.0, 51.0), 1)
    records = [
        record(1, step=f"000{place}-fake-1", repeat=place, value=each) for place, each in values
    ]
    found = judge(Evidence("r", plan, Records.of(records), benchmarks, [limit], terms=terms))
    (answers,) = found.results.answers.values()
    assert [each.outcome for each in answers if each.kind == "contract"] == [outcome]


@pytest.mark.parametrize(("value", "outcome"), [(100.0, "UNJUDGED"), (50.0, "FAIL")])
def test_a_doubt_without_another_value_accepts_nothing_and_keeps_a_failure(
    known: tuple[Plan, Benchmarks], value: float, outcome: str
) -> None:
    assert doubted(known, value, None) == outcome


@pytest.mark.parametrize(
    ("value", "other", "outcome"),
    [
        (100.0, 99.0, "PASS"),
        (100.0, 90.0, "UNJUDGED"),
        (50.0, 60.0, "FAIL"),
        (50.0, 100.0, "UNJUDGED"),
    ],
)
def test_a_doubt_with_another_value_opens_what_this_value_decides_otherwise(
    known: tuple[Plan, Benchmarks], value: float, other: float, outcome: str
) -> None:
    assert doubted(known, value, other) == outcome


def doubted(known: tuple[Plan, Benchmarks], value: float, other: float | None) -> str:
    """Return the outcome of a figure of which a doubt says that `other` may be its value."""
    plan, benchmarks = known
    limit = item(case="fake", metric="rate", value=95, unit="MB/s", at_least=1)
    steps = enumerate(("0001-fake-1", "0002-fake-1", "0003-fake-1"), 1)
    records = [record(1, step=step, repeat=repeat, value=value) for repeat, step in steps]
    doubts = {("fake", "rate"): Doubt(other, said("the clock was off"))}
    found = judge(Evidence("r", plan, Records.of(records), benchmarks, [limit], doubts=doubts))
    (answers,) = found.results.answers.values()
    (judgement,) = (each for each in answers if each.kind == "contract")
    in_doubt = "figure-in-doubt" in judgement.reason.codes
    assert in_doubt is (judgement.outcome == "UNJUDGED")
    return judgement.outcome
