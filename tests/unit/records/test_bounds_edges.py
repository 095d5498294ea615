"""Tests the physical bounds, their units and their reasons with boundary values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import make_kit
from tests.unit.records.test_bounds import step

from proofmark.cases.bounds import LARGEST
from proofmark.cases.reader.engine import Reading
from proofmark.cases.reference import Metric
from proofmark.common.message import NOTHING
from proofmark.records.physical_bounds import Bound, Bounds, StepBounds
from proofmark.site.ceilings import UNIVERSAL

RATE = {"unit": "MB/s", "better": "higher", "bound": 100e6, "what": "how fast"}
TIME = {"unit": "us", "better": "lower", "bound": "{message_s}", "what": "how long"}


def bounds(
    folder: Path,
    unit: str = "MB/s",
    *,
    metric: str = "rate",
    between: bool = False,
    nodes: int = 1,
    **changes: Any,
) -> Bounds:
    """Return the bounds of a reading of the metric, whose case has the keys `changes`."""
    usual = TIME if unit == "us" else RATE
    kit = make_kit(folder)
    metrics = {"rate": Metric.model_validate({**usual, **changes})}
    case = kit.benchmarks().case("fake").model_copy(update={"metrics": metrics})
    reading = Reading(
        "fake", "FAKE", metric, 1.0, unit, {"size": 3, "zero": 0}, True, NOTHING, None
    )
    made = StepBounds(step("fake"), case, between_nodes=between)
    return made.of(reading, UNIVERSAL, nodes)


class TestError:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (0.9, "rate 0.9 s is below the physical bound 1 s: low"),
            (1.0, ""),
            (2.0, ""),
            (2.1, "rate 2.1 s is above the physical bound 2 s: high"),
        ],
    )
    def test_a_value_at_a_bound_is_possible(self, value: float, reason: str) -> None:
        both = Bounds(Bound(1.0, "low"), Bound(2.0, "high"))
        assert both.error("rate", value, "s") == reason

    def test_a_missing_bound_refuses_nothing(self) -> None:
        assert Bounds(None, None).error("rate", 1e308, "s") == ""
        assert Bounds(None, Bound(2.0, "high")).error("rate", -1.0, "s") == ""
        assert Bounds(Bound(1.0, "low"), None).error("rate", 1e308, "s") == ""

    def test_a_number_without_a_unit_is_shown_without_one(self) -> None:
        reason = Bounds(None, Bound(2.0, "high")).error("rate", 3.0, "")
        assert reason == "rate 3 is above the physical bound 2: high"


def test_a_higher_rate_is_better_so_its_bound_is_the_greatest(tmp_path: Path) -> None:
    found = bounds(tmp_path)
    assert found.least is None
    assert found.greatest == Bound(100.0, "by its definition 100000000.0")


def test_a_lower_time_is_better_so_its_bound_is_the_least(tmp_path: Path) -> None:
    found = bounds(tmp_path, "us")
    assert found.greatest == Bound(3600 / 1e-6, "the time limit of the step is 3600 s")
    assert found.least is not None


@pytest.mark.parametrize(
    ("between", "shortest", "source"),
    [(False, 0.002, "message_s 2e-09"), (True, 0.01, "message_s 1e-08")],
)
def test_a_message_takes_longer_between_nodes(
    tmp_path: Path, between: bool, shortest: float, source: str
) -> None:
    """In µs."""
    found = bounds(tmp_path, "us", between=between).least
    assert found is not None
    assert found.value == pytest.approx(shortest)
    assert found.source == source


@pytest.mark.parametrize(("nodes", "words"), [(1, "no node has"), (2, "no 2 nodes have")])
def test_a_metric_that_the_case_does_not_have_is_bounded_by_its_unit(
    tmp_path: Path, nodes: int, words: str
) -> None:
    found = bounds(tmp_path, metric="other", nodes=nodes)
    assert found.least is None and found.greatest is not None
    assert found.greatest.source == f"{words} more byte/s"
    universal = bounds(tmp_path / "universal", nodes=nodes, bound="universal")
    assert found == universal


def test_several_nodes_have_several_times_the_universal_bound(tmp_path: Path) -> None:
    one = bounds(tmp_path / "1", bound="universal").greatest
    three = bounds(tmp_path / "3", bound="universal", nodes=3).greatest
    assert one is not None and three is not None
    assert three.value == pytest.approx(3 * one.value)
    assert one.value == pytest.approx(LARGEST["byte/s"] / 1e6)


@pytest.mark.parametrize("bound", ["{placement}", "{1 / (size - 3)}", "{benchmark}"])
def test_a_bound_that_is_no_number_is_the_universal_one(tmp_path: Path, bound: str) -> None:
    found = bounds(tmp_path / "a", bound=bound)
    assert found == bounds(tmp_path / "b", bound="universal")


def test_the_source_names_the_values_that_the_bound_depends_on(tmp_path: Path) -> None:
    found = bounds(tmp_path, bound="{min(size, 5) * ranks * 1000000}").greatest
    assert found is not None
    assert (found.value, found.source) == (6.0, "ranks 2; size 3")


def test_a_text_is_no_value_that_a_bound_depends_on(tmp_path: Path) -> None:
    bound = "{3000000 if placement == 'close' else 1}"
    found = bounds(tmp_path, bound=bound).greatest
    assert found == Bound(3.0, f"by its definition {bound}")


@pytest.mark.parametrize(("unit", "base"), [("", "part"), ("%", "part"), ("widgets", "widgets")])
def test_a_bound_by_the_unit_names_the_base_unit(tmp_path: Path, unit: str, base: str) -> None:
    found = bounds(tmp_path, unit, metric="other").greatest
    assert found is not None
    assert found.source == f"no node has more {base}"
