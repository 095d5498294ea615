"""Runs held against each other: like with like, what has no partner is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run
from tests.unit.judge.test_verdict import record

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.judge.compare import compare
from proofmark.judge.verdict import Result


def result(*values: float, verdict: str = "PASS", **changes: Any) -> Result:
    made = record(value=values[0], **changes)
    return Result(made, values, verdict, "", ())


class TestLikeWithLike:
    def test_a_change_has_an_interval(self) -> None:
        runs = {"old": [result(100, 101, 99)], "new": [result(80, 81, 79)]}
        ((found,),) = (each.differences for each in compare(runs))
        assert found.change == pytest.approx(-0.2)
        assert found.interval is not None
        assert found.interval[0] <= -0.2 <= found.interval[1]
        assert found.clear

    def test_the_same_again_is_no_clear_change(self) -> None:
        runs = {"old": [result(100, 101, 99)], "new": [result(99, 100, 101)]}
        ((found,),) = (each.differences for each in compare(runs))
        assert (found.change, found.clear) == (0, False)

    def test_single_measurements_have_no_interval_and_are_never_clear(self) -> None:
        ((found,),) = (
            each.differences for each in compare({"old": [result(100)], "new": [result(50)]})
        )
        assert (found.change, found.interval, found.clear) == (-0.5, None, False)

    @pytest.mark.parametrize(
        "other",
        [
            {"case": "other"},
            {"metric": "other"},
            {"benchmark": "OTHER"},
            {"mode": "flat"},
            {"placement": "spread"},
            {"parameters": {"size": 2}},
            {"environment_hash": "other"},
            {"unit": "GB/s"},
        ],
    )
    def test_what_differs_has_no_partner_and_is_listed(self, other: dict[str, Any]) -> None:
        (found,) = compare({"old": [result(100)], "new": [result(100, **other)]})
        assert found.differences == ()
        assert [len(keys) for keys in found.alone.values()] == [1, 1]

    def test_nodes_are_taken_together_or_each_with_itself(self) -> None:
        runs = {"old": [result(100, node="n1")], "new": [result(90, node="n2")]}
        assert len(compare(runs)[0].differences) == 1
        assert compare(runs, nodes=True)[0].differences == ()

    def test_what_is_invalid_is_not_compared(self) -> None:
        runs = {"old": [result(100)], "new": [result(1, verdict="INVALID")]}
        assert compare(runs)[0].differences == ()

    def test_unlike_origins_are_refused(self) -> None:
        emulated = result(100, origin="emulated")
        with pytest.raises(BadInput, match="runs of one origin"):
            compare({"old": [result(100)], "new": [emulated]})

    def test_each_later_run_is_held_against_the_first(self) -> None:
        runs = {"a": [result(100)], "b": [result(110)], "c": [result(120)]}
        changes = [each.differences[0].change for each in compare(runs)]
        assert changes == pytest.approx([0.1, 0.2])

    @given(st.lists(st.floats(1, 1e6), min_size=2, max_size=9), st.floats(0.5, 2))
    def test_the_same_values_times_so_much_change_by_so_much(
        self, values: list[float], times: float
    ) -> None:
        other = [value * times for value in values]
        ((found,),) = (
            each.differences
            for each in compare({"old": [result(*values)], "new": [result(*other)]})
        )
        assert found.change == pytest.approx(times - 1, abs=1e-9)


def test_the_command_prints_changes_and_what_is_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {f"n{number}": 100.0 + number for number in range(4)}
    old = fleet_run(tmp_path / "old", rates)
    new = fleet_run(tmp_path / "new", {host: rate / 2 for host, rate in rates.items()})
    assert main(["compare", str(old.folder), str(new.folder)]) == 0
    said = capsys.readouterr().out
    assert "-50.0 % *" in said
    assert "0 metrics only in" in said
    assert main(["compare", str(old.folder)]) == 3
    assert main(["compare", str(old.folder), str(old.folder)]) == 3
