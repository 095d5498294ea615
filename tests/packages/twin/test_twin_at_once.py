"""Tests of the simulations that run at the same time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.packages.twin.test_twin_cost import NOTHING, plan_of

from proofmark.packages.twin.simulated_jobs import divided
from proofmark.packages.twin.twin_command import memory_bytes


@given(st.integers(1, 200))
def test_each_step_runs_once_in_the_order_of_its_job(count: int) -> None:
    plan = plan_of("p595", "p595", "twin-p5")
    made = divided(plan, count)
    ids = [step.id for step in plan.steps()]
    assert Counter(ids) == Counter(step.id for step in made.steps())
    for group in made.groups:
        assert len(group.jobs) == min(count, len(ids))
        for job in group.jobs:
            assert [step.id for step in job.steps] == sorted(step.id for step in job.steps)
    assert len({job.id for group in made.groups for job in group.jobs}) == made.totals.jobs
    assert made.digest == plan.digest


@given(st.integers(1, 50))
def test_the_jobs_have_about_the_same_time(count: int) -> None:
    """Graham's bound: the last job ends at most one longest step after the mean."""
    plan = plan_of("p595", "p595", "twin-p5")
    (group,) = divided(plan, count).groups
    longest = max(step.wall_s for step in plan.steps())
    mean = plan.totals.wall_s / count
    assert max(job.wall_s for job in group.jobs) <= mean + longest


@pytest.mark.parametrize("count", [2, 4])
def test_jobs_at_the_same_time_need_less_time_and_more_memory(count: int) -> None:
    plan = plan_of("p595", "p595", "twin-p5")
    made = divided(plan, count)
    assert made.totals.wall_s == pytest.approx(plan.totals.wall_s / count, rel=0.05)
    one = memory_bytes(plan, NOTHING)
    assert one < memory_bytes(made, NOTHING) <= count * one


def test_jobs_on_other_nodes_do_not_run_beyond_the_number() -> None:
    plan = plan_of("tachyon", "tachyon1", "twin-p3")
    made = divided(plan, 2)
    assert made.at_once == 2 < made.totals.jobs
    assert made.totals.wall_s >= plan.totals.wall_s / 2 - 0.1
