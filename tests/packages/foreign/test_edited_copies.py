"""A copy of the output of another node with altered rows is named, and no healthy output is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.fixtures.adopted_cluster import BANDWIDTH
from tests.fixtures.kit import examples
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import BENCHMARKS

from proofmark.cases.loading import load_benchmarks
from proofmark.judge.judging import judge_run
from proofmark.packages.foreign.adoption import adopt_folder
from proofmark.packages.foreign.adoption_request import AdoptionRequest
from proofmark.packages.foreign.copied_outputs import edited_copies
from proofmark.records.columns import Record, Records

SIZES = [2**power for power in range(21)]


def records_of(values: NDArray[np.float64], repeats: int = 1) -> Records:
    """Return the bandwidths of nodes: one row for each output, `repeats` rows for each node."""
    usual: dict[str, Any] = dict.fromkeys(Record.__dataclass_fields__, "")
    usual |= {"case": "osu-bw", "benchmark": "Bandwidth", "metric": "bandwidth", "unit": "MB/s"}
    usual |= {"origin": "imported", "attempt": 1, "valid": True}
    found = []
    for number, row in enumerate(values):
        node, repeat = divmod(number, repeats)
        names = {"step": f"{repeat:04}-osu-bw/n{node}", "node": f"n{node}", "repeat": repeat + 1}
        for size, value in zip(SIZES, row, strict=True):
            more = {"value": float(value), "parameters": {"bytes": size}}
            found.append(Record(**{**usual, **names, **more}))
    return Records.of(found)


def fleet(random: np.random.Generator, outputs: int, decimals: int = 2) -> NDArray[np.float64]:
    """Return sound outputs: each node has a factor, and each row a noise of its own."""
    level = np.array([min(12000.0, 5.0 * size) for size in SIZES])
    factors = 1 + 0.01 * random.standard_normal((outputs, 1))
    noise = 1 + 0.002 * random.standard_normal((outputs, len(SIZES)))
    return np.round(level * factors * noise, decimals)


def named(values: NDArray[np.float64], repeats: int = 1) -> set[str]:
    return {*edited_copies(records_of(values, repeats), shipped_benchmarks())}


@pytest.mark.fault("copied-output")
@pytest.mark.parametrize(("outputs", "altered"), [(12, 1), (20, 3), (60, 8), (300, 8)])
def test_a_copy_with_altered_rows_is_named_alone(outputs: int, altered: int) -> None:
    values = fleet(np.random.default_rng(outputs), outputs)
    assert named(values) == set()  # the control
    values[1] = values[4]
    values[1, -altered:] = np.round(values[1, -altered:] * 1.3, 2)
    assert named(values) == {"n1", "n4"}


@pytest.mark.fault("copied-output")
def test_several_altered_copies_of_one_output_are_named() -> None:
    values = fleet(np.random.default_rng(1), 40)
    for copy in (7, 8, 9):
        values[copy] = values[3]
        values[copy, copy + 5] *= 1.1
    assert named(values) == {"n3", "n7", "n8", "n9"}


@examples(10)
@given(st.data())
def test_sound_outputs_are_never_named(data: st.DataObject) -> None:
    """Nodes alike but for noise, few digits, coarse clocks, values that follow from each other."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    nodes = data.draw(st.integers(2, 60))
    repeats = data.draw(st.integers(1, 4))
    level = np.array([min(12000.0, 5.0 * size) for size in SIZES])
    spread, own = data.draw(st.sampled_from([(0.02, 0.003), (0.005, 0.001), (1e-3, 2e-4)]))
    factors = 1 + spread * random.standard_normal((nodes, 1)).repeat(repeats, axis=0)
    noise = 1 + own * random.standard_normal((nodes * repeats, len(SIZES)))
    values = level * factors * noise
    if data.draw(st.booleans()):  # the clock of the program is coarse
        ticks = data.draw(st.sampled_from([30, 1000, 30000]))
        values = level * ticks / np.round(ticks * level / values)
    assert named(np.round(values, data.draw(st.integers(0, 3))), repeats) == set()


def test_an_altered_copy_on_the_same_node_is_no_fault() -> None:
    values = fleet(np.random.default_rng(2), 40)
    values[1] = values[0]
    values[1, -1] *= 1.1
    assert named(values, repeats=2) == set()


@pytest.mark.fault("copied-output")
def test_an_altered_file_of_a_vendor_is_named_by_the_verdict(tmp_path: Path) -> None:
    random = np.random.default_rng(3)

    def scaled(line: str) -> str:
        words = line.split()
        if len(words) != 2 or not words[0].isdecimal():
            return line
        return f"{words[0]}  {float(words[1]) * (1 + 0.01 * random.standard_normal()):.2f}"

    folder = tmp_path / "outputs"
    folder.mkdir()
    for number in range(8):
        text = "\n".join(map(scaled, BANDWIDTH.splitlines()))
        (folder / f"node{number:03d}.out").write_text(f"{text}\n", encoding="utf-8")
    text = (folder / "node002.out").read_text(encoding="utf-8")
    altered = re.sub(r"(?m)^1048576 .*", "1048576  17999.99", text)
    (folder / "node005.out").write_text(altered, encoding="utf-8")
    request = AdoptionRequest(folder, {})
    run, _ = adopt_folder(tmp_path / "runs", request, load_benchmarks(BENCHMARKS))
    verdict = judge_run(run)
    found = {each.node for each in verdict.faults if "edited-copy" in each.reason.codes}
    assert found == {"node002", "node005"}
