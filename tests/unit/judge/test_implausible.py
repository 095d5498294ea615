"""Copied outputs, two names of one machine, and results that are too good are faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.fleet import fleet_run
from tests.folders import BENCHMARKS, PROBES

from proofmark.cases.loading import load_benchmarks
from proofmark.judge.diagnosis.copied_outputs import copied_outputs, measured_places
from proofmark.judge.diagnosis.node_faults import same_machines
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Record, Records
from proofmark.site.node.facts import parse_probe

HOSTS = [f"n{number}" for number in range(8)]
RATES = {host: [100.123 + number / 7, 100.456 + number / 9] for number, host in enumerate(HOSTS)}


def verdict_of(folder: Path, rates: Mapping[str, Sequence[float]], **more: Any) -> Verdict:
    return judge_run(fleet_run(folder, rates, **more))


def named(verdict: Verdict) -> dict[str, str]:
    return {fault.node: str(fault.reason) for fault in verdict.faults}


def test_sound_nodes_are_not_named(tmp_path: Path) -> None:
    """The control."""
    assert named(verdict_of(tmp_path, RATES)) == {}


@pytest.mark.fault("copied-output")
def test_two_nodes_with_the_same_output_are_named(tmp_path: Path) -> None:
    verdict = verdict_of(
        tmp_path, {**RATES, "n5": [99.87654321, *RATES["n5"]], "n2": [99.87654321]}
    )
    assert named(verdict).keys() == {"n2", "n5"}
    assert "n[2,5] have the same output of fake" in named(verdict)["n2"]
    assert verdict.exit_code() == 1


def test_few_digits_are_equal_by_chance(tmp_path: Path) -> None:
    """Eight nodes: 28 pairs. A value with four digits is one of about a hundred."""
    assert named(verdict_of(tmp_path, {key: [100.5, 100.25] for key in HOSTS})) == {}


STREAM = ("copy", "scale", "add", "triad")


def stream_fleet(values: NDArray[np.float64]) -> Records:
    """Return a fleet of STREAM: one row of `values`, four rates, for each node."""
    usual: dict[str, Any] = dict.fromkeys(Record.__dataclass_fields__, "")
    usual |= {"case": "stream", "benchmark": "STREAM", "origin": "measured", "unit": "MB/s"}
    rows = [
        {
            "step": f"0001-stream/n{node}",
            "node": f"n{node}",
            "metric": metric,
            "value": float(value),
        }
        for node, row in enumerate(values)
        for metric, value in zip(STREAM, row, strict=True)
    ]
    further = {"attempt": 1, "repeat": 1, "parameters": {}, "valid": True}
    return Records.of([Record(**{**usual, **further, **row}) for row in rows])


@pytest.mark.parametrize("own", [False, True], ids=["one clock sets all four", "each by itself"])
def test_outputs_of_a_large_fleet_are_equal_by_chance(own: bool) -> None:
    """3,000 nodes: a copy is named unless the values of a sound output follow from each other."""
    random = np.random.default_rng(1)
    factors = 1 + 0.01 * random.standard_normal((3000, 4 if own else 1))
    values = np.round(np.array([7984.0, 7992.0, 7994.0, 7983.0]) * factors, 1)
    benchmarks = load_benchmarks(BENCHMARKS)
    equal = len(values) - len(np.unique(values, axis=0))
    assert (equal > 0) == (not own)
    assert copied_outputs(stream_fleet(values), benchmarks) == {}
    values[7] = values[2007]
    found = copied_outputs(stream_fleet(values), benchmarks)
    assert found.keys() == ({"n7", "n2007"} if own else set())


def test_digits_that_like_nodes_share_are_no_copy() -> None:
    """The residual of HPL is that of the matrix, and the time follows from the rate."""
    usual: dict[str, Any] = dict.fromkeys(Record.__dataclass_fields__, "")
    usual |= {"case": "hpl", "benchmark": "HPL", "origin": "measured", "node": "n1", "valid": True}
    metrics = ("rmax", "time", "residual")
    rows = [{**usual, "metric": name, "value": 1.5, "parameters": {}} for name in metrics]
    records = Records.of([Record(**{**row, "attempt": 1, "repeat": 1}) for row in rows])
    places = measured_places(records, load_benchmarks(BENCHMARKS))
    assert "residual" not in {records[place].metric for place in places.tolist()}
    assert len(places) > 0


def test_the_same_output_twice_on_one_node_is_no_copy(tmp_path: Path) -> None:
    assert named(verdict_of(tmp_path, {**RATES, "n2": [99.87654321] * 3})) == {}


def test_virtual_nodes_may_have_the_same_output(tmp_path: Path) -> None:
    rates = {key: [99.87654321] for key in HOSTS}
    assert named(verdict_of(tmp_path, rates, partition={"origin": "emulated"})) == {}


@pytest.mark.fault("copied-output")
@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (("boot_id",), "boot_id"),
        (("board_serial",), "board_serial"),
        (("boot_id", "board_serial", "product_serial"), "boot_id"),
        (("board_serial", "product_serial"), "board_serial"),
    ],
    ids=" ".join,
)
def test_two_names_of_one_machine_are_named(
    tmp_path: Path, keys: Sequence[str], shown: str
) -> None:
    """Also if it was restarted between the probes under its two names."""
    verdict = verdict_of(tmp_path / "same", RATES, changes=_shared(keys, ["n1", "n6"]))
    assert named(verdict).keys() == {"n1", "n6"}
    reasons = [str(fault.reason) for fault in verdict.faults]
    assert f"n[1,6] are one machine: {shown} same" in reasons
    assert verdict.exit_code() == 1


def test_nodes_of_one_chassis_are_no_fault(tmp_path: Path) -> None:
    """They share the product number, and have boards and boots of their own."""
    chassis = _shared(["product_serial"], HOSTS[:4])
    assert named(verdict_of(tmp_path, RATES, changes=chassis)) == {}


@pytest.mark.fault("copied-output")
def test_one_machine_in_a_chassis_is_named_alone(tmp_path: Path) -> None:
    """Four names in one chassis, of which two are one node; each key that they share is said."""
    chassis = _shared(["product_serial"], HOSTS[:4])
    twice = _shared(["boot_id", "board_serial", "product_serial"], HOSTS[1:3])
    verdict = verdict_of(tmp_path, RATES, changes={**chassis, **twice})
    assert named(verdict).keys() == {"n1", "n2"}
    assert {str(fault.reason) for fault in verdict.faults} == {
        f"n[1-2] are one machine: {key} same"
        for key in ("boot_id", "board_serial", "product_serial")
    }


def _shared(keys: Sequence[str], hosts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return changes that put one value in the lines of `keys`; what follows is another key."""
    changes = {f"| {key}: ": f"| {key}: same\n| old_{key}: " for key in keys}
    return dict.fromkeys(hosts, changes)


@pytest.mark.parametrize("number", ["To be filled by O.E.M.", "00000000", "Default string", ""])
def test_a_placeholder_is_no_serial_number(number: str) -> None:
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    firmware = {"board_serial": number, "product_serial": "C1", "chassis_serial": "C1"}
    facts = parse_probe(probe, "p").model_copy(update={"firmware": firmware, "boot_id": None})
    assert same_machines({"n1": facts, "n2": facts}, "measured") == {}
    only = facts.model_copy(update={"firmware": {"product_serial": "XY-42"}})
    assert same_machines({"n1": only, "n2": only}, "measured").keys() == {"n1", "n2"}
    other = only.model_copy(update={"boot_id": "another"})
    assert same_machines({"n1": only, "n2": other}, "measured") == {}
    real = facts.model_copy(update={"firmware": {"board_serial": "XY-42"}})
    assert same_machines({"n1": real, "n2": real}, "measured").keys() == {"n1", "n2"}
    assert same_machines({"n1": real, "n2": real}, "emulated") == {}


@pytest.mark.fault("too-good")
def test_a_node_far_above_its_peers_is_named(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, {**RATES, "n4": [170.0, 171.0]})
    assert named(verdict).keys() == {"n4"} and verdict.exit_code() == 1
    assert "too good to be true: fake rate is 1.69 ×" in named(verdict)["n4"]


def test_virtual_nodes_share_cores_and_are_not_named(tmp_path: Path) -> None:
    rates = {**RATES, "n4": [170.0, 171.0]}
    assert named(verdict_of(tmp_path, rates, partition={"origin": "emulated"})) == {}


def test_a_node_that_is_somewhat_better_is_not_named(tmp_path: Path) -> None:
    """The control."""
    assert named(verdict_of(tmp_path, {**RATES, "n4": [140.0, 141.0]})) == {}
    noisy = {host: [60.123 + 12 * at] for at, host in enumerate(HOSTS)}
    assert named(verdict_of(tmp_path / "noisy", noisy)) == {}


REFERENCE = {
    "metric": "rate",
    "kind": "floor",
    "rule": "memory_bandwidth",
    "at_least": 0.1,
    "source": "s",
}


def test_a_good_node_among_bad_ones_is_not_named(tmp_path: Path) -> None:
    """What it reaches is possible on its hardware."""
    rates = {host: [1000 * value for value in values] for host, values in RATES.items()}
    case = {"references": [REFERENCE]}
    good = verdict_of(tmp_path, {**rates, "n4": [170_000.0, 171_000.0]}, case=case)
    assert named(good) == {}
    above = verdict_of(tmp_path / "above", {**rates, "n4": [262_000.0, 263_000.0]}, case=case)
    assert named(above).keys() == {"n4"} and "too good to be true" in named(above)["n4"]


@pytest.mark.fault("too-good")
def test_memory_above_the_rate_of_its_modules_is_named(tmp_path: Path) -> None:
    """Twelve modules of 2666 MT/s have 255.9 GB/s."""
    for rate, hosts in ((275_000.0, {"n1"}), (262_000.0, set())):
        verdict = verdict_of(tmp_path / f"{rate}", {"n1": [rate]}, case={"references": [REFERENCE]})
        assert named(verdict).keys() == hosts
        assert all("bandwidth of the memory modules" in text for text in named(verdict).values())
