"""``repeats=auto``: steps that are too noisy run again, within the time of the plan."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from tests.fixtures.kit import Kit, make_kit
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.cli.plan import cost_line
from proofmark.cli.run import repeat_noisy_steps
from proofmark.common.errors import BadInput
from proofmark.common.printed_command import AutoRepeats, auto_repeats
from proofmark.jobs.execute import execute
from proofmark.judge.confidence import possible_miss
from proofmark.judge.judging import judge_run
from proofmark.judge.repeats import RepeatNeed, next_round, wanted_values
from proofmark.plan.expansion import make_plan
from proofmark.runs.run import Run, read_decisions
from proofmark.site.extra_vars import refused_extra_variables


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path)


def noisy_program(kit: Kit, noisy: str = "90 110 100 91 111 101 92 109 99 100") -> None:
    """Write a program whose values with size 1 are `noisy`, and steady with size 2."""
    kit.program(
        f"""size=$1 name={kit.folder}/count-$1
count=$(cat $name 2>/dev/null || echo 0)
echo $((count + 1)) >$name
if [ "$1" = 1 ]; then set -- {noisy}; else set -- 100 101 100 101 100 101 100 101 100 101; fi
shift $((count % 10))
echo "size $size"; echo "rate $1"; echo END"""
    )


@pytest.fixture
def auto_run(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Callable[[AutoRepeats], Run]:
    def made(repeats: AutoRepeats) -> Run:
        plan = partial(make_plan, repeats=repeats)
        monkeypatch.setattr("tests.fixtures.kit.make_plan", plan)
        run = kit.run()
        execute(run, "none", lambda line: None)
        return run

    return made


def counts(run: Run) -> dict[int, int]:
    """Return the number of values of each size."""
    return {
        int(each.record.parameters["size"]): len(each.values) for each in judge_run(run).results
    }


class TestPlan:
    @pytest.mark.parametrize(
        ("text", "minutes"),
        [("auto", None), ("auto:1", 1), ("auto:30", 30), ("auto:100000", 100000)],
    )
    def test_the_forms_of_auto(self, text: str, minutes: int | None) -> None:
        assert auto_repeats(text) == AutoRepeats(minutes)
        assert str(AutoRepeats(minutes)) == text
        assert not [*refused_extra_variables({"repeats": text}, (), ROOT)]

    @pytest.mark.parametrize("text", ["", "Auto", "auto:", "auto:0", "auto:1.5", "auto:100001"])
    def test_other_words_are_no_auto(self, text: str) -> None:
        assert auto_repeats(text) is None

    def test_the_plan_prints_the_longest_time_first(
        self, kit: Kit, auto_run: Callable[[AutoRepeats], Run]
    ) -> None:
        plan = auto_run(AutoRepeats()).plan
        assert plan.more_repeats_s == plan.totals.wall_s > 0
        assert plan.totals.steps == 6, "the first stage has three repeats"
        assert "repeats of noisy steps: at most" in cost_line(plan)

    def test_the_commands_take_auto(self, capsys: pytest.CaptureFixture[str]) -> None:
        site = ("-i", "inventory/tachyon", "-l", "tachyon2", "--suite", "p3")
        assert main(["plan", *site, "--repeats", "auto:90"]) == 0
        assert "repeats of noisy steps: at most 1 h 30 min more" in capsys.readouterr().out
        with pytest.raises(SystemExit, match="3"):
            main(["plan", *site, "--repeats", "auto:0"])

    def test_a_fixed_number_has_no_time_for_more(self, kit: Kit) -> None:
        assert kit.plan().more_repeats_s == 0
        assert "noisy steps" not in cost_line(kit.plan())


class TestRuns:
    def test_only_the_noisy_step_is_repeated_until_a_material_change_would_be_seen(
        self, kit: Kit, auto_run: Callable[[AutoRepeats], Run]
    ) -> None:
        noisy_program(kit)
        run, lines = auto_run(AutoRepeats(60)), list[str]()
        assert counts(run) == {1: 3, 2: 3}
        repeat_noisy_steps(run, lines.append)
        after = counts(run)
        assert after[2] == 3
        assert after[1] > 3
        values = next(
            each.values for each in judge_run(run).results if each.record.parameters["size"] == 1
        )
        middle = median(values)
        bound = possible_miss(values, middle, middle, least=True)
        assert bound is not None and bound <= 0.1
        assert sum(read_decisions(run.files).more.values()) == after[1] - 3
        assert "too noisy: " in lines[0]
        assert lines[-1] == "repeats: each measured change that matters would be seen"
        again = list[str]()
        repeat_noisy_steps(run, again.append)
        assert counts(run) == after
        assert again == lines[-1:], "the same command repeats nothing"

    def test_repeats_that_cost_more_than_is_left_are_named_and_not_run(
        self, kit: Kit, auto_run: Callable[[AutoRepeats], Run]
    ) -> None:
        noisy_program(kit, "10 190 100 15 170 120 30 160 90 110")
        run, lines = auto_run(AutoRepeats(1)), list[str]()
        repeat_noisy_steps(run, lines.append)
        assert counts(run) == {1: 3, 2: 3}
        (line,) = lines
        assert "too noisy, not repeated: " in line
        assert line.endswith("1 min 00 s are left")

    def test_an_interrupted_round_has_spent_its_time(
        self, kit: Kit, auto_run: Callable[[AutoRepeats], Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        noisy_program(kit)
        run, lines = auto_run(AutoRepeats(1)), list[str]()

        def stopped(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr("proofmark.cli.run.rerun_steps", stopped)
            repeat_noisy_steps(run, lines.append)
        asked = read_decisions(run.files).more
        assert asked
        for _ in range(40):
            with monkeypatch.context() as patched:
                patched.setattr("proofmark.cli.run.rerun_steps", lambda *_: None)
                lines.clear()
                repeat_noisy_steps(run, lines.append)
        seconds = {step.id: step.wall_s for step in run.plan.steps()}
        spent = sum(count * seconds[name] for name, count in read_decisions(run.files).more.items())
        assert 0 < spent <= 60
        assert "not repeated" in lines[-1]

    def test_the_command_repeats_after_the_first_stage(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan = partial(make_plan, repeats=AutoRepeats(60))
        monkeypatch.setattr("tests.fixtures.kit.make_plan", plan)
        noisy_program(kit)
        run = kit.run()
        assert main(["stage", "execute", str(run.folder)]) == 0
        assert counts(run)[1] > 3


class TestRound:
    def test_the_cheapest_measurements_come_first(self) -> None:
        cheap, dear = RepeatNeed(("a", "b"), 3, 10.0), RepeatNeed(("c",), 2, 100.0)
        chosen = next_round([dear, cheap], 200)
        assert chosen.executions == {"a": 2, "b": 1}
        assert chosen.unaffordable == (dear,)
        assert next_round([dear, cheap], 230).executions == {"a": 2, "b": 1, "c": 2}

    def test_what_no_number_of_repeats_shows_is_not_repeated(self) -> None:
        hopeless = RepeatNeed(("a",), math.inf, 1.0)
        assert next_round([hopeless], 1e9) == next_round([hopeless], 1e9)
        assert next_round([hopeless], 1e9).executions == {}
        assert next_round([hopeless], 1e9).unaffordable == (hopeless,)


@pytest.mark.parametrize("first", [3, 5])
@pytest.mark.parametrize("spread", [0.05, 0.1, 0.2])
def test_the_level_is_kept_and_the_power_reached(first: int, spread: float) -> None:
    """A figure that misses its limit by a material change passes in less than 5 of 100 cases."""
    random = np.random.default_rng(first)
    trials, passed, judged = 300, 0, 0
    for _ in range(trials):
        values = np.exp(spread * random.standard_normal(first)).tolist()
        while (count := wanted_values(None, 0, values, 0.1)) > len(values):
            values += np.exp(spread * random.standard_normal(int(count) - len(values))).tolist()
        low = [0.9 * each for each in values]
        middle = median(low)
        miss = possible_miss(low, middle, middle, least=True)
        judged += miss is not None and miss <= 0.1
        miss = possible_miss(low, middle, 1.0, least=True)
        passed += middle >= 1 and miss is not None and miss <= 0.1
    assert judged == trials
    assert passed <= 0.05 * trials


def test_repeats_are_a_number_or_auto(kit: Kit) -> None:
    with pytest.raises(BadInput, match="repeats: found 0"):
        make_plan(kit.benchmarks(), "quick", kit.site(), None, 0)  # type: ignore[arg-type]


class Accepted:
    """A stand-in for a baseline that needs 7 values of its first figure."""

    def needed(self, figure: int) -> float | None:
        return 7.0 if figure == 0 else None


def test_a_baseline_states_the_number_of_values_and_other_figures_their_precision() -> None:
    baseline: Any = Accepted()
    steady, wild = [100.0, 100.1, 99.9], [1.0, 1000.0]
    assert wanted_values(baseline, 0, steady, 0.1) == 7
    assert wanted_values(baseline, 1, steady, 0.1) == len(steady)
    assert wanted_values(None, 0, [100.0, 0.0], 0.1) == 2, "its noise is not known"
    assert wanted_values(None, 0, wild, 0.1) > 10_000
