"""The slow elements of a simulated fat tree of 8,305 nodes, measured in 16 rounds and 16 waves."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fixtures.fat_tree import FatTree, fabric

from proofmark.packages.fabric.link_fit import fit
from proofmark.records.columns import Numbers

HOSTS, LEVEL = 8305, 0.01
FABRICS = {
    # Oversubscribed 2:1; the levels of the second one too.
    "two levels": fabric(("leaf", 32, 16)),
    "three levels": fabric(("leaf", 32, 16), ("pod", 512, 128)),
    "three levels, 1:1": fabric(("leaf", 24, 24), ("pod", 576, 576)),
}
KINDS = ("node", "uplink", "switch", "spine")
HEALTHY, FAULTY = 100, 20
LEAST = 5
"""The least number of measurements of a planted fault."""


def names(tree: FatTree, numbers: set[int]) -> list[str]:
    return sorted(tree.elements.element(number).name for number in numbers)


def planted(
    tree: FatTree, generator: np.random.Generator, limited: Numbers | None = None
) -> dict[int, float]:
    """Return one to five faults of random kinds, each 25 to 60 % slow.

    With `limited`, the number of measurements of each element, an element has `LEAST` or more. The
    last switches of 8,305 nodes have few nodes, and some of their uplinks carry almost nothing. No
    fault is a part of another one, which would hide it.
    """
    faults: dict[int, float] = {}
    enough = np.full(len(tree.elements), LEAST) if limited is None else limited
    families = [each for each in tree.elements.families if each.kind in KINDS]
    for _ in range(generator.integers(1, 6)):
        family = families[generator.integers(len(families))]
        choice = np.flatnonzero(enough[family.first :][: family.count] >= LEAST)
        number = int(family.first + generator.choice(choice))
        links = set(tree.elements.links(number).tolist())
        others = [set(tree.elements.links(other).tolist()) for other in faults]
        if not any(links <= other or other <= links for other in others):
            faults[number] = float(generator.uniform(0.4, 0.75))
    return faults


@pytest.mark.soak
@pytest.mark.parametrize("levels", FABRICS)
def test_one_to_five_random_faults_are_found(levels: str) -> None:
    tree = FatTree(FABRICS[levels], HOSTS)
    plan = tree.plan()
    base = tree.elements.base
    limited = fit(tree.measure(plan), tree.paths, LEVEL).limited
    for trial in range(FAULTY):
        tree.seed, tree.faults = trial, planted(tree, np.random.default_rng(trial), limited)
        found = fit(tree.measure(plan), tree.paths, LEVEL)
        wanted = {int(base[number]) for number in tree.faults}
        named = {int(base[each.element]) for each in found.named}
        assert names(tree, named) == names(tree, wanted), trial


@pytest.mark.soak
@pytest.mark.parametrize("levels", FABRICS)
def test_nothing_is_found_in_healthy_fabrics(levels: str) -> None:
    tree = FatTree(FABRICS[levels], HOSTS)
    plan = tree.plan()
    for trial in range(HEALTHY):
        tree.seed = 1000 + trial
        assert fit(tree.measure(plan), tree.paths, LEVEL).named == (), trial
