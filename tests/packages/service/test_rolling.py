"""The plan of a rolling acceptance: which steps roll, and how a plan grows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import Kit, make_kit

from proofmark.common.errors import BadInput
from proofmark.common.message import Message
from proofmark.packages.service.rolling_plan import (
    NOT_ROLLING,
    Unit,
    grown,
    growth,
    rolling_plan,
    rolls,
    steps_left,
    steps_of_several,
    units_of,
)
from proofmark.plan.plan import Plan
from proofmark.site.fabric import Fabric
from proofmark.site.inventory import Site

NODES = [f"n{number}" for number in range(1, 9)]
nodes = st.lists(st.sampled_from(NODES), min_size=1, unique=True)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Return a suite with steps of each node, of one node and of pairs."""
    made = make_kit(tmp_path_factory.mktemp("rolling"))
    made.case(
        suites={
            "quick": [
                {"scope": "each-node", "sweep": {"size": [1, 2], "nodes": 1}},
                {"sweep": {"size": 3, "nodes": [1, 8]}},
                {"scope": "each-pair", "sweep": {"size": 4, "nodes": 2}},
            ]
        }
    )
    return made


def racks_of_four(kit: Kit, hosts: list[str]) -> Site:
    site = kit.site(hosts=hosts, fabric=Fabric(rack=4))
    return site.model_copy(update={"partition_hosts": NODES})


def plan_of(kit: Kit, hosts: list[str], unit: Unit = "node") -> Plan:
    return rolling_plan(normal(kit), racks_of_four(kit, hosts), unit)


def normal(kit: Kit) -> Plan:
    return kit.plan(site=racks_of_four(kit, NODES))


def sizes(plan: Plan, node: str) -> list[object]:
    return [step.parameters["size"] for step in plan.steps() if node in step.nodes]


@pytest.mark.parametrize(("unit", "jobs"), [("node", 6), ("rack", 2)])
def test_each_node_measures_what_one_node_measures_alone(kit: Kit, unit: Unit, jobs: int) -> None:
    plan = plan_of(kit, NODES[:6], unit)
    (group,) = plan.groups
    assert len(group.jobs) == plan.totals.jobs == jobs
    assert plan.nodes() == NODES[:6]
    assert all(sizes(plan, node) == [1, 2, 3] for node in NODES[:6])
    assert all(map(rolls, plan.steps()))
    assert steps_left(plan) == [Message(NOT_ROLLING, case="fake", count=3)]
    assert plan.totals.node_hours == pytest.approx(
        6 * 3 * group.jobs[0].steps[0].wall_s / 3600, 1e-2
    )


def test_the_plan_of_an_earlier_version_is_read(kit: Kit) -> None:
    """It has a text in place of each reason; what it is read as is written with a code."""
    plan = plan_of(kit, NODES)
    stored = {**plan.model_dump(mode="json"), "left_out": ["fake: no node is free"]}
    assert Plan.model_validate(stored).left_out == ["fake: no node is free"]
    again = Plan.model_validate_json(plan.model_dump_json())
    assert [each.code for each in again.left_out] == [NOT_ROLLING]


@given(nodes, st.lists(nodes, max_size=3), st.sampled_from(["node", "rack"]))
def test_a_plan_grows_after_its_steps_and_each_node_joins_once(
    kit: Kit, first: list[str], joining: list[list[str]], unit: Unit
) -> None:
    plan = start = plan_of(kit, first, unit)
    for hosts in joining:
        before = plan
        plan = grown(plan, growth(plan, plan_of(kit, hosts, unit)))
        assert plan.groups[0].jobs[: len(before.groups[0].jobs)] == before.groups[0].jobs
    steps = list(plan.steps())
    assert len({step.id for step in steps}) == len(steps)
    assert {*plan.nodes()} == {*first, *(host for hosts in joining for host in hosts)}
    assert all(sizes(plan, node) == [1, 2, 3] for node in plan.nodes())
    assert plan.digest == start.digest == plan_of(kit, NODES, unit).digest


def test_a_normal_plan_adds_the_steps_of_several_nodes_once(kit: Kit) -> None:
    plan = plan_of(kit, NODES)
    more = steps_of_several(plan, normal(kit))
    whole = grown(plan, more)
    added = [step for step in whole.steps() if not rolls(step)]
    assert [(step.parameters["size"], len(step.nodes)) for step in added] == [
        (3, 8),
        (4, 8),
        (4, 8),
    ]
    assert len({job.id for group in whole.groups for job in group.jobs}) == len(NODES) + 1
    assert steps_of_several(whole, normal(kit)) == []
    assert growth(whole, plan_of(kit, NODES)) == growth(plan, plan_of(kit, NODES))


def test_what_cannot_roll_is_refused(kit: Kit, tmp_path: Path) -> None:
    no_rack = kit.site(hosts=NODES)
    with pytest.raises(BadInput, match=r"fabric\.rack"):
        units_of(no_rack, "rack")
    pairs = make_kit(tmp_path)
    pairs.case(suites={"quick": {"scope": "each-pair", "sweep": {"size": 4, "nodes": 2}}})
    with pytest.raises(BadInput, match="only steps of several nodes"):
        plan_of(pairs, NODES)
