"""The selection of records and their grouping, with boundary values."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.messages import disturbed, said
from tests.unit.judge.test_verdict import invalid, record

from proofmark.common.message import Message
from proofmark.judge.aggregate import Aggregates, aggregate, by_repeat
from proofmark.records.columns import Record, Records

DISTURBED = disturbed("steal 40 %")


def aggregates(*records: Record) -> Aggregates:
    return aggregate(Records.of(records))


def disturbed_runs(*values: float, bad: Sequence[int], reason: Message = DISTURBED) -> Aggregates:
    """Return one figure of a repeat per value; those of the repeats `bad` were disturbed."""
    made = [
        record(step=f"000{repeat}-fake", repeat=repeat, value=value)
        if repeat not in bad
        else invalid(step=f"000{repeat}-fake", repeat=repeat, value=value, reason=reason)
        for repeat, value in enumerate(values, start=1)
    ]
    records = Records.of(made)
    return aggregate(marked(records, [f"000{repeat}-fake" for repeat in bad]))


def marked(records: Records, steps: Sequence[str]) -> Records:
    """Return `records` whose executions of `steps` are marked as disturbed."""
    executions = [
        each._replace(disturbed=DISTURBED) if each.step in steps else each
        for each in records.executions
    ]
    return replace(records, executions=executions)


class TestFigures:
    def test_a_figure_is_valid_if_its_first_record_is(self) -> None:
        found = aggregates(record(1), invalid(2), record(3))
        assert found.valid.tolist() == [True, False, True]
        assert found.invalid.tolist() == [-1, 1, -1]
        assert len(found) == 3

    def test_the_first_invalid_record_of_a_figure_is_its_record(self) -> None:
        found = aggregates(
            record(2, step="a", repeat=1),
            record(2, step="b", repeat=2),
            invalid(2, step="c", repeat=3, reason=said("first")),
            invalid(2, step="d", repeat=4, reason=said("second")),
            invalid(1, step="e", reason=said("another")),
        )
        assert [found.record(figure).reason for figure in range(2)] == ["first", "another"]
        assert math.isnan(found.median[0])
        assert found.values(0) == (100.0, 100.0)
        assert found.valid.tolist() == [False, False]

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_the_first_record_of_all_may_be_invalid(self, count: int) -> None:
        found = aggregates(
            *(invalid(step=f"{n}", repeat=n, reason=said(f"reason {n}")) for n in range(count)),
            record(step="9", repeat=9),
        )
        assert (found.record(0).valid, found.record(0).reason) == (False, "reason 0")
        assert found.record(0).value == 100.0
        assert math.isnan(found.median[0])

    def test_the_first_record_of_a_valid_figure_has_the_median(self) -> None:
        found = aggregates(
            record(1, node="n9", step="a", value=5.0),
            record(1, node="n1", step="b", repeat=1, value=1.0),
            record(1, node="n1", step="c", repeat=2, value=4.0),
        )
        first, second = (found.record(figure) for figure in range(2))
        assert (first.node, first.step, first.value) == ("n9", "a", 5.0)
        assert (second.node, second.step, second.value, second.repeat) == ("n1", "b", 2.5, 1)
        assert second.valid and second.reason == ""

    def test_the_order_is_that_of_the_steps(self) -> None:
        found = aggregates(record(3), record(1), record(2))
        assert [found.record(figure).parameters["size"] for figure in range(3)] == [1, 2, 3]
        assert [found.measurand[figure] for figure in range(3)] == [1, 2, 0]

    @pytest.mark.parametrize(
        "field",
        ["case", "benchmark", "metric", "origin", "mode", "placement", "environment_hash"],
    )
    def test_these_fields_distinguish_figures(self, field: str) -> None:
        other: dict[str, Any] = {field: "other"}
        assert len(aggregates(record(), record(step="0002-fake", **other))) == 2
        found = aggregates(record(), record(step="0002-fake", **other))
        assert len({*found.identity.tolist()}) == 2

    @pytest.mark.parametrize("field", ["unit", "system", "partition"])
    def test_these_fields_do_not(self, field: str) -> None:
        other: dict[str, Any] = {field: "other"}
        found = aggregates(record(), record(step="0002-fake", repeat=2, **other))
        assert (len(found), len({*found.identity.tolist()}), found.count.tolist()) == (1, 1, [2])

    def test_nodes_distinguish_figures_but_not_quantities(self) -> None:
        found = aggregates(record(node="n1"), record(node="n2"), record(2, node="n2"))
        assert (len(found), len({*found.identity.tolist()})) == (3, 2)
        assert found.identity.tolist() == [0, 0, 1]
        assert [found.records.nodes[node] for node in found.node] == ["n1", "n2", "n2"]

    def test_nothing_is_aggregated_of_no_records(self) -> None:
        found = aggregates()
        assert (len(found), len({*found.identity.tolist()}), found.duplicates) == (0, 0, 0)
        least, greatest = found.ranges
        assert (len(least), len(greatest)) == (0, 0)
        assert found.sound_steps() == set()

    def test_a_figure_twice_in_an_execution_is_a_duplicate(self) -> None:
        assert aggregates(record(), record()).duplicates == 1
        assert aggregates(record(), record(), record()).duplicates == 2
        assert aggregates(record(1), record(2), record(2, node="n2")).duplicates == 0
        assert aggregates(record(step="a"), record(step="b", repeat=2)).duplicates == 0
        # Two executions, each of two figures on two nodes.
        four = [
            record(size, step=step, node=node)
            for step in "ab"
            for size in (1, 2)
            for node in ("n1", "n2")
        ]
        assert aggregates(*four).duplicates == 0
        assert aggregates(*four, four[3], four[6]).duplicates == 2

    def test_the_ranges_are_of_all_records_of_a_figure(self) -> None:
        values = {1: [3.0, 1.0, 2.0], 2: [7.0], 3: [4.0, 6.0]}
        found = aggregates(
            *(
                record(size, step=f"{size}-{repeat}", repeat=repeat, value=value)
                for size, several in values.items()
                for repeat, value in enumerate(several, start=1)
            )
        )
        least, greatest = found.ranges
        assert least.tolist() == [1.0, 7.0, 4.0]
        assert greatest.tolist() == [3.0, 7.0, 6.0]

    def test_a_missing_value_is_a_missing_range(self) -> None:
        found = aggregates(record(step="a"), invalid(step="b", repeat=2, value=None))
        assert math.isnan(found.ranges[0][0]) and math.isnan(found.ranges[1][0])
        assert found.values(0) == (100.0,)

    def test_an_invalid_value_is_none_of_the_values(self) -> None:
        found = aggregates(
            record(step="a", value=1.0),
            invalid(step="b", repeat=2, value=9.0),
            record(step="c", repeat=3, value=None),
        )
        assert found.values(0) == (1.0,)
        assert found.repeats(0) == {1: 1.0}

    def test_a_mask_is_made_from_records_without_a_place(self) -> None:
        found = aggregates(record(1), record(2), record(1, node="n2"), record(2, node="n2"))
        seen: list[Record] = []

        def wanted(each: Record) -> bool:
            seen.append(each)
            return each.parameters["size"] == 2

        assert found.about(wanted).tolist() == [False, False, True, True]
        assert [(each.node, each.step, each.value) for each in seen] == [("", "", None)] * 2
        assert [(each.attempt, each.repeat, each.valid) for each in seen] == [(1, 1, True)] * 2

    def test_the_records_of_a_metric_of_a_case_are_found(self) -> None:
        found = aggregates(
            record(1, value=1.0),
            record(1, metric="time", value=2.0),
            record(1, case="other", value=3.0),
            record(2, value=4.0),
        )
        assert [each.value for each in found.measuring("fake", "rate")] == [1.0, 4.0]
        assert [each.value for each in found.measuring("other", "rate")] == [3.0]
        assert list(found.measuring("other", "time")) == []

    def test_steps_with_a_valid_record_are_sound(self) -> None:
        found = aggregates(
            record(1, step="a"), invalid(2, step="a"), invalid(1, step="b"), record(3, step="c")
        )
        assert found.sound_steps() == {"a", "c"}
        assert [each.step for each in found.executions(0)] == ["a", "b"]


class TestCounting:
    """Which executions of a step that was run again count."""

    def values(self, *outcomes: bool, more: Sequence[Record] = ()) -> tuple[list[float], bool]:
        """Return the values that count, and whether the figure is valid.

        Each attempt is valid or not, and has its number as value.
        """
        made = [
            (record if valid else invalid)(attempt=attempt, value=float(attempt))
            for attempt, valid in enumerate(outcomes, start=1)
        ]
        found = aggregates(*made, *more)
        return found.records.value[found.members(0)].tolist(), bool(found.valid[0])

    @pytest.mark.parametrize(
        ("outcomes", "counting", "valid"),
        [
            ([True], [1.0], True),
            ([False], [1.0], False),
            ([True, True], [1.0, 2.0], True),
            ([False, True], [2.0], True),
            ([True, False], [1.0], True),
            ([True, False, True], [1.0, 3.0], True),
            ([False, False], [2.0], False),
            ([False, False, False], [3.0], False),
        ],
    )
    def test_all_clean_executions_count_or_else_the_last(
        self, outcomes: Sequence[bool], counting: list[float], valid: bool
    ) -> None:
        assert self.values(*outcomes) == (counting, valid)

    def test_one_invalid_record_makes_its_execution_unclean(self) -> None:
        found = aggregates(
            record(1, attempt=1, value=1.0),
            invalid(2, attempt=1, step="0001-fake-1", value=1.0),
            record(1, attempt=2, value=2.0),
            record(2, attempt=2, step="0001-fake-1", value=2.0),
        )
        assert [found.values(figure) for figure in range(2)] == [(2.0,), (2.0,)]
        assert found.valid.tolist() == [True, True]

    def test_other_steps_are_not_affected(self) -> None:
        found = aggregates(
            invalid(1, attempt=1),
            record(1, attempt=2, value=2.0),
            invalid(2, attempt=1, value=5.0),
        )
        assert found.valid.tolist() == [True, False]
        assert found.values(0) == (2.0,)

    def test_repeats_of_one_execution_count_together(self) -> None:
        """Two executions of the same step and attempt, with different repeats."""
        found = aggregates(
            record(attempt=1, repeat=1, value=1.0),
            invalid(attempt=1, repeat=2, value=2.0),
            record(attempt=2, repeat=1, value=3.0),
            record(attempt=2, repeat=2, value=4.0),
        )
        assert found.values(0) == (3.0, 4.0)

    def test_attempts_are_ordered_by_their_number(self) -> None:
        found = aggregates(
            record(attempt=10, value=10.0), record(attempt=2, value=2.0), record(attempt=1)
        )
        assert found.values(0) == (100.0, 2.0, 10.0)

    def test_records_of_one_attempt_keep_their_order(self) -> None:
        found = aggregates(record(repeat=2, value=2.0), record(repeat=1, value=1.0))
        assert found.values(0) == (2.0, 1.0)


class TestMedian:
    @given(
        st.lists(
            st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), min_size=1, max_size=5
        ).filter(bool)
    )
    def test_it_is_the_median_of_the_values_of_each_figure(self, groups: list[list[float]]) -> None:
        made = [
            record(size, step=f"{repeat}-{size}", repeat=repeat, value=value)
            for size, values in enumerate(groups)
            for repeat, value in enumerate(values, start=1)
        ]
        random.Random(len(made)).shuffle(made)
        found = aggregate(Records.of(made))
        by_size = {
            found.record(figure).parameters["size"]: float(found.median[figure])
            for figure in range(len(found))
        }
        expected = {size: median(values) for size, values in enumerate(groups)}
        assert by_size == pytest.approx(expected)

    def test_an_exact_middle_is_not_rounded(self) -> None:
        """The sum of two such values overflows. The median of one value needs no sum."""
        found = aggregates(record(1, value=1.7e308), record(2, value=-1.7e308))
        assert found.median.tolist() == [1.7e308, -1.7e308]

    def test_of_a_repeat_it_is_that_of_its_attempts(self) -> None:
        made = [
            record(repeat=1, value=1.0),
            record(repeat=1, attempt=2, value=3.0),
            record(repeat=2, value=9.0),
            invalid(repeat=2, attempt=2, value=1.0),
            record(repeat=3, value=None),
        ]
        assert by_repeat(made) == {1: 2.0, 2: 9.0}
        assert aggregates(*made[:3]).repeats(0) == {1: 2.0, 2: 9.0}


class TestSingleRuns:
    def test_a_valid_figure_that_was_measured_once_is_one(self) -> None:
        made = [record(1), record(2, repeat=1), record(2, repeat=2), invalid(3)]
        assert aggregate(Records.of(made)).single_run.tolist() == [True, False, False]


class TestDisturbed:
    @pytest.mark.parametrize(
        ("bad", "values", "left_out"),
        [
            ([], (1.0, 2.0, 3.0, 4.0), 0),
            ([1], (2.0, 3.0, 4.0), 1),
            ([4], (1.0, 2.0, 3.0), 1),
            ([1, 2], (3.0, 4.0), 2),
        ],
    )
    def test_disturbed_repeats_do_not_count_beside_undisturbed_ones(
        self, bad: list[int], values: tuple[float, ...], left_out: int
    ) -> None:
        found = disturbed_runs(1.0, 2.0, 3.0, 4.0, bad=bad)
        assert found.values(0) == values
        assert found.disturbed.tolist() == [left_out]
        assert found.median.tolist() == [median(values)]
        assert found.valid.tolist() == [True]

    def test_a_figure_of_mostly_disturbed_repeats_is_invalid(self) -> None:
        found = disturbed_runs(1.0, 2.0, 3.0, 4.0, bad=[1, 2, 4])
        assert (found.values(0), found.disturbed.tolist()) == ((3.0,), [0])
        assert found.valid.tolist() == [False]

    def test_without_an_undisturbed_repeat_a_figure_is_invalid(self) -> None:
        found = disturbed_runs(1.0, 2.0, 3.0, 4.0, bad=[1, 2, 3, 4])
        assert found.valid.tolist() == [False]
        assert found.disturbed.tolist() == [0]
        assert found.count.tolist() == [4]

    @pytest.mark.parametrize("text", ["broken", ""])
    def test_another_reason_is_never_left_out(self, text: str) -> None:
        found = disturbed_runs(1.0, 2.0, 3.0, bad=[1], reason=said(text))
        assert found.valid.tolist() == [False]
        assert found.disturbed.tolist() == [0]

    def test_each_figure_has_its_own_number(self) -> None:
        made = [
            record(size, step=f"{repeat}-{size}", repeat=repeat, value=float(repeat))
            for size in (1, 2)
            for repeat in (1, 2, 3)
        ]
        made[4] = invalid(2, step="2-2", repeat=2, value=2.0, reason=DISTURBED)
        found = aggregate(marked(Records.of(made), ["2-2"]))
        assert found.disturbed.tolist() == [0, 1]
        assert [found.values(figure) for figure in range(2)] == [(1.0, 2.0, 3.0), (1.0, 3.0)]
