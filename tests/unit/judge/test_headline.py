"""The first words of a verdict: its word, and which kinds of limits judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import item, known_case
from tests.unit.judge.test_verdict import record, reference

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks, Required
from proofmark.judge.ending import ending
from proofmark.judge.evidence import Evidence
from proofmark.judge.headline import PASSING, SANITY, Judged, headline, line_of
from proofmark.judge.judging import judge
from proofmark.judge.verdict import Verdict
from proofmark.plan.plan import Plan
from proofmark.records.columns import Record, Records
from proofmark.site.hardware import StatedNode
from proofmark.site.partition import JudgeExpected

KINDS = ("contract", "expected", "baseline", "floor", "peers")
ONLY = "no contract, no expected value"


def judged(**kinds: tuple[int, int, int]) -> dict[str, Judged]:
    return {kind: Judged(*of) for kind, of in kinds.items()}


class TestWord:
    @pytest.mark.parametrize(
        ("code", "kinds", "word", "text"),
        [
            (0, {"contract": (14, 14, 0)}, "PASS", "14 of 14 contract limits"),
            (0, {"expected": (3, 3, 0)}, "PASS", "3 of 3 expected values"),
            (0, {"baseline": (9, 7, 0)}, "PASS", "7 of 9 figures as accepted before"),
            (0, {"floor": (2, 2, 0)}, SANITY, f"2 of 2 floors; {ONLY}"),
            (0, {"peers": (8, 8, 0)}, SANITY, f"8 of 8 figures like their peers; {ONLY}"),
            (4, {"floor": (2, 2, 0)}, SANITY, f"2 of 2 floors; {ONLY}"),
            (4, {"peers": (8, 8, 0)}, SANITY, f"8 of 8 figures like their peers; {ONLY}"),
            (4, {"contract": (2, 1, 0)}, "UNJUDGED", "1 of 2 contract limits"),
            (4, {"contract": (2, 2, 0)}, "UNJUDGED", "2 of 2 contract limits"),
            (
                4,
                {"contract": (1, 0, 0), "floor": (2, 2, 0)},
                "UNJUDGED",
                "0 of 1 contract limits; 2 of 2 floors",
            ),
            (4, {"baseline": (9, 0, 0)}, "UNJUDGED", "0 of 9 figures as accepted before"),
            (4, {}, "UNJUDGED", "nothing was judged"),
            (1, {"floor": (2, 1, 1)}, "FAIL", f"1 of 2 floors; {ONLY}"),
            (1, {"contract": (2, 2, 0)}, "FAIL", "2 of 2 contract limits"),
            (1, {}, "FAIL", "nothing was judged"),
            (2, {"contract": (2, 2, 0)}, "INVALID", "2 of 2 contract limits"),
            (2, {}, "INVALID", "nothing was judged"),
        ],
    )
    def test_each_word(
        self, code: int, kinds: dict[str, tuple[int, int, int]], word: str, text: str
    ) -> None:
        found = headline(code, judged(**kinds))
        assert (found.word, found.text) == (word, text)
        written = found.as_json()
        assert (written["word"], written["judged"]) == (word, text)
        assert written["kinds"].keys() == kinds.keys()

    def test_the_line_has_each_number_under_its_word(self) -> None:
        counts = {**{"PASS": 11, "FAIL": 12, "INVALID": 13, "UNJUDGED": 14}, "measured": 15}
        line = line_of("FAIL", judged(contract=(3, 2, 1)), {**counts, "expected": 16})
        assert str(line) == (
            "FAIL: 2 of 3 contract limits; 11 PASS, 12 FAIL, 13 INVALID, 14 UNJUDGED; "
            "15 of 16 steps measured"
        )

    @given(
        st.sampled_from([0, 1, 2, 4]),
        st.dictionaries(
            st.sampled_from(KINDS),
            st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)).map(
                lambda of: Judged(of[0] + of[1] + of[2], of[1], of[2])
            ),
        ),
    )
    def test_no_pass_without_a_kind_that_makes_one(
        self, code: int, kinds: dict[str, Judged]
    ) -> None:
        found = headline(code, kinds)
        met = any(kinds[kind].met for kind in PASSING if kind in kinds)
        assert (found.word == "PASS") is (code == 0 and met)
        assert (found.word == "FAIL") is (code == 1)
        assert (found.word == "INVALID") is (code == 2)
        assert all(of.total for of in found.kinds.values())
        if found.word == SANITY:
            assert found.kinds and not met
        named = found.text.split("; ")
        assert len([each for each in named if " of " in each]) == len(found.kinds)
        assert (ONLY in named) is (bool(found.kinds) and not {*found.kinds} & {*PASSING})


known = known_case(sweep={"size": [1, 2]})


LIMIT = item(case="fake", metric="rate", source="contract", value=100, unit="MB/s", at_least=0.9)


def of_kind(kind: str, **changes: Any) -> Reference:
    return reference(kind=kind, **changes)


def verdict(
    known: tuple[Plan, Benchmarks],
    records: Sequence[Record],
    references: Sequence[Reference] = (),
    *,
    sanity: bool = False,
    required: Sequence[str] = (),
    **evidence: Any,
) -> Verdict:
    """Return the verdict on both steps of the plan, of a suite with the required metrics."""
    plan, benchmarks = known
    case = benchmarks.cases["fake"].model_copy(update={"references": list(references)})
    wanted = [Required(case="fake", metrics=list(required))] if required else []
    suite = benchmarks.suites[plan.suite].model_copy(
        update={"kind": "sanity" if sanity else "acceptance", "required_metrics": wanted}
    )
    changed = benchmarks.model_copy(update={"cases": {"fake": case}, "suites": {plan.suite: suite}})
    return judge(Evidence("r", plan, Records.of(records), changed, **evidence))


def both(value: float = 100.0, **changes: Any) -> list[Record]:
    return [record(size, value=value, **changes) for size in (1, 2)]


class TestKinds:
    @pytest.mark.parametrize(
        ("kind", "value", "word", "code", "first"),
        [
            ("contract", 100, "PASS", 0, "1 of 1 contract limits"),
            ("contract", 50, "FAIL", 1, "0 of 1 contract limits"),
            ("expected", 100, "PASS", 0, "2 of 2 expected values"),
            ("expected", 50, "FAIL", 1, "0 of 2 expected values"),
            ("floor", 100, SANITY, 4, "1 of 1 floors"),
            ("floor", 50, "FAIL", 1, "0 of 1 floors"),
        ],
    )
    def test_each_kind_is_named(
        self,
        known: tuple[Plan, Benchmarks],
        kind: str,
        value: float,
        word: str,
        code: int,
        first: str,
    ) -> None:
        found = verdict(known, both(value), [of_kind(kind)])
        top = found.headline()
        assert (top.word, found.exit_code()) == (word, code)
        assert top.text.startswith(first)
        line, *_ = ending(found, "report.html", "runs/r")
        assert line.startswith(f"{word}: {first}")
        assert found.as_json()["headline"]["word"] == word

    @pytest.mark.parametrize(
        ("node", "action"),
        [
            (StatedNode(), "proofmark init inventory/mysite"),
            (StatedNode(architecture="zen4"), "proofmark sign runs/r"),
        ],
    )
    def test_a_sanity_check_leads_to_a_site_or_to_its_baseline(
        self, known: tuple[Plan, Benchmarks], node: StatedNode, action: str
    ) -> None:
        floors = [of_kind("floor")]
        found = verdict(known, both(), floors, sanity=True, required=["rate"], node=node)
        assert (found.headline().word, found.exit_code()) == (SANITY, 0)
        assert action in ending(found, "report.html", "runs/r")[2]
        agreed = verdict(known, both(), floors, sanity=True, required=["rate"], limits=[LIMIT])
        assert "proofmark sign runs/r" in ending(agreed, "report.html", "runs/r")[2]

    def test_a_contract_makes_the_pass_and_the_floor_stands_beside_it(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        found = verdict(known, both(), [of_kind("floor")], limits=[LIMIT])
        assert found.headline().word == "PASS"
        assert found.headline().text == "1 of 1 contract limits; 1 of 1 floors"

    def test_a_missed_floor_fails_what_a_contract_accepts(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        floor = of_kind("floor", value=1000)
        found = verdict(known, both(), [floor], limits=[LIMIT])
        assert (found.headline().word, found.exit_code()) == ("FAIL", 1)
        assert found.headline().text == "1 of 1 contract limits; 0 of 1 floors"

    @pytest.mark.fault("limit-of-noisy-repeats")
    def test_a_noisy_contract_limit_is_no_pass(self, known: tuple[Plan, Benchmarks]) -> None:
        """Also if another figure passes by it, and if an expected value passes them all."""
        noisy = [
            record(2, step=f"000{1 + number}-fake-2", repeat=number, value=value)
            for number, value in enumerate((50.0, 100.0, 150.0), 1)
        ]
        for references in ([], [of_kind("expected", value=1)]):
            found = verdict(known, [record(1), *noisy], references, limits=[LIMIT])
            assert found.counts["PASS"] >= 1
            assert (found.headline().word, found.exit_code()) == ("UNJUDGED", 4)
            assert "too noisy: a difference of up to" in found.unmet[0]
            assert found.headline().text.startswith("0 of 1 contract limits")

    def test_the_head_of_a_verdict_without_findings_has_no_key_of_a_finding(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        head = verdict(known, both(), [of_kind("expected")]).head()
        always = {"run", "headline", "counts", "single_runs", "coverage", "degraded", "unmet"}
        always |= {"faults", "rehearsed", "limits", "retest", "file_systems", "fleet"}
        assert head.keys() == {*always, "storage_targets"}

    def test_without_a_limit_nothing_was_judged(self, known: tuple[Plan, Benchmarks]) -> None:
        found = verdict(known, both())
        assert (found.headline().word, found.headline().text) == (
            "UNJUDGED",
            "nothing was judged",
        )

    def test_strict_takes_the_pass_away(self, known: tuple[Plan, Benchmarks]) -> None:
        found = verdict(known, both(), limits=[LIMIT.model_copy(update={"where": {"size": 1}})])
        assert (found.headline().word, found.headline(strict=True).word) == ("PASS", "UNJUDGED")
        assert found.exit_code(strict=True) == 4

    @pytest.mark.parametrize("value", [100.0, 50.0])
    def test_a_site_without_expected_values_is_not_judged_by_them(
        self, known: tuple[Plan, Benchmarks], value: float
    ) -> None:
        off = JudgeExpected(wanted=False)
        found = verdict(known, both(value), [of_kind("expected")], judge_expected=off)
        assert (found.headline().word, found.exit_code()) == ("UNJUDGED", 4)
        assert found.results[0].references == ()
        kept = verdict(known, both(50), [of_kind("floor")], judge_expected=off)
        assert kept.exit_code() == 1

    @pytest.mark.parametrize(("tolerance", "word"), [(None, "FAIL"), (0.5, "PASS")])
    def test_a_site_has_its_own_tolerance(
        self, known: tuple[Plan, Benchmarks], tolerance: float | None, word: str
    ) -> None:
        own = JudgeExpected(tolerance=tolerance)
        found = verdict(known, both(60), [of_kind("expected")], judge_expected=own)
        assert found.headline().word == word
        by_contract = verdict(known, both(60), limits=[LIMIT], judge_expected=own)
        assert by_contract.headline().word == "FAIL"


class TestSanity:
    @pytest.mark.parametrize("sanity", [True, False])
    @pytest.mark.parametrize(
        ("kind", "value", "word", "codes"),
        [
            ("floor", 100, SANITY, (0, 4)),
            ("floor", 50, "FAIL", (1, 1)),
            ("expected", 100, "PASS", (0, 0)),
            ("expected", 50, "FAIL", (1, 1)),
            (None, 100, "UNJUDGED", (4, 4)),
        ],
    )
    def test_floors_suffice_only_for_a_suite_that_looks_for_faults(
        self,
        known: tuple[Plan, Benchmarks],
        kind: str | None,
        value: float,
        word: str,
        codes: tuple[int, int],
        sanity: bool,
    ) -> None:
        given = [of_kind(kind)] if kind else []
        found = verdict(known, both(value), given, sanity=sanity)
        assert found.exit_code() == codes[not sanity]
        assert found.headline().word == word
        assert found.exit_code(strict=True) == (codes[0] if word != SANITY else 4)

    @pytest.mark.parametrize(
        ("kind", "sanity", "open_"),
        [
            ("floor", True, False),
            ("floor", False, True),
            ("expected", True, False),
            ("expected", False, False),
            ("contract", False, False),
            (None, True, True),
            (None, False, True),
        ],
    )
    def test_a_required_metric_needs_a_floor_or_a_verdict(
        self, known: tuple[Plan, Benchmarks], kind: str | None, sanity: bool, open_: bool
    ) -> None:
        given = [of_kind(kind)] if kind else []
        found = verdict(known, both(), given, sanity=sanity, required=["rate"])
        assert bool(found.required) is open_
        if open_:
            assert found.exit_code() == 4

    def test_a_floor_that_could_not_be_compared_does_not_suffice(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        unknown = of_kind("floor", value=None, against={"metric": "rate", "where": {"size": 9}})
        found = verdict(known, both(), [unknown], sanity=True, required=["rate"])
        assert (len(found.required), found.exit_code()) == (1, 4)

    @pytest.mark.parametrize("broken", [0, 1])
    def test_a_missing_step_stays_invalid(
        self, known: tuple[Plan, Benchmarks], broken: int
    ) -> None:
        found = verdict(known, both()[: 2 - broken], [of_kind("floor")], sanity=True)
        assert (found.exit_code(), found.headline().word) == (
            (2, "INVALID") if broken else (0, SANITY)
        )

    def test_a_contract_limit_that_was_not_judged_is_no_sanity(
        self, known: tuple[Plan, Benchmarks]
    ) -> None:
        other = LIMIT.model_copy(update={"metric": "rate", "where": {"size": 2}})
        records = [record(1), record(2, metric="time", unit="s")]
        found = verdict(known, records, [of_kind("floor")], sanity=True, limits=[other])
        assert (found.exit_code(), found.headline().word) == (4, "UNJUDGED")


@given(st.data())
def test_a_pass_has_an_accepting_limit_in_its_headline(
    known: tuple[Plan, Benchmarks], data: st.DataObject
) -> None:
    """Any references, limits, origins and repeats."""
    values = st.sampled_from([10.0, 89.0, 91.0, 100.0, 300.0])
    origin = data.draw(st.sampled_from(["measured", "emulated", "predicted"]))
    records = [
        record(size, attempt=attempt, value=data.draw(values), origin=origin)
        for size in (1, 2)
        for attempt in range(1, data.draw(st.integers(1, 3)) + 1)
    ]
    kinds = data.draw(st.lists(st.sampled_from(["contract", "expected", "floor"]), max_size=3))
    references = [of_kind(kind, value=data.draw(values)) for kind in kinds]
    limits = [LIMIT] if data.draw(st.booleans()) else []
    found = verdict(known, records, references, sanity=data.draw(st.booleans()), limits=limits)
    top, code = found.headline(), found.exit_code()
    passing = {each for each in top.kinds if each in PASSING and top.kinds[each].met}
    if top.word == "PASS":
        assert passing and code == 0 and found.counts["PASS"] and not found.counts["FAIL"]
        assert all(of.met == of.total for kind, of in top.kinds.items() if kind == "contract")
    conditions = found.conditions
    if {*kinds} <= {"floor"} and not limits:
        assert top.word != "PASS" and not found.counts["PASS"]
    if code == 0:
        assert top.word in ("PASS", SANITY)
        assert (top.word == "PASS") is bool(found.counts["PASS"] and origin == "measured")
    assert code != 0 or conditions.sanity or conditions.rehearsed or found.counts["PASS"]
    demanding = replace(found, conditions=replace(conditions, sanity=False))
    assert demanding.headline().word != "PASS" or passing
