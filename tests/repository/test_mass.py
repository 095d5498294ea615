"""The mass of the rooms and packages is that of the table, which only falls (`tests.mass`)."""

from __future__ import annotations

import pytest
from tests.mass import CORE, Row, Table, counted, read

LOW = {"modules": 1, "lines": 10}
HIGH = {"modules": 1, "lines": 11}


@pytest.mark.lint
def test_the_table_has_the_counts_of_the_checkout() -> None:
    assert read().mistakes(counted()) == []


@pytest.mark.parametrize(
    ("name", "row", "mistakes"),
    [
        ("judge", Row(LOW, LOW), 0),
        ("judge", Row(HIGH, LOW), 1),
        ("judge", Row(HIGH, LOW, "a new fault is found"), 0),
        (CORE, Row(HIGH, LOW, "a new fault is found"), 1),
    ],
    ids=["equal", "higher", "higher-with-a-reason", "the-sum-has-no-reason"],
)
def test_a_count_rises_with_a_reason_only(name: str, row: Row, mistakes: int) -> None:
    assert len(Table({name: row}).mistakes({name: row.now})) == mistakes


@pytest.mark.parametrize("now", [LOW, None], ids=["lower", "removed"])
def test_a_row_of_former_counts_is_a_mistake(now: dict[str, int] | None) -> None:
    assert Table({"judge": Row(HIGH, HIGH)}).mistakes({"judge": now} if now else {}) != []


def test_an_update_keeps_the_lowest_counts_and_drops_a_reason_that_is_over() -> None:
    table = Table({"judge": Row(LOW, LOW)}).updated({"judge": HIGH}, {"judge": "why"})
    assert table.rows["judge"] == Row(HIGH, LOW, "why")
    assert table.updated({"judge": LOW}, {}).rows["judge"] == Row(LOW, LOW)
