"""The history of figures over runs: change points, slopes, events, nodes that drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.trend import shares
from tests.fixtures.kit import examples
from tests.fixtures.past_runs import Value, run_id, write_evidence, write_past_run

from proofmark.cases.reference import Metric
from proofmark.judge.confidence import POWER
from proofmark.judge.stated_parts import differences
from proofmark.packages.history.change_points import Course, LevelSeries, courses
from proofmark.packages.history.past_run import (
    LeftOut,
    PastFigure,
    PastRun,
    read_past_run,
)
from proofmark.packages.history.trend import Trend, trends
from proofmark.runs.run_files import run_folders

LEVEL = 0.01
RATE = Metric(unit="MB/s", better="higher", bound=1e9, what="rate")


def _series(
    logs: Sequence[float], family: int = 0, days: Sequence[float] | None = None
) -> LevelSeries:
    return LevelSeries(np.array(days or range(len(logs)), dtype=float), np.array(logs), family)


def _like(count: int, length: int, seed: int = 1) -> list[LevelSeries]:
    rng = np.random.default_rng(seed)
    return [_series(rng.normal(0, 0.01, length).tolist()) for _ in range(count)]


def _with(series: Sequence[LevelSeries], first: Sequence[float]) -> Course:
    """Return the course of the first series after `first` was added to it."""
    changed = _series((series[0].logs + np.array(first)).tolist(), series[0].family)
    return courses([changed, *series[1:]], LEVEL)[0]


class TestChangePoints:
    def test_a_fall_of_5_percent_is_dated(self) -> None:
        like = _like(60, 24)
        course = _with(like, [0.0] * 15 + [math.log(0.95)] * 9)
        (step,) = course.steps
        assert (step.earliest, step.place, step.latest) == (15, 15, 15)
        assert course.deviation == pytest.approx(0.01, rel=0.3)

    def test_steady_series_have_none(self) -> None:
        assert not any(each.steps or each.slope for each in courses(_like(60, 24), LEVEL))

    def test_a_fall_and_its_repair_are_two_changes(self) -> None:
        course = _with(_like(60, 40), [0.0] * 15 + [-0.06] * 10 + [0.0] * 15)
        assert [step.place for step in course.steps] == [15, 25]

    def test_a_slow_fall_is_a_slope(self) -> None:
        course = _with(_like(60, 40), [-0.002 * day for day in range(40)])
        assert course.steps == ()
        assert course.slope == pytest.approx(-0.002, rel=0.2)

    def test_two_outliers_at_the_end_are_no_change(self) -> None:
        assert _with(_like(60, 24), [0.0] * 22 + [-0.3] * 2).steps == ()

    def test_two_of_the_last_three_runs_are_no_change(self) -> None:
        assert _with(_like(60, 24), [0.0] * 21 + [-0.3, 0.0, -0.3]).steps == ()

    def test_the_last_digit_of_a_printed_value_is_no_change(self) -> None:
        logs = [math.log(0.21)] * 12 + [math.log(0.22)] * 4
        assert courses([_series(logs)], LEVEL)[0].steps == ()

    def test_short_and_constant_series_have_no_change(self) -> None:
        short, constant = courses([_series([0.0] * 5), _series([0.0] * 9)], LEVEL)
        assert not short.tested
        assert (constant.steps, constant.slope) == ((), 0.0)

    @examples(0.5)
    @given(
        st.integers(3, 17),
        st.sampled_from([-0.2, 0.2]),
        st.floats(-5, 5),
        st.sampled_from([1.0, 7.0]),
    )
    def test_units_and_times_do_not_matter_for_steps(
        self, place: int, size: float, unit: float, gap: float
    ) -> None:
        like = _like(10, 20)
        logs = like[0].logs + np.where(np.arange(20) < place, 0.0, size) + unit
        series = _series(logs.tolist(), 0, [gap * day for day in range(1, 21)])
        (step,) = courses([series, *like[1:]], LEVEL)[0].steps
        assert step.place == place
        assert step.earliest <= place <= step.latest
        backwards = _series(logs[::-1].tolist())
        (step,) = courses([backwards, *like[1:]], LEVEL)[0].steps
        assert step.place == 20 - place


def _runs(folder: Path) -> list[PastRun]:
    read = [read_past_run(each) for each in run_folders([folder])]
    return [each for each in read if isinstance(each, PastRun)]


def _trend(folder: Path) -> Trend:
    (trend,) = trends(_runs(folder), lambda _: RATE, LEVEL)
    return trend


NODES = ("n1", "n2", "n3", "n4", "n5")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 20 runs: `copy` falls at run 12 with the microcode, `n3` alone falls at run 8."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(3)
    for number in range(20):
        figures = []
        for metric in ("copy", "scale", "add", "triad"):
            for node in NODES:
                value = 1000 * float(np.exp(rng.normal(0, 0.01)))
                value *= 0.93 if metric == "copy" and number >= 12 else 1
                value *= 0.9 if metric == "add" and node == "n3" and number >= 8 else 1
                figures.append(Value(metric, (value, value * 1.01), node))
        new = {"microcode": "0xb"} if number >= 12 else {"microcode": "0xa"}
        moved = {"kernel": "6.2"} if number >= 8 else {"kernel": "6.1"}
        facts = {node: {**new, **(moved if node == "n3" else {})} for node in NODES}
        write_past_run(folder, number, figures, facts)
    return folder


class TestTrend:
    def test_a_change_has_its_date_size_and_candidate_event(self, machine: Path) -> None:
        trend = _trend(machine)
        (change,) = trend.changes
        assert change.points.line.figure.metric == "copy"
        assert (change.before, change.at, change.after) == (11, 12, 12)
        assert change.change == pytest.approx(-0.07, abs=0.015)
        assert change.interval
        assert change.interval.low < change.change < change.interval.high
        assert change.better is False
        (event,) = change.events
        assert (event.trait, event.old, event.new) == ("microcode", "0xa", "0xb")
        assert event.nodes == NODES

    def test_a_node_that_falls_against_its_peers_is_named(self, machine: Path) -> None:
        trend = _trend(machine)
        (change,) = trend.drifting
        assert (change.points.line.node, change.points.line.figure.metric) == ("n3", "add")
        assert change.at == 8
        assert [event.trait for event in change.events] == ["kernel"]
        assert trend.compared_nodes == 20

    def test_the_interval_of_several_nodes_is_that_of_their_median(self, machine: Path) -> None:
        lines = _trend(machine).lines
        assert lines
        for points, _ in lines:
            assert (points.nodes == 5).all()
            assert (points.low <= points.value).all()
            assert (points.value <= points.high).all()

    def test_events_are_one_for_all_nodes(self, machine: Path) -> None:
        found = [(each.trait, each.where, each.after) for each in _trend(machine).events]
        assert found == [("kernel", "n3", 8), ("microcode", "n[1-5]", 12)]

    def test_unlike_figures_are_apart_and_programs_are_compared_without_a_test(
        self, tmp_path: Path
    ) -> None:
        for number in range(12):
            program = {"environment_hash": ("a" if number < 6 else "b") * 64}
            threads = {"parameters": {"threads": 4 if number < 6 else 8}}
            figures = [Value("copy", (1.0 + (number >= 6),), about=program)]
            figures.append(Value("scale", (1.0 + (number >= 6),), about=threads))
            write_past_run(tmp_path, number, figures)
        trend = _trend(tmp_path)
        assert trend.changes == ()
        assert len(trend.lines) == 4
        (other,) = trend.reprogrammed
        assert other.change == pytest.approx(1.0)
        assert other.new.line.figure.metric == "copy"

    def test_results_of_computation_and_zeros_are_not_tested(self, tmp_path: Path) -> None:
        for number in range(8):
            write_past_run(tmp_path, number, [Value("copy", (0.0,)), Value("scale", (1.0,))])
        digits = RATE.model_copy(update={"type": "digits"})

        def metric(figure: PastFigure) -> Metric:
            return digits if figure.metric == "scale" else RATE

        (trend,) = trends(_runs(tmp_path), metric, LEVEL)
        assert trend.tested == 0

    def test_each_origin_is_a_group(self, tmp_path: Path) -> None:
        for number, origin in enumerate(["measured", "imported"]):
            write_past_run(tmp_path, number, [Value("copy", (1.0,), about={"origin": origin})])
        found = trends(_runs(tmp_path), lambda _: None, LEVEL)
        assert [each.group[2] for each in found] == ["imported", "measured"]

    def test_a_new_module_in_a_slot_is_a_difference(self) -> None:
        old, new = {"DIMM A1": "M393 01", "kernel": "6"}, {"DIMM A1": "M393 02", "kernel": "6"}
        assert differences(old, new) == [("DIMM A1", "M393 01", "M393 02")]
        assert differences({}, {"NIC driver": "ice"}) == [("NIC driver", "", "ice")]


class TestReading:
    def test_a_sound_run_is_read_and_not_changed(self, tmp_path: Path) -> None:
        folder = write_past_run(tmp_path, 0, [Value("copy", (1.0, 2.0, 3.0))])
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        run = read_past_run(folder)
        assert isinstance(run, PastRun)
        assert (run.run, run.value.tolist(), run.low.tolist()) == (run_id(0), [2.0], [1.0])
        assert list(run.hosts) == ["n1"]
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before

    def test_an_invalid_result_is_counted_and_left_out(self, tmp_path: Path) -> None:
        invalid = {"verdict": "INVALID", "value": None}
        figures = [Value("copy", (1.0,)), Value("scale", (1.0,), about=invalid)]
        run = read_past_run(write_past_run(tmp_path, 0, figures))
        assert isinstance(run, PastRun)
        assert (len(run.value), run.invalid) == (1, 1)

    def test_a_run_without_a_valid_figure_is_not_called_damaged(self, tmp_path: Path) -> None:
        invalid = {"verdict": "INVALID"}
        figures = [Value(name, (1.0,), about=invalid) for name in ("copy", "scale")]
        found = read_past_run(write_past_run(tmp_path, 0, figures))
        assert isinstance(found, LeftOut)
        assert found.reason == "verdict.json has no valid figure: each one is INVALID"

    @pytest.mark.fault("history-unfinished-run")
    def test_an_unfinished_run_is_left_out(self, tmp_path: Path) -> None:
        folder = write_past_run(tmp_path, 0, [Value("copy", (1.0,))])
        (folder / "verdict.json").unlink()
        found = read_past_run(folder)
        assert isinstance(found, LeftOut)
        assert found.reason == "unfinished: it has no verdict.json"

    @pytest.mark.fault("history-damaged-run")
    @pytest.mark.parametrize("damage", ["cut", "word", "link", "time"])
    def test_a_damaged_run_is_left_out(self, tmp_path: Path, damage: str) -> None:
        folder = write_past_run(tmp_path, 0, [Value("copy", (1.0,))])
        path = folder / "verdict.json"
        text = path.read_text()
        if damage == "link":
            path.rename(tmp_path / "other.json")
            path.symlink_to(tmp_path / "other.json")
        if damage == "time":
            write_evidence(folder, {}, {})
        damaged = {
            "cut": text[: len(text) // 2],
            "word": text.replace("UNJUDGED", "GREAT").replace('"GREAT": 1', '"UNJUDGED": 1'),
            "time": text.replace(run_id(0), "mine"),
        }
        if damage in damaged:
            path.write_text(damaged[damage])
        found = read_past_run(folder)
        assert isinstance(found, LeftOut)
        words = {"cut": "not end", "word": "verdict", "link": "link"}
        assert words.get(damage, "time") in found.reason

    def test_a_damaged_node_leaves_the_figures(self, tmp_path: Path) -> None:
        folder = write_past_run(tmp_path, 0, [Value("copy", (1.0,))])
        write_evidence(folder, {}, {"n1.json": "{"})
        run = read_past_run(folder)
        assert isinstance(run, PastRun)
        notes = ("nodes/n1.json is damaged", "software.json is missing or damaged")
        assert (run.hosts, run.notes) == ({}, notes)

    def test_links_are_not_further_runs(self, tmp_path: Path) -> None:
        folder = write_past_run(tmp_path, 0, [Value("copy", (1.0,))])
        (tmp_path / "latest").symlink_to(folder)
        (tmp_path / "notes").mkdir()
        assert run_folders([tmp_path]) == [folder] == run_folders([folder])


@pytest.mark.soak
def test_few_steady_histories_have_a_change_and_most_falls_are_found() -> None:
    for length in (24, 60):
        wrong, right = shares(length, 100)
        assert wrong <= 0.05
        assert right >= 0.95


class TestVisibleStep:
    @pytest.mark.parametrize("runs", [8, 24])
    def test_the_stated_step_is_right_within_ten_percent(self, runs: int) -> None:
        random = np.random.default_rng(runs)
        trials, figures = 60, 15
        found = dict.fromkeys((0.85, 1.1), 0)
        days = np.arange(runs, dtype=np.float64)

        def course(step: float) -> tuple[bool, float]:
            logs = 0.01 * random.standard_normal((figures, runs))
            logs[0, runs // 2 :] -= step
            first = courses([LevelSeries(days, row, 0) for row in logs], 0.01)[0]
            return bool(first.steps or first.slope), first.visible

        for _ in range(trials):
            _, stated = course(0.0)
            for part in found:
                found[part] += course(part * stated)[0]
        assert found[0.85] < POWER * trials <= found[1.1] + 1


class TestPredictedRuns:
    @staticmethod
    def found(runs: Path) -> dict[str, Trend]:
        read = [read_past_run(folder) for folder in run_folders([runs])]
        past = sorted((r for r in read if isinstance(r, PastRun)), key=lambda r: r.started)
        return {each.group[2]: each for each in trends(past, lambda _: None, 0.01)}

    @pytest.mark.parametrize("level", [0.5, 40.0])
    def test_predicted_runs_change_no_trend_of_measured_ones(
        self, tmp_path: Path, level: float
    ) -> None:
        about = {"origin": "predicted"}
        for number in range(24):
            value = 100.0 * (1 if number < 12 else 0.9) * (1 + 0.001 * (number % 3))
            for folder in ("alone", "mixed"):
                write_past_run(tmp_path / folder, 2 * number + 1, [Value("copy", (value,))])
            twin = [Value("copy", (level * number + 1,), about=about)]
            facts = {"n1": {"cpu_model": "the machine of the simulation"}}
            write_past_run(tmp_path / "mixed", 2 * number, twin, facts)
        alone, mixed = self.found(tmp_path / "alone"), self.found(tmp_path / "mixed")
        assert set(mixed) == {"measured", "predicted"}
        assert self.facts(mixed["measured"]) == self.facts(alone["measured"])

    @staticmethod
    def facts(trend: Trend) -> list[object]:
        lines = [(points.line, points.value.tolist(), len(c.steps)) for points, c in trend.lines]
        return [*lines, *((each.first, each.last, each.change) for each in trend.changes)]

    def test_a_run_with_both_is_left_out(self, tmp_path: Path) -> None:
        both = [Value("copy", (1.0,)), Value("copy", (2.0,), about={"origin": "predicted"})]
        folder = write_past_run(tmp_path, 0, both)
        found = read_past_run(folder)
        assert not isinstance(found, PastRun)
        assert found.reason == "verdict.json has figures of several origins"
