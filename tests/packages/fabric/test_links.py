"""The slow elements of a fabric are named from rounds of pairs on a simulated fat tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fat_tree import BOTH_WAYS, FatTree, fabric
from tests.fixtures.kit import examples

from proofmark.packages.fabric.elements import NONE, paths_of
from proofmark.packages.fabric.link_fit import Fit, fit, relative_entropy
from proofmark.packages.fabric.links import bisections, matrix, slow_uplinks
from proofmark.packages.fabric.samples import fair_rates
from proofmark.site.fabric import Fabric

LEVEL = 0.01
TWO = fabric(("leaf", 16, 8))
THREE = fabric(("leaf", 8, 8), ("pod", 64, 64))


def names(found: Fit) -> list[str]:
    return [found.elements.element(named.element).name for named in found.named]


def fitted(tree: FatTree, *, number: int = 16, both_ways: bool = True) -> Fit:
    return fit(tree.measure(tree.plan(number, both_ways=both_ways)), tree.paths, LEVEL)


def test_a_path_takes_the_uplink_of_its_destination() -> None:
    paths = paths_of(fabric(("leaf", 2, 2), ("pod", 4, 4)), [f"n{n}" for n in range(8)])
    leaf, pod = (tier.first for tier in paths.tiers)
    found = paths.paths(np.array([[0, 1], [0, 3], [0, 7]])).tolist()
    assert found[0] == [0, 8 + 1, NONE, NONE, NONE, NONE]
    # Destination 3 has uplink 1 of leaf 0, and comes down the link 1 of leaf 1.
    assert found[1] == [0, 8 + 3, leaf + 2 * 1, leaf + 2 * (2 + 1) + 1, NONE, NONE]
    # Destination 7 has uplink 3 of pod 0.
    assert found[2][4:] == [pod + 2 * 3, pod + 2 * (4 + 3) + 1]
    assert paths.distance(np.array([[0, 1], [0, 3], [0, 7]])).tolist() == [0, 1, 2]


def test_the_uplink_is_unknown_without_routing_unless_there_is_one() -> None:
    hosts = ["a", "b", "c", "d"]
    unknown = paths_of(fabric(("leaf", 2, 2), routed=False), hosts).tiers[0]
    single = paths_of(fabric(("leaf", 2, 1), routed=False), hosts).tiers[0]
    assert (unknown.uplinks, unknown.known, unknown.capacity) == (1, False, np.inf)
    assert (single.uplinks, single.known, single.capacity) == (1, True, 1.0)


@examples(0.4)
@given(st.integers(2, 12), st.integers(1, 30), st.integers(0, 10**6))
def test_a_fair_rate_is_limited_by_a_full_link(links: int, flows: int, seed: int) -> None:
    """On one of its links, which is full, no other flow has a higher rate (max-min fairness)."""
    generator = np.random.default_rng(seed)
    capacity = generator.uniform(0.2, 2.0, links)
    paths = np.stack([generator.permutation(links)[:2] for _ in range(flows)])
    rates = fair_rates(paths, capacity)
    load = np.bincount(paths.ravel(), weights=np.repeat(rates, 2), minlength=links)
    assert (load <= capacity * (1 + 1e-6)).all()
    full = load >= capacity * (1 - 1e-6)
    largest = np.array([rates[(paths == link).any(axis=1)].max(initial=0) for link in range(links)])
    limits = full[paths] & (rates[:, None] >= largest[paths] * (1 - 1e-6))
    assert limits.any(axis=1).all()


@examples(0.4)
@given(st.integers(3, 40), st.data())
def test_the_evidence_bounds_the_chance(number: int, data: st.DataObject) -> None:
    """exp(-n D(k/n, p)) is at least the binomial probability of k or more of n."""
    hit = data.draw(st.integers(1, number))
    chance = data.draw(st.floats(0.001, 0.5))
    gain = relative_entropy(np.array([number]), np.array([hit]), np.array([chance]))[0]
    trials = np.random.default_rng(1).binomial(number, chance, 2000)
    assert (trials >= hit).mean() <= np.exp(-gain) + 0.06


@pytest.mark.fault("slow-fabric-element")
@pytest.mark.parametrize(
    ("real", "element"),
    [
        (TWO, "port of n00021"),
        (TWO, "port of n00021, receiving"),
        (TWO, "uplink 3 of leaf-002"),
        (TWO, "uplink 3 of leaf-002, down"),
        (TWO, "switch leaf-004"),
        (TWO, "all uplinks of leaf-004"),
        (TWO, "spine 5 above each leaf"),
        (THREE, "uplink 5 of leaf-010"),
        (THREE, "switch 2 of pod-003 above each leaf"),
        (THREE, "spine 11 above each pod"),
        (THREE, "switch pod-002"),
    ],
)
def test_a_planted_fault_is_named(real: Fabric, element: str) -> None:
    tree = FatTree(real, 256)
    tree.faults = {tree.element(element): 0.6}
    found = fitted(tree)
    assert names(found) == [element]
    (named,) = found.named
    assert abs(named.ratio - 0.6) < 0.05
    assert named.confidence > 0.9
    assert len(named.slow) > 0.85 * len(named.measured)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("real", [TWO, THREE], ids=["two", "three"])
def test_a_healthy_fabric_has_no_slow_element(real: Fabric, seed: int) -> None:
    assert names(fitted(FatTree(real, 256, seed=seed))) == []


def test_several_faults_are_named_together() -> None:
    tree = FatTree(TWO, 256)
    planted = ["port of n00007", "uplink 6 of leaf-012", "spine 1 above each leaf"]
    tree.faults = dict(zip(map(tree.element, planted), (0.5, 0.4, 0.7), strict=True))
    assert sorted(names(fitted(tree))) == sorted(planted)


def test_one_outlier_never_names_an_element() -> None:
    tree = FatTree(TWO, 64, noise=0.005, outliers=0.0)
    samples = tree.measure(tree.plan())
    for place in range(0, len(samples), 97):
        value = samples.value.copy()
        value[place] *= 0.01
        assert names(fit(replace(samples, value=value), tree.paths, LEVEL)) == []


def test_an_element_is_named_with_the_pairs_of_failed_nodes_missing() -> None:
    tree = FatTree(TWO, 256)
    tree.faults = {tree.element("uplink 3 of leaf-002"): 0.6}
    down = [3, 17, 100, 101, 200]
    planned = [(pairs[~np.isin(pairs, down).any(axis=1)], series) for pairs, series in tree.plan()]
    assert names(fit(tree.measure(planned), tree.paths, LEVEL)) == ["uplink 3 of leaf-002"]


def test_a_value_that_is_not_valid_still_shared_its_links() -> None:
    tree = FatTree(TWO, 256)
    tree.faults = {tree.element("uplink 3 of leaf-002"): 0.6}
    samples = tree.measure(tree.plan())
    lost = np.isin(samples.pairs, [3, 17, 100, 101, 200]).any(axis=1)
    value = np.where(lost, np.nan, samples.value)
    found = fit(replace(samples, value=value), tree.paths, LEVEL)
    assert names(found) == ["uplink 3 of leaf-002"]
    assert not found.found.residual[lost].any()


@pytest.mark.parametrize("noise", [0.01, 0.15])
def test_a_quarter_of_the_speed_of_a_single_uplink_is_found_on_16_nodes(noise: float) -> None:
    """The fabric of the rehearsal: four switches of four nodes, one uplink each, and no routing.

    One of four leaves makes half of the pairs slow that cross switches.
    """
    tree = FatTree(fabric(("leaf", 4, 1), routed=False), 16, noise=noise, outliers=0.02)
    tree.faults = {tree.element("the uplink of leaf-003"): 0.25}
    found = fit(tree.measure(tree.plan(), of=(BOTH_WAYS,) * 3), tree.paths, LEVEL)
    assert names(found) == ["the uplink of leaf-003"]


def test_elements_with_too_few_measurements_are_counted() -> None:
    tree = FatTree(TWO, 64)
    found = fit(tree.measure(tree.plan()[:1]), tree.paths, LEVEL)
    assert found.limited[tree.element("port of n00003")] == 1
    assert found.limited[tree.element("uplink 3 of leaf-002")] == 0


def test_all_pairs_of_16_nodes_without_levels_name_a_slow_port() -> None:
    tree = FatTree(Fabric(), 16)
    assert names(fitted(tree)) == []
    tree.faults = {tree.element("port of n00005"): 0.7}
    assert names(fitted(tree)) == ["port of n00005"]


def test_two_nodes_that_are_measured_only_with_each_other_are_alternatives() -> None:
    tree = FatTree(Fabric(), 40)
    tree.faults = {tree.element("port of n00004"): 0.5}
    neighbours = np.arange(40).reshape(-1, 2)
    samples = tree.measure([(neighbours, 2)] * 6)
    (named,) = fit(samples, tree.paths, LEVEL).named
    other = [tree.elements.element(number).name for number, _ in named.alternatives]
    assert [tree.elements.element(named.element).name, *other] == [
        "port of n00004", "port of n00005"
    ]  # fmt: skip
    assert named.confidence == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("fault", "level_switch"),
    [("uplink 1 of leaf-003", 2), ("spine 1 above each leaf", NONE), ("", None)],
)
def test_without_routing_an_unknown_uplink_is_named(fault: str, level_switch: int | None) -> None:
    tree = FatTree(fabric(("leaf", 16, 4)), 256)
    tree.faults = {tree.element(fault): 0.5} if fault else {}
    samples = tree.measure(tree.plan(alone=120))
    without = paths_of(fabric(("leaf", 16, 4), routed=False), tree.names)
    found = fit(samples, without, LEVEL)
    assert names(found) == []
    uplinks = list(slow_uplinks(found, LEVEL))
    assert [each.switch for each in uplinks] == ([] if level_switch is None else [level_switch])
    for each in uplinks:
        assert abs(each.ratio - 0.5) < 0.05
        assert len(each.slow) < len(each.measured) / 2


def test_the_rate_across_a_level_is_the_sum_of_its_pairs() -> None:
    tree = FatTree(TWO, 64, noise=0.0, outliers=0.0)
    found = fitted(tree, both_ways=False)
    (across,) = bisections(found, [f"round-{number}" for number in range(40)])
    crossing = tree.plan()[int(across.round.removeprefix("round-"))][0]
    assert across.pairs == int((tree.paths.distance(crossing) > 0).sum())
    assert across.share == pytest.approx(1.0, abs=1e-6)
    # The uplinks are oversubscribed 2:1, so the pairs get less than their links could carry.
    assert across.bytes_per_s < 12e9 * across.pairs


def test_the_matrix_shows_the_slow_switch() -> None:
    tree = FatTree(TWO, 256)
    tree.faults = {tree.element("switch leaf-004"): 0.5}
    shown = matrix(fitted(tree))
    assert shown is not None
    assert shown.names[3] == "leaf-004"
    slow = np.nanmedian(shown.ratio[3])
    rest = np.delete(np.delete(shown.ratio, 3, axis=0), 3, axis=1)
    assert slow < 0.6 < 0.95 < np.nanmedian(rest)
