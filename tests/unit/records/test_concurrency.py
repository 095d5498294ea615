"""Tests the checks of overlap and spread of copies with boundary values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records.test_binding import make_plan_of

from proofmark.cases.reader.engine import Reading
from proofmark.common.errors import BadInput
from proofmark.plan.plan import Step
from proofmark.records.execution_checks import concurrency_error, spread

MEASURED_S, METRICS = "{size / rate}", ("rate", "rate_spread")


@pytest.fixture(scope="module")
def step() -> Step:
    (planned,) = make_plan_of("mpi").steps()
    return planned.model_copy(update={"copies": 2})


def reading(
    pair: object, value: float | None = 1.0, metric: str = "rate", **changes: Any
) -> Reading:
    """Return the rate of one copy; a copy with the rate 1 measured for 10 s."""
    usual: dict[str, Any] = {
        "case": "fake",
        "benchmark": "FAKE",
        "metric": metric,
        "value": value,
        "unit": "MB/s",
        "parameters": {"size": 10, "pair": pair},
        "valid": True,
        "reason": "",
        "node": None,
    }
    return Reading(**{**usual, **changes})


def error(
    step: Step,
    folder: Path,
    times: Sequence[tuple[int, float, float]],
    readings: Sequence[Reading] | None = None,
    measured_s: str = MEASURED_S,
) -> str:
    """Return the error of copies, each with its number, start and end in seconds."""
    entries = [{"copy": copy, "start": start, "end": end} for copy, start, end in times]
    (folder / "copies.json").write_text(json.dumps(entries))
    given = [reading(1), reading(2)] if readings is None else readings
    return concurrency_error(step, measured_s, folder, given, "fake.yml")


class TestOverlap:
    @pytest.mark.parametrize(
        ("second_end", "overlap"),
        [(20.0, None), (22.0, None), (25.0, None), (25.1, "4.90"), (29.0, "1.00"), (40.0, "0.00")],
    )
    def test_half_of_the_longest_measurement_is_enough(
        self, step: Step, tmp_path: Path, second_end: float, overlap: str | None
    ) -> None:
        """Both copies measure for the last 10 s before their ends."""
        found = error(step, tmp_path, [(1, 0.0, 20.0), (2, 0.0, second_end)])
        expected = f"the 2 copies measured at the same time for {overlap} s of 10.00 s, less than "
        assert found == ("" if overlap is None else f"{expected}50%")

    def test_the_order_of_the_copies_is_irrelevant(self, step: Step, tmp_path: Path) -> None:
        assert error(step, tmp_path, [(2, 0.0, 25.0), (1, 0.0, 20.0)]) == ""
        found = error(step, tmp_path, [(2, 0.0, 20.0), (1, 0.0, 26.0)])
        assert "for 4.00 s of 10.00 s" in found

    def test_a_measurement_begins_after_its_copy_started(self, step: Step, tmp_path: Path) -> None:
        """The second copy printed 10 s, but it ran for 2 s only: 2 s is less than half of 10 s."""
        found = error(step, tmp_path, [(1, 0.0, 20.0), (2, 18.0, 20.0)])
        assert found.startswith("the 2 copies measured at the same time for 2.00 s of 10.00 s")

    def test_the_longest_measurement_counts(self, step: Step, tmp_path: Path) -> None:
        """The first copy measures for 20 s, the second for 8 s of them."""
        readings = [reading(1, 0.5), reading(2, 1.25)]
        found = error(step, tmp_path, [(1, 0.0, 20.0), (2, 0.0, 20.0)], readings)
        assert found.startswith("the 2 copies measured at the same time for 8.00 s of 20.00 s")

    def test_the_seconds_of_all_figures_of_a_copy_add_up(self, step: Step, tmp_path: Path) -> None:
        """With one figure a copy the measurements of 10 s would not overlap."""
        times = [(1, 0.0, 30.0), (2, 0.0, 42.0)]
        assert error(step, tmp_path, times).startswith("the 2 copies measured at the same time")
        twice = [reading(1), reading(2), reading(1), reading(2), reading(1), reading(2)]
        assert error(step, tmp_path, times, twice) == ""

    def test_the_seconds_may_use_derived_values_of_the_step(
        self, step: Step, tmp_path: Path
    ) -> None:
        derived = step.model_copy(update={"derived": {"amount": 10}})
        measured_s = "{amount / rate}"
        assert error(derived, tmp_path, [(1, 0.0, 20.0), (2, 0.0, 25.0)], None, measured_s) == ""
        with pytest.raises(BadInput, match="concurrent"):
            error(step, tmp_path, [(1, 0.0, 20.0), (2, 0.0, 25.0)], None, measured_s)


class TestDamage:
    @pytest.mark.parametrize(
        "content", [None, "", "[{}]", '{"copy": 1}', '[{"copy": 1, "end": 2}]']
    )
    def test_an_unreadable_file_is_an_error(
        self, step: Step, tmp_path: Path, content: str | None
    ) -> None:
        if content is not None:
            (tmp_path / "copies.json").write_text(content)
        found = concurrency_error(step, MEASURED_S, tmp_path, [reading(1), reading(2)], "fake.yml")
        assert found == "copies.json, the start and end of each copy, is missing or damaged"

    @pytest.mark.parametrize("key", ["start", "end"])
    @pytest.mark.parametrize("number", ["nan", "inf"])
    def test_each_time_must_be_finite(
        self, step: Step, tmp_path: Path, key: str, number: str
    ) -> None:
        entries = [{"copy": 1, "start": "0", "end": "20"}, {"copy": 2, "start": "0", "end": "20"}]
        (tmp_path / "copies.json").write_text(json.dumps([entries[0], entries[1] | {key: number}]))
        found = concurrency_error(step, MEASURED_S, tmp_path, [reading(1), reading(2)], "fake.yml")
        assert found == "copies.json is damaged: a time that is not finite"

    @pytest.mark.parametrize(
        ("copies", "count"), [((1,), 1), ((1, 2, 3), 3), ((0, 1), 2), ((2, 3), 2), ((), 0)]
    )
    def test_exactly_the_planned_copies_report(
        self, step: Step, tmp_path: Path, copies: tuple[int, ...], count: int
    ) -> None:
        found = error(step, tmp_path, [(copy, 0.0, 20.0) for copy in copies])
        assert found == f"{count} of 2 copies reported when they ran"

    @pytest.mark.parametrize(
        ("wrong", "name"),
        [
            (reading(3), "3"),
            (reading("2"), "2"),
            (reading(2.0), "2.0"),
            (reading(2, parameters={"size": 10}), "None"),
            (reading(2, None), "2"),
            (reading(2, 0.0), "2"),
        ],
    )
    def test_each_value_must_be_one_of_a_planned_copy(
        self, step: Step, tmp_path: Path, wrong: Reading, name: str
    ) -> None:
        found = error(step, tmp_path, [(1, 0.0, 20.0), (2, 0.0, 20.0)], [reading(1), wrong])
        assert found == f"the output has a value of an unknown copy: pair {name}"


class TestSpread:
    def test_it_is_the_range_over_the_median_in_percent(self) -> None:
        (found,) = spread([reading(1, 8.0), reading(2, 10.0), reading(3, 15.0)], METRICS)
        assert (found.metric, found.value, found.unit) == ("rate_spread", 70.0, "%")
        assert (found.case, found.benchmark, found.node) == ("fake", "FAKE", None)
        assert (found.parameters, found.valid, found.reason) == ({"size": 10}, True, "")

    def test_two_values_are_enough_and_one_is_not(self) -> None:
        (found,) = spread([reading(1, 10.0), reading(2, 30.0)], METRICS)
        assert found.value == 100.0
        assert spread([reading(1, 10.0)], METRICS) == []
        assert spread([reading(1, 10.0), reading(2, None)], METRICS) == []

    def test_only_the_named_metrics_have_one(self) -> None:
        both = [reading(1), reading(2), reading(1, metric="time"), reading(2, metric="time")]
        assert [each.metric for each in spread(both, METRICS)] == ["rate_spread"]
        other = [reading(1, metric="time"), reading(2, metric="time"), reading(1), reading(2)]
        assert [each.metric for each in spread(other, METRICS)] == ["rate_spread"]

    def test_each_size_and_benchmark_has_its_own(self) -> None:
        readings = [
            reading(pair, value, parameters={"size": size, "pair": pair}, benchmark=benchmark)
            for benchmark, size, pair, value in [
                ("A", 1, 1, 10.0),
                ("A", 1, 2, 10.0),
                ("A", 2, 1, 10.0),
                ("A", 2, 2, 30.0),
                ("B", 1, 1, 30.0),
                ("B", 1, 2, 50.0),
            ]
        ]
        found = {
            (each.benchmark, each.parameters["size"]): each for each in spread(readings, METRICS)
        }
        assert {key: each.value for key, each in found.items()} == {
            ("A", 1): 0.0,
            ("A", 2): 100.0,
            ("B", 1): 50.0,
        }

    def test_one_invalid_value_makes_it_invalid(self) -> None:
        bad = reading(2, 30.0, valid=False, reason="why")
        (found,) = spread([reading(1, 10.0), bad, reading(3, 20.0)], METRICS)
        assert (found.valid, found.reason, found.value) == (False, "why", 100.0)
