"""Fleets of each shape: levels, slopes, populations, noise, rounding, spikes and bad links.

Each row states its main fact. The whole comparison of each is in ``tests/golden/verdicts``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.pairs import Slower, fleet_of, fleet_of_nodes, nodes, other_leaf, pair_times

from proofmark.common.nodesets import hosts_of
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.fleet.populations import Levels, levels_of

COUNT = 24
NUMBER = np.arange(COUNT)
NAMES = tuple(f"r{number // 6}n{number:02}" for number in range(COUNT))
PLACES = {
    name: {
        "site": "here",
        "row": f"row-{number // 12}",
        "rack": f"rack-{number // 6}",
        "BIOS": f"1.{number % 3 // 2}",
    }
    for number, name in enumerate(NAMES)
}
"""Racks of six, rows of twelve; a third of the nodes has another BIOS; ``site`` is one for all."""
Shape = NDArray[np.float64]
"""The logarithms of the rates, around 0; shape (nodes,)."""


def noise(seed: int = 1, spread: float = 0.004) -> Shape:
    return spread * np.random.default_rng(seed).standard_normal(COUNT)


def rack(*slow: int, by: float = 0.05) -> Shape:
    return noise() - by * np.isin(NUMBER // 6, slow)


@pytest.mark.parametrize(
    ("relative", "code", "lower"),
    [
        pytest.param(noise(), "", (), id="alike"),
        pytest.param(rack(1), "levels", range(6, 12), id="a rack"),
        pytest.param(
            noise(spread=0.012) - 0.03 * np.isin(NUMBER // 6, (0, 2)),
            *("levels", (*range(6), *range(12, 18))),
            id="two racks in noise",
        ),
        pytest.param(rack(0, 2, by=0.025), "levels", (*range(6), *range(12, 18)), id="two racks"),
        pytest.param(
            noise() - 0.05 * (NUMBER % 3 == 2) - 0.001 * (NUMBER // 6),
            *("levels", range(2, COUNT, 3)),
            id="the BIOS and not the rack",
        ),
        pytest.param(noise() - 0.05 * (NUMBER % 2), "levels", range(1, COUNT, 2), id="a position"),
        pytest.param(
            noise(spread=0.002) - 0.05 * np.isin(NUMBER, (0, 3, 7, 10, 12, 17, 19, 22)),
            *("levels", (0, 3, 7, 10, 12, 17, 19, 22)),
            id="no known fact",
        ),
        pytest.param(noise() - 0.06 * NUMBER / 23, "levels-slope", (), id="falling"),
        pytest.param(noise() + 0.06 * NUMBER / 23, "levels-slope", (), id="rising"),
        pytest.param(noise() - 0.06 * (NUMBER % 6) / 5, "levels-slope-in", (), id="in each rack"),
        pytest.param(noise() - 0.05 * (NUMBER < 3), "", (), id="three slow nodes"),
        pytest.param(rack(1, by=0.015), "", (), id="less than a material change"),
    ],
)
def test_levels_and_slopes(relative: Shape, code: str, lower: tuple[int, ...]) -> None:
    found = of_shape(relative)
    assert found.message.code == code
    assert np.flatnonzero(found.lower).tolist() == [*lower]


def of_shape(relative: Shape) -> Levels:
    return levels_of(NAMES, (1e5 * np.exp(relative)).round(1), PLACES, 0.01, "MB/s")


def rates(relative: Shape, repeats: int = 1, spread: float = 0.0) -> Shape:
    """Return the rates of nodes, with noise of their repeats; shape (nodes, repeats)."""
    of_repeats = np.random.default_rng(2).standard_normal((len(relative), repeats))
    return (1e5 * np.exp(relative[:, None] + spread * of_repeats)).round(1)


def one_slow(*repeats: float) -> Shape:
    """Return three repeats of each node; those of the third node are `repeats` × its rate."""
    found = rates(noise(), 3, 0.003)
    found[2] *= np.array(repeats)
    return found


def of_nodes(values: Shape, *, known: bool = True) -> Fleet:
    names = NAMES[: len(values)]
    return fleet_of_nodes(values, names, PLACES, known=known)


TENTH = NUMBER % 8 == 3
"""Three of the nodes."""


@pytest.mark.parametrize(
    ("measured", "failed", "code"),
    [
        pytest.param(lambda: of_nodes(rates(noise())), 0, "", id="alike"),
        pytest.param(lambda: of_nodes(rates(rack(1, 3))), 0, "levels", id="two racks of four"),
        pytest.param(lambda: of_nodes(rates(rack(1), 3)), 6, "levels", id="one rack of four"),
        pytest.param(
            lambda: of_nodes(rates(noise() - 0.1 * TENTH, 3)), 3, "", id="three slow nodes"
        ),
        pytest.param(
            lambda: of_nodes(rates(noise() - 0.1 * TENTH, 3), known=False),
            *(3, ""),
            id="three slow nodes of unknown hardware",
        ),
        pytest.param(
            lambda: of_nodes(rates(noise() - 0.3 * (NUMBER % 2)), known=False),
            *(0, "nodes-populations"),
            id="two kinds of unknown hardware",
        ),
        pytest.param(
            lambda: of_nodes(rates(noise() - 0.3 * (NUMBER // 12)), known=False),
            *(0, ""),
            id="kinds of unknown hardware that rows separate",
        ),
        pytest.param(lambda: of_nodes(rates(noise(), 3, 0.05)), 0, "noisy", id="noisy repeats"),
        pytest.param(lambda: of_nodes(rates(noise(spread=0.04))), 0, "noisy", id="unlike nodes"),
        pytest.param(
            lambda: of_nodes(rates(noise(spread=0.04), 3, 0.012)),
            *(0, "noisy"),
            id="unlike nodes with noisy repeats",
        ),
        pytest.param(lambda: of_nodes(one_slow(0.9, 0.9, 0.9)), 1, "", id="slow in each repeat"),
        pytest.param(lambda: of_nodes(one_slow(0.9, 0.9, 1.0)), 0, "", id="slow in two of three"),
        pytest.param(lambda: of_nodes(one_slow(0.9, 1.0, 1.0)), 0, "", id="slow in one of three"),
        pytest.param(
            lambda: of_nodes(rates(noise(spread=0.6))), 0, "peers-blind", id="no limit sees a node"
        ),
        pytest.param(lambda: of_nodes(rates(noise()[:3])), 0, "peers-few", id="three nodes"),
        pytest.param(lambda: of_nodes(rates(noise()[:5])), 0, "", id="five nodes"),
        pytest.param(lambda: of_nodes(0 * rates(noise())), 0, "peers-zero", id="zeros"),
        pytest.param(
            lambda: of_nodes(np.where(TENTH, 0.53, 0.52)[:, None]), 0, "", id="two printed digits"
        ),
    ],
)
def test_nodes(measured: Callable[[], Fleet], failed: int, code: str) -> None:
    fleet = measured()
    figure = fleet.figures[0]
    said = figure.apart or figure.fleet_limit.powerless or figure.noise
    assert (len(fleet.failed), said.code) == (failed, code)


PAIRS, LEAF = 12, 7
FABRIC = {
    host: {"leaf": f"leaf-{(int(host[1:]) - 1) // LEAF}", "rack": f"rack-{int(host[1:]) % 3}"}
    for host in nodes(PAIRS)
}


def slower(bad: set[str], usual: Slower, least: int = 1) -> Slower:
    """Return that a bad node, or the link between two, takes 1.5 × the time."""

    def of_pair(one: str, other: str, size: int) -> float:
        hit = len({one, other} & bad) == len(bad) and size >= least
        return usual(one, other, size) * (1.5 if hit else 1)

    return of_pair


@pytest.mark.parametrize(
    ("bad", "factor", "places", "flagged"),
    [
        pytest.param(set(), 1.25, {}, set(), id="two distances of unknown leaves"),
        pytest.param(set(), 1.25, FABRIC, set(), id="two distances"),
        pytest.param({"n05"}, 1.25, FABRIC, {"n05"}, id="a bad node in two distances"),
        pytest.param({"n03", "n09"}, 1.0, {}, {"n03", "n09"}, id="a bad link"),
    ],
)
def test_pairs(
    bad: set[str], factor: float, places: dict[str, dict[str, str]], flagged: set[str]
) -> None:
    usual = other_leaf(LEAF, factor, 8192)
    fleet = fleet_of(pair_times(PAIRS, slower(bad, usual) if bad else usual), places)
    named = [{*hosts_of(each)} for figure in fleet.figures for each in figure.flagged]
    assert (set.intersection(*named) if named else set()) == flagged


def test_a_pair_that_is_slow_at_one_size_is_measured_again() -> None:
    times = pair_times(PAIRS, other_leaf(PAIRS, 1, 0))
    times["n01", "n02"][5] *= 3
    fleet = fleet_of(times)
    assert (len(fleet.spiked), len(fleet.failed)) == (1, 0)
