"""Of 100 healthy simulated fleets, at most one has a false FAIL."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
from tests.bars.bad_machines import CASE, LEVEL
from tests.fixtures.fleet import fleet_run

from proofmark.judge.judging import judge_run

OLDER = {"Xeon(R) Gold 6148": "Xeon(R) Gold 6100"}
"""A processor without a row, so that the floor of the case does not judge the slower nodes."""
SIZES = (1, 2, 4, 5, 8, 12, 19, 20, 24, 33)
SPREADS = (0.001, 0.003, 0.005, 0.01, 0.03)
NOISES = (0.001, 0.005, 0.01, 0.03, 0.1)


def false_failures(folder: Path, seed: int) -> int:
    """Return the number of FAIL figures and faults of a healthy fleet.

    The fleets differ in size, in the spread of their nodes and the noise of repeats, and in the
    number of repeats. Each third fleet has two classes of nodes, one of them 20 % slower; the name
    of the processor separates them. What was ordered is not stated: such a fleet is UNJUDGED.
    """
    random = np.random.default_rng(seed)
    nodes, repeats = SIZES[seed % len(SIZES)], int(random.integers(1, 6))
    spread, noise = random.choice(SPREADS), random.choice(NOISES)
    older = {f"n{number:03}" for number in range(nodes // 2)} if seed % 3 == 0 else set()
    rates = {}
    for number in range(nodes):
        host = f"n{number:03}"
        level = LEVEL * (0.8 if host in older else 1.0) * np.exp(random.normal(0, spread))
        rates[host] = (level * np.exp(random.normal(0, noise, repeats))).round(2).tolist()
    changes = dict.fromkeys(older, OLDER)
    verdict = judge_run(fleet_run(folder, rates, changes=changes, case=CASE))
    assert bool(older) == any(each.code == "order-unknown" for each in verdict.required)
    return verdict.counts["FAIL"] + verdict.counts["INVALID"] + len(verdict.faults)


@pytest.mark.parametrize("fleets", [len(SIZES), pytest.param(100, marks=pytest.mark.soak)])
def test_healthy_fleets_have_no_false_failure(tmp_path: Path, fleets: int) -> None:
    failed = []
    for seed in range(fleets):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        if false_failures(folder, seed):
            failed.append(seed)
        rmtree(folder)
    assert len(failed) <= fleets // 100, failed
