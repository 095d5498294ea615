"""The steps of the plans of a twin, and the memory of their simulation."""

from __future__ import annotations

from functools import cache

from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.folders import ROOT

from proofmark.packages.papers.p5 import CLAIMS, PLOTTED, RANKS_OF_TWIN
from proofmark.packages.twin.twin_command import (
    BUFFERS,
    EXCESS,
    ROUTE_BYTES,
    StartCost,
    memory_bytes,
    simulated_bytes,
    start_cost,
    twin_site,
    used_nodes,
    with_starts,
)
from proofmark.packages.twin.twin_model import TwinModel, interconnect_of, twin_model
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of


@cache
def plan_of(inventory: str, partition: str, suite: str) -> Plan:
    real = shipped_site(inventory, partition)
    site = twin_site(real, ROOT, interconnect_of(real))
    machines, _ = machines_of(site)
    return make_plan(shipped_benchmarks(), suite, site, machines)


NOTHING = StartCost(memory=0.0, seconds=0.0)


def model_of(inventory: str, partition: str, nodes: int) -> TwinModel:
    site = shipped_site(inventory, partition)
    machines, _ = machines_of(site)
    topology = machines(site.partition.current_mode).topology
    return twin_model(site, topology, site.hosts[:nodes])


def test_the_start_has_the_routes_of_each_node_and_of_the_network() -> None:
    """One node of the Power 595 has 128 CPUs, 32 sockets twice, 8 books and one adapter."""
    one, two = (start_cost(model_of("p595", "p595", nodes)) for nodes in (1, 2))
    inside = (128 + 2 * 32 + 8 + 1) ** 2 * ROUTE_BYTES
    network = len(model_of("p595", "p595", 1).network.routers)
    assert one.memory == inside + (1 + network) ** 2 * ROUTE_BYTES
    assert two.memory == 2 * inside + (2 + network) ** 2 * ROUTE_BYTES
    assert one.seconds < two.seconds < 2.1 * one.seconds


def test_many_nodes_cost_time_and_memory_before_the_first_message() -> None:
    """A suite with all nodes of Tachyon 2 needs minutes for each start."""
    few, all_nodes = (start_cost(model_of("tachyon", "tachyon2", nodes)) for nodes in (200, 3200))
    assert all_nodes.memory > 100 * few.memory
    assert all_nodes.seconds > 1000 * few.seconds
    plan = plan_of("tachyon", "tachyon2", "links")
    started = with_starts(plan, all_nodes)
    steps = list(zip(plan.steps(), started.steps(), strict=True))
    assert all(after.seconds == before.seconds + all_nodes.seconds for before, after in steps)
    assert all(
        after.timeout >= before.timeout + EXCESS * all_nodes.seconds for before, after in steps
    )
    assert started.totals.wall_s > plan.totals.wall_s + 0.99 * len(steps) * all_nodes.seconds
    assert started.digest == plan.digest


def test_pairs_are_simulations_at_the_same_time() -> None:
    plan = plan_of("nurion", "skl", "links")
    start = start_cost(model_of("nurion", "skl", len(used_nodes(load_skl(), plan))))
    assert max(step.measurements for step in plan.steps()) == 66
    assert memory_bytes(plan, start) >= 66 * start.memory


def load_skl() -> Site:
    return shipped_site("nurion", "skl")


def test_the_largest_step_counts_with_the_buffers_of_its_case() -> None:
    plan = plan_of("tachyon", "tachyon1", "twin-p3")
    assert memory_bytes(plan, NOTHING) == simulated_bytes(32, BUFFERS * 4 * 2**20)


def test_a_case_without_buffers_has_a_message_of_every_rank() -> None:
    plan = plan_of("p595", "p595", "twin-p5")
    assert memory_bytes(plan, NOTHING) == simulated_bytes(1024, BUFFERS * 2**9 * 1024)


def test_the_suite_of_p3_has_each_distance_and_each_number_of_pairs() -> None:
    names = [
        step.id.partition("-")[2] for step in plan_of("tachyon", "tachyon1", "twin-p3").steps()
    ]
    inside = [f"osu-bw-{place}" for place in ("same-socket", "other-socket", "2-hop")]
    between = [f"osu-bw-{level}" for level in ("chip", "line-card", "switch")]
    pairs = [f"osu-mbw-mr-{2 * number}-{number}" for number in range(1, 17)]
    assert sorted(names) == sorted(inside + between + pairs)


def test_the_suite_of_p5_has_exactly_the_points_of_its_claims() -> None:
    planned = {
        (f"{step.parameters['collective']}", step.placement, step.ranks, int(size))
        for step in plan_of("p595", "p595", "twin-p5").steps()
        for size in step.inputs["lengths"].split()
    }
    claimed = {
        (f"{need.fixed['benchmark']}", str(placement), int(ranks), int(size))
        for claim in CLAIMS
        for need in (claim.of_twin({}) if claim.of_twin else ())
        for placement, ranks, size in need.points or ()
    }
    most = RANKS_OF_TWIN[-1]
    # The paper has a figure of one collective on all nodes.
    of_claims = {each for each in planned if each[2] < most or each[0] == PLOTTED}
    assert of_claims == claimed
