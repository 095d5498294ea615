"""The time limit and the resources of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import Kit, make_kit

from proofmark.jobs.job_request import BatchQueue, cpus_used, request, unlike_steps
from proofmark.machine.scheduler import Request
from proofmark.plan.plan import Job, Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.site.execution import Queue


@pytest.mark.parametrize(
    ("seconds", "longest", "expected"),
    [
        (40, None, 600),
        (1000, None, 4000),
        (1000, 2500, 2500),
    ],
)
def test_a_job_requests_twice_the_time_that_is_expected(
    tmp_path: Path, seconds: int, longest: int | None, expected: int
) -> None:
    kit = make_kit(tmp_path)
    kit.case(cost={"seconds": seconds})
    (job,) = kit.plan().groups[0].jobs
    assert len(job.steps) == 2
    batch = BatchQueue("none", Queue(max_walltime_s=longest))
    assert request(job, "name", Path("log"), batch).seconds == expected
    cut = request(job, "name", Path("log"), batch, was_cut=True).seconds
    assert cut == max(expected, min(60 + 10 * seconds, longest or 60 + 10 * seconds))


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Step:
    kit = make_kit(tmp_path_factory.mktemp("kit"))
    kit.case(launch="mpi")
    return next(kit.plan().steps())


def requested(nodes: int, *steps: Step, **queue: Any) -> Request:
    names = [f"n{number}" for number in range(nodes)]
    job = Job(id="1", nodes=names, steps=[*steps])
    return request(job, "name", Path("log"), BatchQueue("none", Queue(**queue)))


def tasks(nodes: int, *steps: Step) -> list[list[int]]:
    return [list(numbers) for numbers in requested(nodes, *steps).tasks]


def ranks(*ranks: tuple[int, tuple[int, ...]]) -> dict[str, Any]:
    return {"cpus": [RankCpus(*rank) for rank in ranks], "ranks": len(ranks)}


@pytest.mark.parametrize(
    ("changes", "cpus"),
    [
        ({"cpus": [], "ranks": 3, "threads": 2}, 6),
        (ranks((0, (0, 1)), (0, (1, 2)), (1, (5,))), 3),
        (ranks((0, (0,)), (1, (3, 4, 5, 6))), 4),
        (ranks((0, (7, 7))), 1),
    ],
)
def test_a_job_requests_the_cpus_of_its_largest_step(
    step: Step, changes: dict[str, Any], cpus: int
) -> None:
    large = step.model_copy(update=changes)
    assert cpus_used(large) == cpus
    small = step.model_copy(update=ranks((0, (0,))))
    assert requested(2, small, large).cpus == max(cpus, 1)
    assert requested(2, small, large, cpus_per_node=68).cpus == 68


def test_the_tasks_of_a_job_are_those_of_its_step_with_the_most_ranks(step: Step) -> None:
    cyclic = step.model_copy(update=ranks((0, (0,)), (1, (0,)), (0, (1, 2)), (1, (1, 2))))
    uneven = step.model_copy(update=ranks((0, (0,)), (0, (1,)), (0, (2,))))
    assert tasks(2, cyclic) == [[0, 2], [1, 3]]
    assert requested(2, cyclic).threads == 2
    assert tasks(2, uneven, cyclic) == [[0, 2, 4], [1, 3]]
    assert tasks(2, uneven) == [[0, 1, 2], [3]]
    alone = uneven.model_copy(update={"scope": "each-node"})
    assert tasks(2, alone) == [[0, 1, 2], [3, 4, 5]]


PLACES = st.lists(st.integers(0, 3), min_size=1, max_size=12)


@given(st.lists(PLACES, min_size=1, max_size=4), st.sampled_from(["job", "each-node"]))
def test_each_rank_has_a_task_on_its_node(
    step: Step, of_steps: list[list[int]], scope: str
) -> None:
    steps = [
        step.model_copy(update={**ranks(*((node, (0,)) for node in places)), "scope": scope})
        for places in of_steps
    ]
    numbers = tasks(4, *steps)
    assert sorted(rank for node in numbers for rank in node) == list(range(sum(map(len, numbers))))
    assert all(numbers)
    if scope == "job":
        for node, count in ((node, max(p.count(node) for p in of_steps)) for node in range(4)):
            assert len(numbers[node]) >= count
        largest = max(of_steps, key=len)
        if len(of_steps) == 1:
            assert all(rank in numbers[node] for rank, node in enumerate(largest))


def test_steps_are_sized_by_the_memory_that_the_job_requests(tmp_path: Path) -> None:
    kit: Kit = make_kit(tmp_path)
    kit.case(let={"whole": "{memory_bytes}", "bound": "{bound_bytes}"}, sweep={"size": 1})
    for memory in (None, 1 << 20):
        queue = Queue(memory_per_node=memory)
        made = kit.plan(site=kit.site(queue=queue))
        derived = next(made.steps()).derived
        if memory:
            assert (derived["whole"], derived["bound"]) == (memory, memory)
        else:
            assert min(float(derived["whole"]), float(derived["bound"])) > 1 << 20


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_only_repeats_are_left_out_of_unlike_steps(step: Step, order: list[int]) -> None:
    """Steps with the same list of CPUs differ by the number of threads, or of copies."""
    other = {**ranks((0, (0, 1)), (1, (0, 1))), "nodes": ["n0", "n1"]}
    kinds = [
        step.model_copy(update=ranks((0, (0,)), (0, (1,)))),
        step.model_copy(update=other),
        step.model_copy(update={**other, "copies": 2}),
        step.model_copy(update={**other, "threads": 7}),
    ]
    steps = [
        kinds[kind].model_copy(update={"id": f"{number:04d}-x", "repeat": number})
        for number, kind in enumerate(order)
    ]
    assert unlike_steps(steps) == [steps[order.index(kind)] for kind in dict.fromkeys(order)]
    apart = [each.model_copy(update={"cpus": [*each.cpus]}) for each in steps]
    assert unlike_steps(apart) == apart  # as read from a file: each has a list of its own
    assert requested(2, *steps) == requested(2, *apart)
