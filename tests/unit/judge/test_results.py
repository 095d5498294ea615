"""The verdict of a figure and the counts of results, with boundary values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.messages import said
from tests.unit.judge.test_verdict import invalid, record

from proofmark.common.message import NOTHING
from proofmark.judge.aggregate import aggregate
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.results import WORDS, Result, Results, result_json, verdicts_of
from proofmark.records.columns import Record, Records


def judgement(outcome: str, reason: str = "why", ratio: float = 0.85, **changes: Any) -> Judgement:
    """Return a judgement by a reference of 100 whose ratio must be at least 0.9."""
    fields: dict[str, Any] = {
        "kind": "floor",
        "source": "s",
        "outcome": outcome,
        "reason": said(reason),
        "value": 100.0,
        "ratio": ratio,
        "at_least": 0.9,
        "at_most": None,
    }
    return Judgement(**{**fields, **changes})


def results(
    records: Sequence[Record],
    answers: Mapping[int, tuple[Judgement, ...]] | None = None,
    words: Sequence[str] = (),
    of: Sequence[int] = (),
    alike: Sequence[int] = (),
) -> Results:
    """Return the results of one figure per record, with verdicts and places in the fleet."""
    aggregates = aggregate(Records.of(records))
    count = len(aggregates)
    places = np.array(of or [-1] * count, dtype=np.int64)
    fleet = Fleet(of=places, alike=np.array(alike, dtype=np.int64))
    numbers = verdicts_of(count, answers or {}, Fleet(), None, ~aggregates.valid)
    if words:
        numbers = np.array([WORDS.index(word) for word in words], dtype=np.int64)
    return Results(aggregates, numbers, answers or {}, fleet)


def judged(*answers: Judgement, values: Sequence[float] = (85.0,)) -> Result:
    """Return the result of one figure with a repeat per value."""
    repeats = [
        record(step=f"{repeat}", repeat=repeat, value=value)
        for repeat, value in enumerate(values, start=1)
    ]
    return results(repeats, {0: answers})[0]


class TestVerdict:
    @pytest.mark.parametrize(
        ("outcomes", "verdict", "reason"),
        [
            ((), "UNJUDGED", "no reference applies"),
            (("UNJUDGED",), "UNJUDGED", "0"),
            (("UNJUDGED", "UNJUDGED"), "UNJUDGED", "0; 1"),
            (("UNJUDGED", "PASS"), "PASS", "1"),
            (("PASS", "PASS"), "PASS", "0; 1"),
            (("PASS", "FAIL"), "FAIL", "1"),
            (("FAIL", "PASS", "FAIL", "UNJUDGED"), "FAIL", "0; 2"),
        ],
    )
    def test_the_worst_outcome_counts_with_its_reasons(
        self, outcomes: Sequence[str], verdict: str, reason: str
    ) -> None:
        answers = [judgement(outcome, f"{n}") for n, outcome in enumerate(outcomes)]
        found = judged(*answers)
        assert (found.verdict, found.reason) == (verdict, reason)
        assert found.references == tuple(answers)

    @pytest.mark.parametrize(
        ("values", "outcomes", "retest"),
        [
            ((85.0,), ("FAIL",), True),
            ((85.0, 91.0), ("FAIL",), True),
            ((85.0, 86.0, 89.0), ("FAIL",), False),
            ((85.0,), ("FAIL", "PASS"), True),
            ((85.0, 88.0, 91.0), ("PASS",), False),
            ((85.0, 88.0, 91.0), ("UNJUDGED",), False),
            ((85.0, 88.0, 91.0), (), False),
        ],
    )
    def test_only_a_failure_that_two_repeats_do_not_show_is_measured_again(
        self, values: Sequence[float], outcomes: Sequence[str], retest: bool
    ) -> None:
        found = judged(*map(judgement, outcomes), values=values)
        assert found.retest is retest

    def test_an_invalid_figure_is_not_judged(self) -> None:
        records = [record(step="1", value=1.0), invalid(step="2", repeat=2, value=2.0)]
        (found,) = results(records, {0: (judgement("PASS"),)})
        assert (found.verdict, found.reason, found.values) == ("INVALID", "broken", (1.0,))
        assert (found.references, found.interval, found.retest) == ((), None, False)
        assert found.steps == ("1", "2")

    def test_the_interval_and_the_steps_are_those_of_the_repeats(self) -> None:
        found = judged(values=(3.0, 1.0))
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == (1.0, 3.0)
        assert (found.values, found.steps) == ((3.0, 1.0), ("1", "2"))
        assert judged(values=(3.0,)).interval is None

    @pytest.mark.parametrize("disturbed", [0, 1, 2])
    def test_disturbed_repeats_are_mentioned(self, disturbed: int) -> None:
        records = [record(step=f"{n}", repeat=n, value=100.0) for n in (1, 2, 3)]
        made = results(records)
        counts = np.array([disturbed], dtype=np.int64)
        found = replace(made, aggregates=replace(made.aggregates, disturbed=counts))[0]
        left_out = f"; {disturbed} of {disturbed + 3} repeats were disturbed and left out"
        assert found.reason == "no reference applies" + (left_out if disturbed else "")
        assert found.verdict == "UNJUDGED"


class TestResults:
    def test_an_index_has_the_result_of_its_figure(self) -> None:
        made = results([record(size) for size in (1, 2, 3, 4)])
        assert [each.record.parameters["size"] for each in made] == [1, 2, 3, 4]
        assert made[-1].record.parameters["size"] == 4
        with pytest.raises(IndexError):
            made[4]

    def test_a_plain_figure_is_undisturbed_and_does_not_fail(self) -> None:
        records = [record(size) for size in (1, 2, 3, 4, 5)]
        made = results(
            [*records, invalid(6)],
            answers={1: (judgement("PASS"),)},
            words=["UNJUDGED", "PASS", "FAIL", "UNJUDGED", "UNJUDGED", "INVALID"],
            of=[0, 0, 0, 0, -1, -1],
        )
        disturbed = np.array([0, 0, 0, 0, 1, 0])
        made = replace(made, aggregates=replace(made.aggregates, disturbed=disturbed))
        assert made.plain.tolist() == [True, True, False, True, False, False]

    def test_judgements_of_references_and_of_peers_are_counted(self) -> None:
        answers = {0: (judgement("PASS"), judgement("FAIL")), 2: (judgement("PASS"),)}
        made = results([record(size) for size in (1, 2, 3)], answers, of=[0, -1, 1])
        assert made.judgements() == 5

    def test_results_are_found_by_their_records_and_verdicts(self) -> None:
        made = results([record(size) for size in (1, 2, 3)], words=["PASS", "FAIL", "PASS"])
        found = made.about(lambda each: each.parameters["size"] != 2)
        assert [each.record.parameters["size"] for each in found] == [1, 3]
        assert [each.record.parameters["size"] for each in made.of(["FAIL"])] == [2]
        assert [each.record.parameters["size"] for each in made.of(["PASS"])] == [1, 3]
        assert len(list(made.of(["PASS", "FAIL"]))) == 3
        assert list(made.of([])) == []

    def test_the_written_form_has_the_interval_and_the_judgements(self) -> None:
        found = result_json(judged(judgement("FAIL"), values=(85.0, 88.0, 91.0)))
        assert (found["interval"], found["values"]) == ([85.0, 91.0], [85.0, 88.0, 91.0])
        assert (found["confidence"], found["retest"]) == (0.75, False)
        assert (found["verdict"], found["reason"], found["value"]) == ("FAIL", "why", 88.0)
        assert [each["outcome"] for each in found["references"]] == ["FAIL"]
        single = result_json(judged())
        assert (single["interval"], single["confidence"], single["retest"]) == (None, None, False)

    def test_a_result_has_no_interval_and_is_not_measured_again_by_default(self) -> None:
        made = Result(record(), (100.0,), "PASS", NOTHING, ())
        assert (made.interval, made.retest, made.steps) == (None, False, ())


class Compared:
    """The outcomes of a baseline, by name; a stand-in for `BaselineComparison`."""

    def __init__(self, **figures: Sequence[int]) -> None:
        self._figures = figures
        self.compared = np.array(sorted({each for of in figures.values() for each in of}))

    def outcome(self, name: str) -> Any:
        return np.array(self._figures.get(name, ()), dtype=np.int64)


@pytest.mark.parametrize(
    ("answers", "passed", "worse", "fleet", "invalid", "word"),
    [
        ((), (0,), (), (), False, "PASS"),
        (("FAIL",), (0,), (), (), False, "FAIL"),
        (("PASS",), (), (0,), (), False, "FAIL"),
        ((), (0,), (0,), (), False, "FAIL"),
        ((), (0,), (), (0,), False, "FAIL"),
        (("PASS", "FAIL"), (0,), (), (), False, "FAIL"),
        (("FAIL", "PASS"), (), (), (), False, "FAIL"),
        (("UNJUDGED",), (0,), (), (), False, "PASS"),
        (("UNJUDGED",), (), (), (), False, "UNJUDGED"),
        (("PASS",), (), (), (), False, "PASS"),
        (("PASS", "FAIL"), (0,), (0,), (0,), True, "INVALID"),
        ((), (), (), (), False, "UNJUDGED"),
    ],
)
def test_the_worst_outcome_of_all_judges_counts(
    answers: Sequence[str],
    passed: Sequence[int],
    worse: Sequence[int],
    fleet: Sequence[int],
    invalid: bool,
    word: str,
) -> None:
    """No PASS, of a limit or of the baseline, overrides a FAIL of another judge."""
    baseline: Any = Compared(passed=passed, worse=worse)
    given = {0: [judgement(each) for each in answers]} if answers else {}
    failed = Fleet(failed=np.array(fleet, dtype=np.int64))
    verdicts = verdicts_of(2, given, failed, baseline, [invalid, False])
    assert [WORDS[each] for each in verdicts] == [word, "UNJUDGED"]
