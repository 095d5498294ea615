"""The figures of a run for a twin: medians of nodes and repeats, with the distance of ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.shipped import shipped_site

from proofmark.common.message import NOTHING
from proofmark.judge.results import Result
from proofmark.packages.twin.twin_error import figures_of
from proofmark.plan.plan import Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.records.columns import Record
from proofmark.site.machines import topology_of_mode

SITE = shipped_site("tachyon", "tachyon1")
TOPOLOGY = topology_of_mode(SITE, SITE.partition.current_mode)
FIRST = TOPOLOGY.cores[0]
HOPS = TOPOLOGY.socket_hops


def result(value: float | None, *, node: str = "n1", verdict: str = "UNJUDGED") -> Result:
    record = Record(
        run="real",
        step="0001-imb",
        attempt=1,
        system="tachyon1",
        partition="tachyon1",
        node=node,
        origin="measured",
        case="imb",
        benchmark="PingPong",
        metric="t_avg",
        value=value,
        unit="usec",
        repeat=1,
        mode="current",
        placement="close",
        parameters={"bytes": 8},
        environment_hash="",
        valid=True,
        reason=NOTHING,
    )
    return Result(record, () if value is None else (value,), verdict, NOTHING, ())


def step(*cpus: tuple[int, int]) -> Step:
    """Return a step with one rank on each of these CPUs of these nodes."""
    some: Any = {"cpus": [RankCpus(node, (cpu,)) for node, cpu in cpus]}
    return Step.model_construct(**some)


def pu_of(hops: int) -> int:
    """Return a hardware thread of another core: of the same socket, or this number of hops away."""
    return next(
        core.pus[0]
        for core in TOPOLOGY.cores[1:]
        if (0 if core.socket == FIRST.socket else HOPS[FIRST.socket, core.socket]) == hops
    )


def test_a_figure_is_the_median_of_the_nodes() -> None:
    results = [result(1.0), result(5.0, node="n2"), result(2.0, node="n3")]
    (figure,) = figures_of(results)
    assert (figure.value, figure.distance, figure.levels) == (2.0, "", 0)


@pytest.mark.parametrize(
    "other", [result(9.0, verdict="INVALID"), result(None), result(0.0), result(-1.0)]
)
def test_invalid_figures_and_those_without_a_ratio_are_left_out(other: Result) -> None:
    (figure,) = figures_of([result(1.0), other])
    assert figure.value == 1
    assert not figures_of([other])


@pytest.mark.parametrize(
    ("ranks", "distance"),
    [
        ([(0, FIRST.pus[0]), (0, pu_of(0))], "socket"),
        ([(0, FIRST.pus[0]), (0, pu_of(1))], "other-socket"),
        ([(0, FIRST.pus[0]), (0, pu_of(2))], ""),
        ([(0, FIRST.pus[0]), (1, FIRST.pus[0])], "node"),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], "node"),
        ([(0, 0), (0, 1), (0, 2), (0, 3)], ""),
        ([(0, FIRST.pus[0]), (0, FIRST.pus[0])], ""),
        ([(0, FIRST.pus[0])], ""),
        ([], ""),
    ],
)
def test_the_distance_is_that_of_the_ranks(ranks: list[tuple[int, int]], distance: str) -> None:
    (figure,) = figures_of([result(1.0)], {"0001-imb": step(*ranks)}, SITE, TOPOLOGY)
    assert figure.distance == distance


@pytest.mark.parametrize(("other", "levels"), [(1, 0), (12, 1), (24, 2)])
def test_switches_between_two_nodes_are_counted(other: int, levels: int) -> None:
    """Tachyon 1: 12 nodes on a chip, 24 on a line card, then the switch."""
    between = result(1.0, node=f"{SITE.hosts[0]},{SITE.hosts[other]}")
    of_pair = replace(between, record=replace(between.record, step="0001-imb/pair"))
    steps = {"0001-imb": step((0, 0), (1, 0))}
    (figure,) = figures_of([of_pair], steps, SITE, TOPOLOGY)
    assert (figure.distance, figure.levels) == ("node", levels)
    (unknown,) = figures_of([result(1.0, node="other")], steps, SITE, TOPOLOGY)
    assert unknown.levels == 0
