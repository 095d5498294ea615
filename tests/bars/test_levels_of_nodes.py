"""Racks that are slower, and a slope along node numbers, are named; healthy noise names nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.bars.judged import judged
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item

from proofmark.common.message import localized
from proofmark.common.translation import in_language
from proofmark.judge.fleet.populations import Levels, levels_of
from proofmark.judge.judging import judge_run
from proofmark.runs.run import open_run

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
HEALTHY: dict[str, Draw] = {
    "normal": lambda random, count: random.standard_normal(count),
    "long tails": lambda random, count: random.standard_t(3, count),
}


def levels(relative: NDArray[np.float64], random: np.random.Generator) -> Levels:
    """Return the levels of nodes in racks of 8, with a BIOS and a microcode by chance."""
    names = [f"r{number // 8}n{number:03}" for number in range(len(relative))]
    places = {
        name: {
            "rack": f"rack-{number // 8}",
            "BIOS": f"{random.integers(2)}",
            "microcode": f"{random.integers(3)}",
        }
        for number, name in enumerate(names)
    }
    return levels_of(names, (1e5 * np.exp(relative)).round(1), places, 0.01, "MB/s")


@pytest.mark.parametrize("trials", [25, pytest.param(2000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("nodes", [8, 48, 200])
@pytest.mark.parametrize("tails", HEALTHY)
def test_healthy_nodes_have_one_level(tails: str, nodes: int, trials: int) -> None:
    """Any level or slope is named in at most 1 of 100 fleets (`family_level`), at 5 % noise."""
    named = 0
    for seed in range(trials):
        random = np.random.default_rng(seed)
        found = levels(0.05 * HEALTHY[tails](random, nodes), random)
        named += bool(found.message)
    assert named <= 0.01 * trials + 2 * np.sqrt(0.01 * trials)


@pytest.mark.core("the words of two levels on the page")
@pytest.mark.parametrize("noise", [0.003, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_what_separates_levels_is_named(seed: int, noise: float) -> None:
    random, number = np.random.default_rng(seed), np.arange(48)
    usual = noise * random.standard_normal(48)
    racks = levels(usual - 0.05 * (number // 8 % 2), random)
    assert f"{racks.message}".endswith("; rack: rack-1, rack-3, rack-5 | rack-0, rack-2, rack-4")
    assert racks.lower.tolist() == (number // 8 % 2 == 1).tolist()
    apart = float(f"{racks.message.fields['gap']}")
    assert apart == pytest.approx(4.9, abs=0.8 if noise < 0.01 else 2)
    odd = levels(usual - 0.05 * (number % 2), random)
    assert f"{odd.message}".endswith("; host number modulo 2: 1 | 0")
    with in_language("ko"):
        assert "나눈 나머지: 1 | 0" in localized(odd.message)
    slope = levels(usual - 0.05 * number / 48, random)
    assert slope.message.code == "levels-slope" and not slope.lower.any()
    fields = slope.message.fields
    assert {"first": "r0n000", "last": "r5n047"}.items() <= fields.items()
    one, other = (float(f"{fields[end]}".partition(" ")[0]) for end in ("one", "other"))
    assert (one, other) == pytest.approx((1e5, 0.95e5), rel=0.01)
    assert float(f"{fields['gap']}") == pytest.approx(4.9, abs=0.8 if noise < 0.01 else 2)


@pytest.mark.parametrize("seed", range(5))
def test_a_slope_in_each_rack_is_named(seed: int) -> None:
    """The upper nodes of a rack are warmer; a slope over all nodes is not called one of racks."""
    random, number = np.random.default_rng(seed), np.arange(48)
    usual = 0.003 * random.standard_normal(48)
    found = levels(usual - 0.06 * (number % 8) / 7, random).message
    assert found.code == "levels-slope-in"
    assert f"{found.fields['fact']}" in {"rack", "host number 1"}
    one, other = (float(f"{found.fields[end]}".partition(" ")[0]) for end in ("one", "other"))
    assert other / one == pytest.approx(0.94, abs=0.015)
    whole = levels(usual - 0.06 * number / 47, random).message
    assert whole.code == "levels-slope"


@pytest.mark.parametrize(("apart", "named"), [(0.015, False), (0.025, True)])
def test_levels_are_named_from_two_percent_on(apart: float, named: bool) -> None:
    random, number = np.random.default_rng(1), np.arange(48)
    found = levels(0.0002 * random.standard_normal(48) - apart * (number // 8 % 2), random)
    assert bool(found.message) is named


@pytest.mark.parametrize("low", [10, 20, 30, 40])
def test_neighbours_of_a_coarse_value_are_one_level(low: int) -> None:
    """Whole microseconds: one step is 2.5 to 10 %, and says nothing; two steps are two levels."""
    racks = [number // 8 for number in range(48)]
    names = [f"n{number:03}" for number in range(48)]
    places = {name: {"rack": f"{rack}"} for name, rack in zip(names, racks, strict=True)}
    for steps in (1, 2):
        values = np.array([low + steps * (rack % 2) for rack in racks], dtype=float)
        values[0] = low + 1  # the step shows
        found = levels_of(names, values, places, 0.01, "us")
        assert bool(found.message) is (steps == 2)


def test_levels_without_a_known_fact_name_their_nodes() -> None:
    random, number = np.random.default_rng(1), np.arange(48)
    slow = (number**2 * 7 + number * 3) % 11 < 5
    found = levels(0.003 * random.standard_normal(48) - 0.05 * slow, random)
    assert "no place and no setting that is known separates them" in f"{found.message}"
    assert found.lower.tolist() == slow.tolist()


@pytest.mark.parametrize(("limit", "code", "word"), [(99e3, 1, "FAIL"), (80e3, 0, "PASS")])
def test_slower_racks_are_named_and_are_no_noise(
    limit: float, code: int, word: str, tmp_path: Path
) -> None:
    """The limit of the contract decides beside them; like nodes accept and fail nothing."""
    random, rates = np.random.default_rng(1), dict[str, list[float]]()
    for number in range(24):
        values = (1e5 - 5e3 * (number // 4 % 2)) * np.exp(random.normal(0, 0.003, 3))
        rates[f"n{number:02}"] = values.round(1).tolist()
    items = [item(case="fake", metric="rate", value=limit, unit="MB/s", at_least=1)]
    run = fleet_run(tmp_path, rates, rack=4, items=items, more=2)
    found, lines = judged(run)
    figures = judge_run(open_run(run.folder)).fleet.figures
    apart = f"{figures[0].apart}"
    assert (found, lines.partition(":")[0]) == (code, word)
    assert " % apart: 12 near" in apart
    assert apart.endswith("; rack: rack-002, rack-004, rack-006 | rack-001, rack-003, rack-005")
    assert not any(each.flagged for each in figures)
    assert word == "FAIL" or "two levels of like nodes" in lines
