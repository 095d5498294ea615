"""The steps of the plans of a twin, and the memory of their simulation."""

from __future__ import annotations

from functools import cache

from tests.folders import ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.common.network_time import simulated_bytes
from proofmark.judge.claims.p5 import CLAIMS, PLOTTED, RANKS_OF_TWIN
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.plan.twin.cost import BUFFERS, memory_bytes
from proofmark.plan.twin.model import interconnect_of
from proofmark.plan.twin.twin import twin_site
from proofmark.site.inventory import load_site
from proofmark.site.machines import machines_of


@cache
def plan_of(inventory: str, partition: str, suite: str) -> Plan:
    real = load_site(ROOT / "inventory" / inventory, partition)
    site = twin_site(real, ROOT, interconnect_of(real))
    machines, _ = machines_of(site)
    return make_plan(load_benchmarks(ROOT / "benchmarks"), suite, site, machines)


def test_the_largest_step_counts_with_the_buffers_of_its_case() -> None:
    plan = plan_of("tachyon", "tachyon1", "twin-p3")
    assert memory_bytes(plan) == simulated_bytes(32, BUFFERS * 4 * 2**20)


def test_a_case_without_buffers_has_a_message_of_every_rank() -> None:
    plan = plan_of("p595", "p595", "twin-p5")
    assert memory_bytes(plan) == simulated_bytes(1024, BUFFERS * 2**9 * 1024)


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
