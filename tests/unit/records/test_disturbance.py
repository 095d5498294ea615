"""Disturbed executions: their causes, and the values that remain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import judged, seal
from tests.fixtures.kit import LIMIT, Kit, execution, make_kit, steps_of

from proofmark.jobs.execute import execute
from proofmark.jobs.launcher import launcher
from proofmark.runs.run import Run

STABILITY = {"least_seconds": 3600, "metric": "rate", "max_change": 0.2}
"""The executions are shorter than `least_seconds`, so only their rates are judged. The processes of
a loaded machine do not make them INVALID."""
TABLE = "rates"
"""A file with the rate of each repeat. The program reads the first line and removes it."""
PROGRAM = """
read -r rate <{table}
sed -i 1d {table}
echo "size $1"; echo "rate $rate"; echo END
"""


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path)


def measured(kit: Kit, rates: Sequence[float], **case: Any) -> Run:
    """Run a case once for each of `rates`, which its program prints."""
    table = kit.folder / TABLE
    table.write_text("".join(f"{rate}\n" for rate in rates), encoding="utf-8")
    kit.program(PROGRAM.format(table=table))
    uses = {"quick": {"sweep": {"size": 1}, "repeats": len(rates)}}
    kit.case(**{"suites": uses, "stability": STABILITY, "references": [LIMIT], **case})
    run = kit.run()
    execute(run, "none", lambda line: None)
    return run


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
        word, _ = answer(kit, [31, 51, 30], stability={"least_seconds": 3600})
        assert word == "FAIL"

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
        from proofmark.cases.case import Stability
        from proofmark.records.disturbance import changed_repeats

        stability = Stability.model_validate(STABILITY)
        series = [(repeat, repeat, rate) for repeat, rate in enumerate(rates)]
        assert list(changed_repeats(series, stability)) == []


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
        run = measured(kit, [100], stability={**STABILITY, "max_steal": 0.05, "max_others": 0.1})
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
        ("jsrun", False),
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
    kit.case(stability={**STABILITY, "metric": "rat"})
    with pytest.raises(Exception, match=r"stability.metric.*'rat'.*did you mean 'rate'"):
        kit.benchmarks()
