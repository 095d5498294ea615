"""Which records are one figure: each field of its identity separates figures."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.messages import said
from tests.unit.judge.test_verdict import record

from proofmark.judge.aggregate import aggregate, by_repeat
from proofmark.records.columns import Records


def medians(*changes: dict[str, Any]) -> list[float]:
    """Return the median of each figure of one record per set of changes."""
    records = [
        record(value=value, repeat=number, **each)
        for number, (value, each) in enumerate(zip((100.0, 200.0, 600.0), changes, strict=False), 1)
    ]
    return [float(each) for each in aggregate(Records.of(records)).median]


def test_repeats_are_one_figure() -> None:
    """Control: no fault is injected."""
    assert medians({}, {}, {}) == [200]


@pytest.mark.parametrize(
    "other",
    [
        {"node": "n2"},
        {"case": "another"},
        {"benchmark": "ANOTHER"},
        {"metric": "latency"},
        {"origin": "emulated"},
        {"mode": "snc4-flat"},
        {"placement": "spread"},
        {"environment_hash": "another"},
        {"parameters": {"size": 2}},
        {"parameters": {"size": 1, "threads": 2}},
    ],
    ids=lambda other: "-".join(map(str, *other.items())),
)
def test_records_that_differ_in_a_field_are_two_figures(other: dict[str, Any]) -> None:
    assert medians({}, other) == [100, 200]
    assert medians({}, other, {}) == [350, 200]


@pytest.mark.parametrize("field", ["unit", "system", "partition", "step"])
def test_other_fields_do_not_separate_figures(field: str) -> None:
    assert medians({}, {field: "another"}) == [150]


def test_a_repeat_has_the_median_of_its_valid_values() -> None:
    records = [record(value=value) for value in (100.0, 300.0)]
    records += [
        record(value=900.0, valid=False, reason=said("broken")),
        record(value=50.0, repeat=2),
    ]
    assert by_repeat(records) == {1: 200, 2: 50}
