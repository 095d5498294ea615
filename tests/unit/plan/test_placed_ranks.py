"""The CPUs of ranks as ranges of like nodes: the same ranks, and none that is only counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.fixtures.shipped import shipped_benchmarks, shipped_site

from proofmark.jobs.job_request import job_mistakes
from proofmark.plan.expansion import make_plan
from proofmark.plan.rank_cpus import NodeRange, PlacedRanks, RankCpus, RankCpusList
from proofmark.site.machines import machines_of

ADAPTER: TypeAdapter[RankCpusList] = TypeAdapter(RankCpusList)
RANGES = st.lists(
    st.builds(
        NodeRange,
        st.integers(1, 3),
        st.lists(st.sampled_from([(0,), (1,), (0, 1)]), max_size=2).map(tuple),
    ),
    max_size=4,
)


def listed(ranges: list[NodeRange]) -> list[RankCpus]:
    """Return each rank of some ranges."""
    found: list[RankCpus] = []
    first = 0
    for each in ranges:
        for node in range(first, first + each.nodes):
            found += [RankCpus(node, cpus) for cpus in each.cpus]
        first += each.nodes
    return found


@given(RANGES)
def test_ranges_are_the_ranks_of_their_list(ranges: list[NodeRange]) -> None:
    placed, ranks = PlacedRanks(ranges), listed(ranges)
    assert len(placed) == len(ranks)
    assert [*placed] == ranks
    assert placed == ranks and ranks == placed
    assert placed != [*ranks, RankCpus(0, (9,))]
    assert [placed[place] for place in range(-len(ranks), len(ranks))] == ranks * 2
    assert placed[1::2] == ranks[1::2]
    with pytest.raises(IndexError):
        placed[len(ranks)]


@given(RANGES)
def test_ranges_and_their_list_have_the_same_json(ranges: list[NodeRange]) -> None:
    placed, ranks = PlacedRanks(ranges), listed(ranges)
    written = ADAPTER.dump_json(placed)
    assert written == ADAPTER.dump_json(ranks)
    assert ADAPTER.validate_json(written) == ranks


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of ranks that are made from ranges, as they are made."""
    numbers: list[int] = []
    walk = PlacedRanks.__iter__

    def counted(self: PlacedRanks) -> Iterator[RankCpus]:
        numbers.append(len(self))
        return walk(self)

    monkeypatch.setattr(PlacedRanks, "__iter__", counted)
    return numbers


def test_a_plan_of_8305_nodes_makes_no_rank_that_is_only_counted(made: list[int]) -> None:
    """The jobs are requested, and the plan is written and checked. The control reads the ranks."""
    site = shipped_site("nurion", "knl")
    machines, _ = machines_of(site)
    plan = make_plan(shipped_benchmarks(), "system", site, machines)
    largest = max(plan.steps(), key=lambda step: len(step.cpus))
    assert len(largest.cpus) > 100_000
    assert job_mistakes(site, [plan]) == []
    assert plan.digest and plan.model_dump_json()
    assert made == []
    assert largest.cpus[0].node == 0
    assert made == [len(largest.cpus)]
