"""Disturbed executions: their causes, and the values that remain."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import judged, seal
from tests.fixtures.kit import LIMIT, Kit, carried_out, execution, steps_of
from tests.fixtures.messages import disturbed, said
from tests.unit.judge.test_verdict import record

from proofmark.cases.case import Case, Undisturbed
from proofmark.common.errors import BadInput
from proofmark.common.message import NOTHING, Message
from proofmark.jobs.launcher import launcher
from proofmark.records.columns import Record, Records
from proofmark.records.disturbance import changed_repeats, tick_reason, without_disturbed
from proofmark.runs.run import Run

UNDISTURBED = {"least_seconds": 3600, "metric": "rate"}
"""The executions are shorter than `least_seconds`, so only their rates are judged. The processes of
a loaded machine do not make them INVALID."""

TABLE = "rates"
"""A file with the rate of each repeat. The program reads the first line and removes it."""

PROGRAM = """
read -r rate <{table}
sed -i 1d {table}
echo "size $1"; echo "rate $rate"; echo END
"""

STEADY = Undisturbed(metric="rate")

HALVED = "disturbed: rate changed from 100 to 50 within the repeat, by 50%, more than 20%"


def measured(kit: Kit, rates: Sequence[float], **case: Any) -> Run:
    """Run a case once for each of `rates`, which its program prints."""
    table = kit.folder / TABLE
    table.write_text("".join(f"{rate}\n" for rate in rates), encoding="utf-8")
    kit.program(PROGRAM.format(table=table))
    uses = {"quick": {"sweep": {"size": 1}, "repeats": len(rates)}}
    kit.case(**{"suites": uses, "undisturbed": UNDISTURBED, "references": [LIMIT], **case})
    return carried_out(kit.run())


def answer(kit: Kit, rates: Sequence[float], **case: Any) -> tuple[str, str]:
    (result,) = judged(measured(kit, rates, **case)).results
    return result.verdict, result.reason


class TestRate:
    def test_a_steady_machine_is_judged(self, kit: Kit) -> None:
        """Control: no fault is injected."""
        word, reason = answer(kit, [100, 110, 95])
        assert (word, reason) == (
            "PASS",
            "2 × the contract figure (50 MB/s) is at least 1; "
            "with 95 % confidence the true level is at most 0 % beyond the limit",
        )

    def test_a_slow_machine_fails(self, kit: Kit) -> None:
        word, _ = answer(kit, [40, 41, 42])
        assert word == "FAIL"

    @pytest.mark.fault("rate-changed")
    @pytest.mark.parametrize("rates", [[31, 51, 30], [30, 51], [100, 100, 30, 30, 100, 30]])
    def test_a_rate_that_changes_makes_the_figure_invalid(
        self, kit: Kit, rates: list[float]
    ) -> None:
        word, reason = answer(kit, rates)
        assert word == "INVALID"
        assert reason.startswith("disturbed: rate changed from ")
        assert reason.endswith("more than 20%")

    @pytest.mark.parametrize(
        ("rates", "left_out"),
        [
            ([100, 100, 30, 100, 100, 100], "2 of 6"),
            ([100, 100, 100, 100, 100, 30, 100, 30, 100], "5 of 9"),
        ],
    )
    def test_unsteady_repeats_do_not_count_if_more_than_a_third_are_steady(
        self, kit: Kit, rates: list[float], left_out: str
    ) -> None:
        word, reason = answer(kit, rates)
        assert word == "PASS"
        assert reason.endswith(f"; {left_out} repeats were disturbed and left out")

    def test_a_case_without_stability_accepts_every_rate(self, kit: Kit) -> None:
        word, _ = answer(kit, [31, 51, 30], undisturbed={"least_seconds": 3600})
        assert word == "UNJUDGED", "the repeats do not agree; none is INVALID"

    def test_another_fault_of_a_disturbed_repeat_still_counts(self, kit: Kit) -> None:
        run = measured(kit, [100, 100, 30, 100, 100, 100])
        third = execution(steps_of(run)[2])
        (third / "stdout").write_text("size 1\nrate 30\n", encoding="utf-8")  # without its END
        seal(third)
        (result,) = judged(run).results
        assert result.verdict == "INVALID"
        assert "END" in result.reason

    @given(st.lists(st.floats(80, 99), min_size=2, max_size=9))
    def test_changes_within_the_limit_disturb_nothing(self, rates: list[float]) -> None:
        from proofmark.cases.case import Undisturbed
        from proofmark.records.disturbance import changed_repeats

        undisturbed = Undisturbed.model_validate(UNDISTURBED)
        series = [(repeat, repeat, rate) for repeat, rate in enumerate(rates)]
        assert list(changed_repeats(series, undisturbed)) == []


class TestTicks:
    """The samples may have no node. The CPU time of the whole node is always there."""

    @pytest.mark.parametrize(
        ("ticks", "word", "reason"),
        [
            ((100, 3, 95), "PASS", "2 × the contract figure (50 MB/s) is at least 1"),
            (
                (100, 25, 100),
                "INVALID",
                "a hypervisor withheld 20.0% of the CPU time, more than 5%",
            ),
            ((200, 0, 100), "INVALID", "other processes used 50.0% of the CPU time, more than 10%"),
        ],
    )
    def test_the_thresholds_of_the_case_apply(
        self, kit: Kit, ticks: tuple[int, int, int], word: str, reason: str
    ) -> None:
        run = measured(kit, [100], undisturbed={**UNDISTURBED, "least_seconds": 0})
        folder = execution(steps_of(run)[0])
        when = json.loads((folder / "when.json").read_text())
        names = ("busy_ticks", "stolen_ticks", "own_ticks")
        when |= dict(zip(names, ticks, strict=True))
        (folder / "when.json").write_text(json.dumps(when))
        (folder / "noise.json").write_text("[\n]\n")
        seal(folder)
        (result,) = judged(run).results
        assert (result.verdict, result.reason.removeprefix("disturbed: ")) == (word, reason)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("plain", True),
        ("openmpi", True),
        ("srun", False),
        ("poe", False),
        ("flux", False),
    ],
)
def test_ranks_of_a_daemon_are_no_processes_of_the_step(name: str, known: bool) -> None:
    assert launcher(name).starts_children is known


def test_a_run_that_did_not_record_steal_is_judged(kit: Kit) -> None:
    run = measured(kit, [100, 110, 95])
    for step in steps_of(run):
        path = execution(step) / "when.json"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.partition(', "busy_ticks"')[0] + "}", encoding="utf-8")
        (path.parent / "noise.json").write_text("[\n]\n")
        seal(path.parent)
    (result,) = judged(run).results
    assert result.verdict == "PASS"


def test_an_unknown_metric_in_stability_is_refused(kit: Kit) -> None:
    kit.case(undisturbed={**UNDISTURBED, "metric": "rat"})
    with pytest.raises(BadInput, match=r"undisturbed.metric.*'rat'.*did you mean 'rate'"):
        kit.benchmarks()


def case(undisturbed: Undisturbed) -> Case:
    given: dict[str, Any] = {"undisturbed": undisturbed}
    return Case.model_construct(**given)


def repeats(*rates: float, **changes: Any) -> list[Record]:
    """Return one record of each repeat; a repeat is a step of its own."""
    return [
        record(value=rate, repeat=number, step=f"{number:04d}-fake", **changes)
        for number, rate in enumerate(rates, start=1)
    ]


def checked(
    records: Sequence[Record],
    undisturbed: Undisturbed = STEADY,
    why: Mapping[int, Message] | None = None,
) -> Records:
    """Return the checked records. `why` has the reasons of disturbed executions."""
    given = Records.of(records)
    executions = [
        each._replace(disturbed=(why or {}).get(number, NOTHING))
        for number, each in enumerate(given.executions)
    ]
    return without_disturbed(replace(given, executions=executions), {"fake": case(undisturbed)})


def reasons(*args: Any, **options: Any) -> list[str]:
    return [each.reason for each in checked(*args, **options)]


class TestTickThresholds:
    @pytest.mark.parametrize(
        ("steal", "others", "expected"),
        [
            (0.05, 0.1, ""),
            (0.06, 0.0, "a hypervisor withheld 6.0% of the CPU time, more than 5%"),
            (0.0, 0.11, "other processes used 11.0% of the CPU time, more than 10%"),
            (0.06, 0.11, "a hypervisor withheld 6.0% of the CPU time, more than 5%"),
            (math.nan, math.nan, ""),
        ],
    )
    def test_a_share_counts_above_its_threshold(
        self, steal: float, others: float, expected: str
    ) -> None:
        attempt: Any = SimpleNamespace(seconds=1, steal=steal, others=others)
        assert tick_reason(attempt, STEADY).removeprefix("disturbed: ") == expected
        attempt.seconds = 0.4
        assert tick_reason(attempt, STEADY) == ""

    def test_a_case_without_a_metric_of_its_rate_has_no_threshold(self) -> None:
        attempt: Any = SimpleNamespace(seconds=1, steal=1.0, others=1.0)
        assert tick_reason(attempt, Undisturbed()) == ""


class TestChanges:
    @staticmethod
    def changed(*series: tuple[int, float]) -> dict[int, str]:
        """Return the reasons by repeat; the number of an execution is that of its repeat + 100."""
        given = [(repeat, 100 + repeat, rate) for repeat, rate in series]
        found = changed_repeats(given, STEADY)
        return {execution - 100: why for execution, why in found}

    @pytest.mark.parametrize(
        ("after", "unsteady"), [(80.0, False), (79.9, True), (125.0, False), (125.1, True)]
    )
    def test_the_change_is_a_share_of_the_larger_rate(self, after: float, unsteady: bool) -> None:
        assert bool(self.changed((1, 100.0), (2, after))) is unsteady

    def test_a_repeat_is_compared_with_the_next_one(self) -> None:
        assert self.changed((1, 100), (2, 50), (3, 50)) == {1: HALVED}

    def test_the_last_repeat_is_compared_with_the_one_before_it(self) -> None:
        assert self.changed((1, 100), (2, 100), (3, 50)) == {2: HALVED, 3: HALVED}
        assert self.changed((1, 100), (2, 50)) == {1: HALVED, 2: HALVED}

    def test_the_order_of_the_series_does_not_matter(self) -> None:
        assert self.changed((3, 50), (1, 100), (2, 50)) == {1: HALVED}

    def test_repeats_with_a_gap_are_not_compared(self) -> None:
        assert self.changed((1, 100), (3, 50)) == {}
        assert self.changed((1, 100), (3, 50), (4, 50)) == {}
        assert self.changed((1, 100), (3, 100), (4, 50)) == {3: HALVED, 4: HALVED}

    def test_a_single_repeat_is_steady(self) -> None:
        assert self.changed((1, 100)) == {}


class TestRecords:
    def test_the_records_of_an_unsteady_execution_are_invalid(self) -> None:
        found = checked(repeats(100, 50, 50))
        assert [each.reason for each in found] == [HALVED, "", ""]
        assert [each.valid for each in found] == [False, True, True]
        assert [each.unsteady for each in found.executions] == [HALVED, "", ""]

    def test_other_metrics_of_an_unsteady_execution_are_invalid_too(self) -> None:
        others = [replace(each, metric="time", value=1.0) for each in repeats(1, 1, 1)]
        assert reasons([*repeats(100, 50, 50), *others]) == [HALVED, "", "", HALVED, "", ""]

    def test_the_first_change_of_two_nodes_is_the_reason(self) -> None:
        one, two = repeats(100, 50, node="n1"), repeats(100, 25, node="n2")
        steps = [replace(each, step="0001-fake" if each.repeat == 1 else "0002-fake")
                 for each in (*one, *two)]  # fmt: skip
        assert reasons(steps) == [HALVED] * 4

    @pytest.mark.parametrize(
        "changes",
        [
            {"metric": "time"},
            {"case": "other"},
            {"origin": "emulated"},
            {"valid": False, "reason": "broken"},
        ],
    )
    def test_these_records_do_not_show_a_change(self, changes: dict[str, Any]) -> None:
        found = checked(repeats(100, 50, 50, **changes))
        assert [each.reason for each in found] == [changes.get("reason", "")] * 3
        assert {each.unsteady for each in found.executions} == {""}

    @pytest.mark.parametrize("changes", [{"node": "n2"}, {"attempt": 2}, {"mode": "flat"}])
    def test_only_like_records_are_compared(self, changes: dict[str, Any]) -> None:
        first, second = repeats(100, 50)
        assert reasons([first, second]) == [HALVED, HALVED]
        assert reasons([first, replace(second, **changes)]) == ["", ""]

    def test_a_case_without_a_metric_of_its_rate_has_no_limit(self) -> None:
        assert reasons(repeats(100, 50), Undisturbed()) == ["", ""]

    def test_each_case_is_checked(self) -> None:
        records = Records.of(repeats(100, 50))
        cases = {"other": case(Undisturbed()), "fake": case(STEADY)}
        assert [each.reason for each in without_disturbed(records, cases)] == [HALVED] * 2

    def test_a_rate_of_0_is_not_compared(self) -> None:
        assert reasons(repeats(100, 0)) == ["", ""]
        assert reasons(repeats(0, 0, 100, 50)) == ["", "", HALVED, HALVED]

    def test_a_rate_below_1_is_compared(self) -> None:
        why = "disturbed: rate changed from 0.5 to 0.25 within the repeat, by 50%, more than 20%"
        assert reasons(repeats(0.5, 0.25)) == [why, why]

    def test_a_disturbed_repeat_is_not_compared(self) -> None:
        assert reasons(repeats(100, 50, 100), why={1: disturbed("x")}) == [
            "", "disturbed: x", ""
        ]  # fmt: skip

    def test_disturbed_records_of_an_emulated_node_stay_valid(self) -> None:
        found = checked(repeats(100, 100, origin="emulated"), why={0: disturbed("x")})
        assert [each.valid for each in found] == [True, True]

    def test_the_first_reason_of_an_invalid_record_stays(self) -> None:
        broken, *others = repeats(100, 100)
        broken = replace(broken, valid=False, reason=said("broken"))
        assert reasons([broken, *others], why={0: disturbed("x")}) == ["broken", ""]

    def test_equal_reasons_are_stored_once(self) -> None:
        broken = replace(repeats(1, 1, 1)[2], valid=False, reason=said("broken"))
        found = checked([*repeats(100, 100), broken], why={0: disturbed("x"), 1: disturbed("x")})
        assert found.reasons == ["broken", "disturbed: x"]
        assert [each.reason for each in found] == ["disturbed: x", "disturbed: x", "broken"]

    def test_a_reason_that_no_record_has_is_not_stored(self) -> None:
        broken = [replace(each, valid=False, reason=said("broken")) for each in repeats(100, 100)]
        assert checked(broken, why={0: disturbed("x")}).reasons == ["broken"]

    def test_the_given_records_are_not_changed(self) -> None:
        given = Records.of(repeats(100, 50))
        without_disturbed(given, {"fake": case(STEADY)})
        assert given.valid.all()
        assert {each.unsteady for each in given.executions} == {""}

    def test_a_run_without_records(self) -> None:
        assert len(checked([])) == 0
