"""Placements compared with hwloc-distrib and hwloc-calc on the same topologies."""

from __future__ import annotations

import subprocess
from collections import Counter
from functools import cache

import pytest
from tests.fixtures.topologies import read_topology
from tests.folders import HWLOC

from proofmark.plan.placement import PlacementRequest, place

NODES = {file.stem: read_topology(file) for file in sorted(HWLOC.glob("*.xml"))}
LEVELS = ("book", "socket", "numa", "tile")
# Every object of a level has as many cores as its siblings.
EVEN = [name for name in NODES if name != "knl_snc4_flat_uneven"]


def run(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


@cache
def distributed_by_hwloc(name: str, ranks: int) -> list[int]:
    """The first hardware thread of each of the parts into which hwloc-distrib cuts the node."""
    command = ["hwloc-distrib", "-i", str(HWLOC / f"{name}.xml"), "--single", str(ranks)]
    return [
        int(mask.split(",")[0], 16).bit_length() - 1 + 32 * mask.count(",")
        for mask in run(*command)
    ]


def calc(name: str, *arguments: str) -> list[int]:
    [answer] = run("hwloc-calc", "-i", str(HWLOC / f"{name}.xml"), *arguments)
    return [int(word) for word in answer.split(",")]


def objects(name: str, kind: str, pus: list[int]) -> int:
    """Count the objects of one kind in which these hardware threads are."""
    where = [f"pu:{pu}" for pu in pus]
    return calc(name, "--physical-input", "--number-of", kind, *where)[0]


def firsts(name: str, placement: str, ranks: int) -> list[int]:
    return [rank.cpus[0] for rank in place(PlacementRequest(NODES[name], placement, ranks))]


def number_of(name: str, level: str) -> int:
    return len({getattr(core, level) for core in NODES[name].cores})


@pytest.mark.parametrize("name", EVEN)
def test_spread_is_hwloc_distrib_where_the_ranks_divide_every_level(name: str) -> None:
    levels = [number_of(name, level) for level in ("index", *LEVELS)]
    compared = 0
    for ranks in range(1, levels[0] + 1):
        if all(ranks % level == 0 or level % ranks == 0 for level in levels):
            assert firsts(name, "spread", ranks) == distributed_by_hwloc(name, ranks), ranks
            compared += 1
    assert compared > 1


@pytest.mark.parametrize("name", EVEN)
@pytest.mark.parametrize("level", LEVELS)
def test_distributed_takes_the_objects_that_hwloc_distrib_takes(name: str, level: str) -> None:
    """With one rank for each object of a level both take the first core of each."""
    number = number_of(name, level)
    assert sorted(firsts(name, "BD", number)) == sorted(distributed_by_hwloc(name, number))


def test_uneven_domains_get_a_rank_each_where_hwloc_distrib_misses_one() -> None:
    """hwloc-distrib rounds: of domains with 18, 18, 16 and 16 cores the last gets no rank."""
    name = "knl_snc4_flat_uneven"
    heads = [calc(name, "--intersect", "core", f"numanode:{node}")[0] for node in (0, 2, 4, 6)]
    assert heads == firsts(name, "BD", 4)
    assert distributed_by_hwloc(name, 4) == [0, 8, 18, 36]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", EVEN)
def test_distributed_is_as_even_as_hwloc_distrib(name: str, step: int) -> None:
    """Any number of ranks: the sorted counts of each level are the same."""
    node = NODES[name]
    cores = len(node.cores)
    for ranks in {*range(1, min(13, cores)), *range(13, cores, step), cores}:
        of_both = (firsts(name, "BD", ranks), distributed_by_hwloc(name, ranks))
        for level in LEVELS[:3]:
            ours, theirs = (
                sorted(Counter(getattr(node.core_of[pu], level) for pu in pus).values())
                for pus in of_both
            )
            assert ours == theirs, (ranks, level)


def test_fitted_ranks_are_next_to_one_memory() -> None:
    name = "knl_snc4_flat_uneven"
    seen = []
    for rank in place(PlacementRequest(NODES[name], "fitted", 4, threads=16)):
        where = [f"pu:{pu}" for pu in rank.cpus]
        ddr, mcdram = calc(
            name, "--physical-input", "--physical-output", "--intersect", "numanode", *where
        )
        assert {NODES[name].core_of[pu].numa for pu in rank.cpus} == {ddr}
        assert len(rank.cpus) == 16
        seen.append((ddr, mcdram))
    assert seen == [(0, 4), (1, 5), (2, 6), (3, 7)]
    crossing = place(PlacementRequest(NODES[name], "unfitted", 4, threads=17))[1]
    assert objects(name, "numanode", list(crossing.cpus)) == 4  # two of DDR, two of MCDRAM


@pytest.mark.parametrize(
    ("name", "placement", "kind", "number"),
    [
        ("knl_quad_flat", "same-tile", "l2", 1),
        ("knl_quad_flat", "same-socket", "l2", 2),
        ("tachyon1", "same-socket", "package", 1),
        ("tachyon1", "other-socket", "package", 2),
        ("tachyon1", "2-hop", "package", 2),
        ("skl_snc2_smt2", "other-socket", "package", 2),
        ("skl_snc2_smt2", "same-socket", "numanode", 1),
    ],
)
def test_pairs_are_in_the_objects_that_hwloc_calc_says(
    name: str, placement: str, kind: str, number: int
) -> None:
    pus = [rank.cpus[0] for rank in place(PlacementRequest(NODES[name], placement, 2))]
    assert objects(name, "pu", pus) == 2
    assert objects(name, kind, pus) == number
