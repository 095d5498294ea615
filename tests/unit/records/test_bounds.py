"""Physical bounds: an impossible value is INVALID, and every true value at hand is possible."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import carried_out, make_kit
from tests.fixtures.outputs import readings_of
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import PROBES, ROOT

from proofmark.cases.case import LARGEST
from proofmark.cases.reader.engine import Reading
from proofmark.cases.reference import Metric
from proofmark.common.errors import BadInput
from proofmark.common.message import NOTHING
from proofmark.judge.judging import judge_run
from proofmark.plan.plan import Step
from proofmark.records.columns import Record
from proofmark.records.step_records import Bound, StepBounds, ValueBounds
from proofmark.site.ceilings import UNIVERSAL, Ceilings, ceilings_of
from proofmark.site.node.facts import parse_probe

SAMPLES = sorted((ROOT / "benchmarks" / "samples").glob("*.expected.json"))

SIX_CHANNELS = 1.5 * 12 * 8 * 2666
"""Memory of the node of the probe in MB/s, with the margin of the ceilings."""

RATE = {"unit": "MB/s", "better": "higher", "bound": "{cache}", "what": "how fast"}

RATE_OF_1E8 = {"unit": "MB/s", "better": "higher", "bound": 100e6, "what": "how fast"}

TIME = {"unit": "us", "better": "lower", "bound": "{message_s}", "what": "how long"}


@cache
def ceilings(probe: str) -> Ceilings:
    text = (PROBES / f"{probe}.txt").read_text(encoding="utf-8")
    return ceilings_of(parse_probe(text, probe).model_copy(update={"virtual": None}))


def step(case: str, **changes: Any) -> Step:
    usual: dict[str, Any] = {
        **{"id": case, "case": case, "repeat": 1, "nodes": ["n1"], "ranks": 2, "threads": 1},
        **{"placement": "close", "parameters": {}, "derived": {}, "package": case},
        **{"program": case, "launch": "mpi", "arguments": [], "environment": {}, "inputs": {}},
        **{"output": "stdout", "variants": {}, "cpus": [], "seconds": 1, "timeout": 3600},
        **{"bytes": 0},
    }
    return Step.model_validate({**usual, **changes})


def reading(case: str, metric: str, value: float, **parameters: Any) -> Reading:
    unit = shipped_benchmarks().case(case).metrics[metric].unit
    return Reading(case, case, metric, value, unit, parameters, True, NOTHING, None)


def error(each: Reading, of: Step, machine: Ceilings, nodes: int = 1) -> str:
    """Return why the value of `each` is impossible by the bounds of its case."""
    bounds = StepBounds(of, shipped_benchmarks().case(each.case), between_nodes=nodes > 1)
    assert each.value is not None
    return bounds.of(each, machine, nodes).error(each.metric, each.value, each.unit)


def measured(folder: Path, number: str, **metric: Any) -> Record:
    """Return the record of a program that prints `number`."""
    kit = make_kit(folder / number)
    kit.case(sweep={"size": 1}, metrics={"rate": {**RATE, **metric}})
    kit.program(f'echo "size $1"; echo "rate {number}"; echo END')
    run = carried_out(kit.run())
    (record,) = kit.records(run)
    return record


@pytest.mark.parametrize(("value", "possible"), [("100", True), ("1e308", False)])
@pytest.mark.fault("value-above-bound")
def test_a_program_that_prints_an_impossible_rate(
    tmp_path: Path, value: str, possible: bool
) -> None:
    """No fact of the node is known: the universal bound applies."""
    record = measured(tmp_path, value)
    assert (record.valid, record.value) == (possible, float(value))
    assert possible or record.reason.startswith("rate 1e+308 MB/s is above the physical bound ")


def test_a_possible_rate_is_judged(tmp_path: Path) -> None:
    """The control: all nodes are within the bound of their memory, one narrowly."""
    run = fleet_run(tmp_path, {"n1": 100.0, "n2": SIX_CHANNELS - 1}, bound="{memory}")
    assert [*judge_run(run).of("INVALID")] == []


@pytest.mark.fault("value-above-bound")
def test_a_rate_above_the_memory_of_the_node_is_invalid_with_the_facts(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, {"n1": 100.0, "n2": 410_000.0}, bound="{memory}")
    verdict = judge_run(run)
    (invalid,) = verdict.of("INVALID")
    assert (invalid.record.node, invalid.record.value) == ("n2", 410_000)
    assert invalid.reason == (
        "rate 410000 MB/s is above the physical bound 3.84e+05 MB/s: "
        "1.5 × 12 channels × 8 B × 2666 MT/s"
    )
    assert verdict.exit_code() == 2


def test_the_bound_of_an_emulated_node_is_universal(tmp_path: Path) -> None:
    """The memory of an emulated node is not the memory that was measured."""
    run = fleet_run(tmp_path, {"n1": 410_000.0}, bound="{memory}", partition={"origin": "emulated"})
    assert [*judge_run(run).of("INVALID")] == []


@pytest.mark.fault("time-impossible")
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("100", ""),
        ("0", "rate is 0: it is below the resolution of the output"),
        ("0.0019", "rate 0.0019 us is below the physical bound 0.002 us: "),
        ("59e6", ""),
        ("61e6", "rate 6.1e+07 us is above the physical bound 6e+07 us: the time limit of the "),
        ("1e308", "rate 1e+308 us is above the physical bound 6e+07 us: the time limit of the "),
    ],
)
def test_a_time_is_positive_and_within_the_time_limit(
    tmp_path: Path, value: str, reason: str
) -> None:
    kit = make_kit(tmp_path)
    read = {
        "finds": "rate",
        "starts": "fake",
        "untitled": True,
        "require": {"END": "END"},
        "keys": {"(?P<key>rate) (?P<value>.*)": {"rate": "rate"}},
    }
    metric = {"unit": "us", "better": "lower", "bound": "{message_s}", "what": "how slow"}
    kit.case(sweep={"size": 1}, timeout=60, metrics={"rate": metric}, read=read)
    kit.program(f'echo "rate {value}"; echo END')
    run = carried_out(kit.run())
    (record,) = kit.records(run)
    assert record.valid == (not reason)
    assert record.reason.startswith(reason)


@pytest.mark.parametrize("bound", ["{1 / (size - 1)}", "{log2(0)}", "universal"])
def test_a_bound_that_cannot_be_computed_is_that_of_the_unit(tmp_path: Path, bound: str) -> None:
    assert measured(tmp_path, "2e10", bound=bound).valid
    assert measured(tmp_path, "2.1e10", bound=bound).reason.endswith("no node has more byte/s")


@pytest.mark.parametrize("bound", [5e6, "{1e6 * (size + 4)}"])
def test_a_bound_is_in_the_base_unit(tmp_path: Path, bound: Any) -> None:
    assert measured(tmp_path, "5", bound=bound).valid
    reason = measured(tmp_path, "5.01", bound=bound).reason
    assert reason.startswith("rate 5.01 MB/s is above the physical bound 5 MB/s: ")
    assert reason.endswith("size 1" if isinstance(bound, str) else "by its definition 5000000.0")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_measured_value_of_the_samples_is_possible(sample: Path) -> None:
    """They were measured on a virtual machine with two cores like that of the probe."""
    text = (PROBES / "live-kvm-zen3.txt").read_text(encoding="utf-8")
    machine = ceilings_of(parse_probe(text, "vm"))
    output = next(
        path
        for path in sample.parent.glob(f"{sample.name.removesuffix('.expected.json')}.*")
        if path != sample
    )
    case = next(
        name for name in shipped_benchmarks().cases if f'"case": "{name}"' in sample.read_text()
    )
    readings = readings_of(case, output.read_text(encoding="utf-8"))
    assert readings
    for each in readings:
        if each.valid:
            assert error(each, step(case, parameters={"working_set": "memory"}), machine) == ""


def published() -> list[tuple[str, str, float, Mapping[str, Any], str]]:
    """Return case, metric, value, parameters and system of the published figures of the cases."""
    return [
        (name, each.metric, each.value, each.where, each.system)
        for name, case in shipped_benchmarks().cases.items()
        for each in case.references
        if each.value is not None and each.system in ("knl", "skl")
    ]


def test_there_are_published_figures() -> None:
    assert len(published()) >= 3


@pytest.mark.parametrize(("case", "metric", "value", "where", "system"), published())
def test_every_published_figure_is_possible(
    case: str, metric: str, value: float, where: Mapping[str, Any], system: str
) -> None:
    """The bound is at least a third above the figures of the papers, on one node or several."""
    machine = ceilings({"knl": "knl-7250-quadrant-flat", "skl": "skl-2x6148"}[system])
    nodes = int(where.get("nodes", 1))
    value /= nodes
    of = step(case, parameters={"working_set": "memory"})
    assert error(reading(case, metric, 1.33 * value, **where), of, machine) == ""


@pytest.mark.parametrize("machine", ["knl-7250-quadrant-flat", "skl-2x6148", "spr-vm"])
@pytest.mark.parametrize("case", sorted(shipped_benchmarks().cases))
def test_every_bound_of_the_cases_can_be_computed(case: str, machine: str) -> None:
    """An impossible value is refused by the bound of the case, not only by that of the unit."""
    parameters = {
        **{"array": 1 << 40, "n": 1000, "tasks": 2, "block_bytes": 2**30, "bytes": 8},
        **{"pairs": 2, "megabytes": 1 << 20},
    }
    for name, metric in shipped_benchmarks().case(case).metrics.items():
        each = reading(case, name, 1, **parameters)
        bounds = StepBounds(step(case), shipped_benchmarks().case(case), between_nodes=False)
        found = bounds.of(each, ceilings(machine), 1)
        assert (found.least is not None) == (metric.better == "lower")
        assert found.greatest is not None
        if metric.better == "higher":
            assert "no node has more" not in found.greatest.explain()


@given(value=st.floats(min_value=0, allow_infinity=False, allow_nan=False))
def test_the_sides_of_a_bound(value: float) -> None:
    """Exactly the values beyond the bound are impossible, and the reason has the value."""
    case = shipped_benchmarks().case("stream")
    of = step("stream", parameters={"working_set": "cache"})
    each = reading("stream", "triad", value)
    found = StepBounds(of, case, between_nodes=False).of(each, UNIVERSAL, 1)
    assert found.greatest is not None
    text = found.error("triad", value, "MB/s")
    assert bool(text) == (value > found.greatest.value)
    assert not text or text.startswith(f"triad {value:.6g} MB/s is above")


def test_a_metric_without_a_bound_is_refused(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.case(metrics={"rate": {key: RATE[key] for key in ("unit", "better", "what")}})
    with pytest.raises(BadInput, match=r"metrics\.rate\.bound: found nothing; accepted: a value"):
        kit.benchmarks()


@pytest.mark.parametrize(
    ("bound", "found"),
    [
        ("{memry}", "unknown name 'memry', did you mean 'memory'"),
        ("{memory *}", "'memory *' (invalid syntax)"),
        ("memory", "'memory'"),
        (-1, "-1"),
    ],
)
def test_a_bound_that_can_never_be_computed_is_refused(
    tmp_path: Path, bound: str | int, found: str
) -> None:
    kit = make_kit(tmp_path)
    kit.case(metrics={"rate": {**RATE, "bound": bound}})
    with pytest.raises(BadInput) as refused:
        kit.benchmarks()
    assert f"metrics.rate.bound: found {found}" in str(refused.value)


def bounds(
    folder: Path,
    unit: str = "MB/s",
    *,
    metric: str = "rate",
    between: bool = False,
    nodes: int = 1,
    **changes: Any,
) -> ValueBounds:
    """Return the bounds of a reading of the metric, whose case has the keys `changes`."""
    usual = TIME if unit == "us" else RATE_OF_1E8
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
        both = ValueBounds(Bound(1.0, lambda: "low"), Bound(2.0, lambda: "high"))
        assert both.error("rate", value, "s") == reason

    def test_a_missing_bound_refuses_nothing(self) -> None:
        assert ValueBounds(None, None).error("rate", 1e308, "s") == ""
        assert ValueBounds(None, Bound(2.0, lambda: "high")).error("rate", -1.0, "s") == ""
        assert ValueBounds(Bound(1.0, lambda: "low"), None).error("rate", 1e308, "s") == ""

    def test_a_number_without_a_unit_is_shown_without_one(self) -> None:
        reason = ValueBounds(None, Bound(2.0, lambda: "high")).error("rate", 3.0, "")
        assert reason == "rate 3 is above the physical bound 2: high"


def told(found: ValueBounds) -> list[tuple[float, str] | None]:
    """Return both bounds, each with what it was computed from."""
    sides = (found.least, found.greatest)
    return [None if each is None else (each.value, each.explain()) for each in sides]


def test_a_higher_rate_is_better_so_its_bound_is_the_greatest(tmp_path: Path) -> None:
    found = bounds(tmp_path)
    assert found.least is None
    assert found.greatest is not None
    assert (found.greatest.value, found.greatest.explain()) == (
        100.0,
        "by its definition 100000000.0",
    )


def test_a_lower_time_is_better_so_its_bound_is_the_least(tmp_path: Path) -> None:
    found = bounds(tmp_path, "us")
    assert found.greatest is not None
    assert (found.greatest.value, found.greatest.explain()) == (
        3600 / 1e-6,
        "the time limit of the step is 3600 s",
    )
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
    assert found.explain() == source


@pytest.mark.parametrize(("nodes", "words"), [(1, "no node has"), (2, "no 2 nodes have")])
def test_a_metric_that_the_case_does_not_have_is_bounded_by_its_unit(
    tmp_path: Path, nodes: int, words: str
) -> None:
    found = bounds(tmp_path, metric="other", nodes=nodes)
    assert found.least is None and found.greatest is not None
    assert found.greatest.explain() == f"{words} more byte/s"
    universal = bounds(tmp_path / "universal", nodes=nodes, bound="universal")
    assert told(found) == told(universal)


def test_several_nodes_have_several_times_the_universal_bound(tmp_path: Path) -> None:
    one = bounds(tmp_path / "1", bound="universal").greatest
    three = bounds(tmp_path / "3", bound="universal", nodes=3).greatest
    assert one is not None and three is not None
    assert three.value == pytest.approx(3 * one.value)
    assert one.value == pytest.approx(LARGEST["byte/s"] / 1e6)


@pytest.mark.parametrize("bound", ["{placement}", "{1 / (size - 3)}", "{benchmark}"])
def test_a_bound_that_is_no_number_is_the_universal_one(tmp_path: Path, bound: str) -> None:
    found = bounds(tmp_path / "a", bound=bound)
    assert told(found) == told(bounds(tmp_path / "b", bound="universal"))


def test_the_source_names_the_values_that_the_bound_depends_on(tmp_path: Path) -> None:
    found = bounds(tmp_path, bound="{min(size, 5) * ranks * 1000000}").greatest
    assert found is not None
    assert (found.value, found.explain()) == (6.0, "ranks 2; size 3")


def test_a_text_is_no_value_that_a_bound_depends_on(tmp_path: Path) -> None:
    bound = "{3000000 if placement == 'close' else 1}"
    found = bounds(tmp_path, bound=bound).greatest
    assert found is not None
    assert (found.value, found.explain()) == (3.0, f"by its definition {bound}")


@pytest.mark.parametrize(("unit", "base"), [("", "part"), ("%", "part"), ("widgets", "widgets")])
def test_a_bound_by_the_unit_names_the_base_unit(tmp_path: Path, unit: str, base: str) -> None:
    found = bounds(tmp_path, unit, metric="other").greatest
    assert found is not None
    assert found.explain() == f"no node has more {base}"
