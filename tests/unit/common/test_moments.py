"""Times and durations of others are checked where they are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.json_values import JSON

from proofmark.common.files import LATEST, moment_of, seconds_of


def test_times() -> None:
    """Control: nothing is wrong."""
    for text in ("1970-01-01T00:00:00Z", "2026-11-21T10:18:00+09:00", "20261121T101800Z"):
        assert moment_of(text).tzinfo is not None
    assert [seconds_of(each) for each in (0, 1.5, 1.7e9)] == [0, 1.5, 1.7e9]


@pytest.mark.parametrize("value", [-1, -0.1, math.nan, math.inf, LATEST + 1, 10**400, True, "1"])
def test_what_is_no_number_of_seconds(value: Any) -> None:
    with pytest.raises(ValueError, match="is no number of seconds"):
        seconds_of(value)


@given(JSON | st.datetimes().map(str) | st.datetimes(timezones=st.timezones()).map(str))
def test_what_is_accepted_can_be_printed_and_subtracted(value: Any) -> None:
    reads: list[Callable[[], float]] = [
        lambda: moment_of(value).timestamp(),
        lambda: seconds_of(value),
    ]
    for read in reads:
        try:
            seconds = read()
        except ValueError:
            continue
        assert datetime.fromtimestamp(seconds, UTC) - datetime.fromtimestamp(0, UTC) is not None
        assert f"{datetime.fromtimestamp(seconds, UTC)}"
