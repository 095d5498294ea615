"""The end of a run compared with its beginning, with the sensors as evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import START, seal
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import examples
from tests.fixtures.sensors import Lines, sense
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.cases.suite import Benchmarks
from proofmark.judge.aggregate import aggregate
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.stability.over_time import ChangesInRun, OverTime, over_time
from proofmark.records.columns import Execution, Measurand, Records
from proofmark.runs.run import Run

pytestmark = pytest.mark.core("a judge of each run of an hour or more")
REPEATS = 12
NODES = tuple(f"n{number}" for number in range(8))
PACKAGE = "class/powercap/intel-rapl:1/energy_uj"
CPU = "devices/system/cpu/cpu0"
HOT = {
    f"{CPU}/cpufreq/scaling_cur_freq": "1200000",
    "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "1200000",
    f"{CPU}/thermal_throttle/core_throttle_count": "40",
    "class/hwmon/hwmon2/temp1_input": "97000",
}
"""A processor that throttles: its clock falls, its counter rises, and it is hot."""


def rates(*, slow: float = 1.0, nodes: Sequence[str] = NODES) -> dict[str, list[float]]:
    """Return twelve repeats of each node; the last four of n3 are `slow` times as fast."""
    random = np.random.default_rng(4)
    every = {node: (100 * random.normal(1, 0.004, REPEATS)).tolist() for node in nodes}
    every["n3"][-4:] = [slow * value for value in every["n3"][-4:]]
    return every


def spread_over_hours(run: Run, sensors: Mapping[str, Sequence[Lines]]) -> Run:
    """Give the executions of `run` starts half an hour apart, and the lines of their sensors."""
    attempt = f"{run.plan.groups[0].jobs[0].id}/attempt-1"
    for path in run.folder.glob("workdir/steps/*/*/execution-*"):
        number = int(path.name.removeprefix("execution-")) - 1
        start = datetime.fromisoformat(START) + number * timedelta(minutes=30)
        when = json.loads((path / "when.json").read_text())
        (path / "when.json").write_text(
            json.dumps({**when, "start": start.isoformat(), "attempt": attempt})
        )
        node = path.parent.name
        lines = [{**line, "host": node} for line in sensors.get(node, [[]] * REPEATS)[number]]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (path / "telemetry.jsonl").write_text(text)
        seal(path)
    return run


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """Return the lines of a sound node and of a throttled one, from a tree of sysfs."""
    folder = tmp_path_factory.mktemp("sensors")
    energy = {PACKAGE: "2507000000"}
    return {
        "sound": sense(folder / "sound", "sensors-xeon", (10, energy)),
        "hot": sense(folder / "hot", "sensors-xeon", (10, {**energy, **HOT})),
    }


def over_time_of(verdict: Verdict) -> OverTime:
    found = verdict.added["over_time"]
    assert isinstance(found, OverTime)
    return found


def judged(folder: Path, looks: Mapping[str, Lines], *, slow: float, hot: bool) -> Verdict:
    sensors = throttled(looks) if hot else {node: [looks["sound"]] * REPEATS for node in NODES}
    return judge_run(spread_over_hours(fleet_run(folder, rates(slow=slow)), sensors))


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory, looks: dict[str, Lines]) -> Verdict:
    """Return the verdict on nodes that stay as they are."""
    return judged(tmp_path_factory.mktemp("steady"), looks, slow=1.0, hot=False)


def throttled(looks: Mapping[str, Lines]) -> dict[str, list[Lines]]:
    """Return the lines of the sensors of each execution: n3 throttles in the last four."""
    sound = [looks["sound"]] * REPEATS
    return {**dict.fromkeys(NODES, sound), "n3": [*sound[:-4], *[looks["hot"]] * 4]}


@pytest.mark.fault("throttled-node")
def test_a_node_that_throttles_in_the_last_third_is_named_with_its_cause(
    tmp_path: Path, looks: dict[str, Lines]
) -> None:
    verdict = judged(tmp_path, looks, slow=0.8, hot=True)
    (change,) = over_time_of(verdict).worse
    assert change.node == "n3"
    assert change.ratio == pytest.approx(0.8, abs=0.02)
    assert [node.host for node in verdict.bad.nodes] == ["n3"]
    likely = verdict.bad.nodes[0].likely
    assert "core_clock 2400 → 1200 MHz" in likely
    assert "throttled 0 → 37 events" in likely
    assert "node_temperature 63 → 97 °C" in likely
    assert verdict.as_json()["over_time"]["worse"][0]["node"] == "n3"


def test_the_report_names_the_node_and_its_sensors(tmp_path: Path, looks: dict[str, Lines]) -> None:
    run = spread_over_hours(fleet_run(tmp_path, rates(slow=0.8)), throttled(looks))
    (added,) = ChangesInRun(over_time_of(judge_run(run))).sections()
    section = added.section
    assert section.id == "over-time"
    text = str(section.blocks[0].tables)
    assert "n3" in text
    assert "core_clock 2400 → 1200 MHz" in text


def test_steady_nodes_are_not_named(steady: Verdict) -> None:
    assert (over_time_of(steady).worse, steady.bad.nodes) == ((), ())
    assert len(over_time_of(steady).changes) == len(NODES)
    assert over_time_of(steady).seconds == (REPEATS - 1) * 1800
    assert over_time_of(steady).window_s == 3600


def test_a_node_that_becomes_faster_is_not_named(tmp_path: Path, looks: dict[str, Lines]) -> None:
    verdict = judged(tmp_path, looks, slow=1.2, hot=False)
    assert over_time_of(verdict).worse == ()


def test_each_sensor_is_a_figure_of_its_node(steady: Verdict) -> None:
    figures = {
        (each.record.metric, each.record.parameters["sensor"]): each
        for each in steady.about(lambda record: record.benchmark == "sensors")
        if each.record.node == "n0"
    }
    assert {name for name, _ in figures} == {
        "node_power",
        "node_temperature",
        "core_clock",
        "throttled",
    }
    power = figures["node_power", "rapl"].record
    assert power.unit == "W"
    assert power.value == pytest.approx(250, rel=0.01)


@cache
def cases() -> Benchmarks:
    return shipped_benchmarks()


def series_run(values: Sequence[Sequence[float]], step_s: float = 1200) -> OverTime:
    """Return the comparison of the repeats of some nodes, `step_s` seconds apart."""
    executions = [
        Execution(f"s/{node}", number + 1, number + 1, start=1e9 + step_s * number)
        for node, of_node in enumerate(values)
        for number in range(len(of_node))
    ]
    count = len(executions)
    names = ("k", "k", "measured", "stream", "STREAM", "triad", "MB/s", "current", "", "e", "{}")
    zeros = np.zeros(count, dtype=np.int64)
    lengths = [len(of_node) for of_node in values]
    records = Records(
        "r",
        executions,
        [Measurand(*names)],
        [f"n{node}" for node in range(len(values))],
        [],
        np.arange(count),
        zeros,
        np.repeat(np.arange(len(values)), lengths),
        np.array([value for of_node in values for value in of_node], dtype=np.float64),
        zeros - 1,
    )
    return over_time(aggregate(records), cases())


def test_too_few_repeats_are_not_compared() -> None:
    assert series_run([[100.0, 100, 100, 50, 50]]).changes == {}


@pytest.mark.fault("speed-of-minutes")
@pytest.mark.parametrize(("step_s", "compared"), [(100, False), (110, True)])
def test_a_run_of_less_than_an_hour_is_not_compared(step_s: float, compared: bool) -> None:
    """The control is the run of 110 s × 33 intervals: it takes an hour."""
    values = 100 + np.random.default_rng(5).normal(0, 0.2, (2, 34))
    values[1, -12:] /= 2
    found = series_run(values.tolist(), step_s)
    assert [each.node for each in found.worse] == (["n1"] if compared else [])
    assert bool(found.changes) is compared


def test_a_figure_of_one_part_of_the_run_is_not_compared() -> None:
    """Ten repeats of n1 within the first three hours of a run of ten."""
    found = series_run(
        [[100.0 + number % 2 for number in range(31)], [100.0, 101] * 3 + [50.0] * 4]
    )
    assert [each.node for each in found.changes.values()] == ["n0"]


def test_healthy_machines_are_not_reported() -> None:
    random = np.random.default_rng(1)
    shapes = [(nodes, repeats) for nodes in (1, 4, 32) for repeats in (6, 12, 40)]
    wrong = sum(
        bool(series_run(random.normal(100, 2, shape).tolist()).worse)
        for shape in shapes
        for _ in range(10)
    )
    assert wrong <= 0.03 * 10 * len(shapes)


def test_a_drop_of_eight_percent_is_found_in_noise_of_one_percent() -> None:
    random = np.random.default_rng(2)
    found = 0
    for _ in range(20):
        values = random.normal(100, 1, (16, 20))
        values[5, -7:] *= 0.92
        found += [change.node for change in series_run(values.tolist()).worse] == ["n5"]
    assert found >= 18


@examples(1)
@given(st.floats(0.5, 0.9), st.floats(1e-3, 1e6), st.integers(8, 30))
def test_the_unit_does_not_matter(drop: float, scale: float, repeats: int) -> None:
    random = np.random.default_rng(3)
    values = random.normal(100, 0.5, (8, repeats))
    values[2, -(repeats // 3) :] *= drop
    one, other = series_run(values.tolist()), series_run((scale * values).tolist())
    assert [each.node for each in one.worse] == [each.node for each in other.worse] == ["n2"]
    assert one.worse[0].ratio == pytest.approx(other.worse[0].ratio)
