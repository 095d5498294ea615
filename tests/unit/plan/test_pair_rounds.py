"""Steps of rounds of pairs: what the plan has, and which pairs follow from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.fixtures.kit import Kit, contract_of, examples, item
from tests.unit.judge.test_accepting import plan_of as plan_of_skl

from proofmark.cases.case import SuiteUse
from proofmark.common.errors import BadInput
from proofmark.plan.plan import Plan, Step
from proofmark.plan.step import PairRound
from proofmark.plan.suite_steps import node_groups, pair_rounds
from proofmark.site.fabric import Fabric
from proofmark.site.inventory import Site

LEAF = {"levels": [{"name": "leaf", "hosts_per_switch": 4}], "top": "spine"}


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{number:02d}" for number in range(count))


def site_of_fabric(
    kit: Kit, hosts: tuple[str, ...], fabric: dict[str, Any] | None = None, limit: int | None = None
) -> Site:
    return kit.site(hosts=hosts, fabric=Fabric.model_validate(fabric or {}), nodes_per_job=limit)


def plan_of(kit: Kit, site: Site, **use: Any) -> Plan:
    suite = {"scope": "each-pair", "pairs": "rounds", "sweep": {"size": 1, "nodes": 2}, **use}
    kit.case(suites={"quick": suite})
    return kit.plan(site=site)


def distance(site: Site, step: Step) -> set[str]:
    return {site.distance(pair) for pair in step.instances().values()}


def test_all_rounds_of_a_small_partition_are_one_job(kit: Kit) -> None:
    site = site_of_fabric(kit, names(8), LEAF)
    made = plan_of(kit, site)
    steps = list(made.steps())
    assert made.totals.jobs == 1
    pairs = {frozenset(pair) for step in steps for pair in step.instances().values()}
    assert len(pairs) == 8 * 7 // 2
    assert [step.measurements for step in steps] == [len(step.instances()) for step in steps]
    assert {step.recorded["measured"] for step in steps} == {"together"}
    for step in steps:
        assert step.round
        found = distance(site, step)
        assert found == {step.round.distance} or (not step.round.distance and len(found) > 1)
    assert {step.round.distance for step in steps if step.round} == {"leaf", "spine", ""}
    assert steps[0].id == "0001-fake-round-1"
    assert made.left_out == []


def test_a_plan_of_8305_nodes_has_the_rule_and_not_the_pairs(kit: Kit, tmp_path: Path) -> None:
    fabric = {"levels": [{"name": "leaf", "hosts_per_switch": 32}], "top": "spine"}
    hosts = tuple(f"n{number:04d}" for number in range(8305))
    made = plan_of(kit, site_of_fabric(kit, hosts, fabric))
    steps = list(made.steps())
    text = json.dumps(made.model_dump(mode="json"))
    assert len(steps) == 16
    assert len(text) < 30_000
    assert '"leaf": "259*32 17"' in text
    read = Plan.model_validate_json(text)
    assert [step.instances() for step in read.steps()] == [step.instances() for step in steps]
    assert steps[0].seconds == pytest.approx(1 + 1 + 8.305)


def test_pairs_that_measure_alone_share_no_switch(kit: Kit) -> None:
    site = site_of_fabric(kit, names(16), LEAF)
    made = plan_of(kit, site, pairs="alone")
    for step in made.steps():
        leaves = [
            leaf
            for pair in step.instances().values()
            for leaf in {site.switches(host)[0] for host in pair}
        ]
        assert len(leaves) == len(set(leaves))
        assert step.recorded["measured"] == "alone"
    assert made.left_out == []
    few = plan_of(kit, site, pairs="alone", rounds=1)
    assert few.left_out == ["fake: 8 nodes, which are in none of the 1 waves of pairs alone"]


def test_a_limit_of_nodes_per_job_divides_the_pairs(kit: Kit) -> None:
    site = site_of_fabric(kit, names(9), LEAF, limit=4)
    made = plan_of(kit, site)
    jobs = [job for group in made.groups for job in group.jobs]
    assert [len(job.nodes) for job in jobs] == [3, 3, 3]
    assert all({*step.nodes} == {*job.nodes} for job in jobs for step in job.steps)
    assert made.left_out == [
        "fake: pairs of nodes of different jobs: nodes_per_job 4 divides the nodes into 3 jobs"
    ]


@examples(1)
@given(st.integers(2, 40), st.integers(2, 12))
def test_each_node_is_in_a_group_of_at_most_the_limit(count: int, limit: int) -> None:
    kit = Kit(Path("/nowhere"), mcdram=False)
    groups = node_groups(site_of_fabric(kit, names(count), LEAF), limit)
    assert {host for group, _ in groups for host in group} == {*names(count)}
    assert all(2 <= len(group) <= limit for group, _ in groups)


def test_the_hosts_of_a_switch_follow_each_other(kit: Kit) -> None:
    switches = {"a": "n[00,02,04]", "b": "n[01,03]"}
    fabric = {"levels": [{"name": "leaf", "switches": switches}]}
    site = site_of_fabric(kit, names(7), fabric)
    made = plan_of(kit, site)
    (first, *_) = made.steps()
    assert first.round
    assert first.nodes == ["n00", "n02", "n04", "n01", "n03", "n05", "n06"]
    assert first.round.switches == {"leaf": (3, 2, 1, 1)}
    inside = [step for step in made.steps() if step.round and step.round.distance == "leaf"]
    assert inside
    assert all(distance(site, step) == {"leaf"} for step in inside)


def test_two_hosts_have_one_ordinary_step(kit: Kit) -> None:
    (step,) = plan_of(kit, site_of_fabric(kit, names(2))).steps()
    assert (step.scope, step.round) == ("job", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"switches": {"leaf": "4"}}, "4 nodes, but the step has 8"),
        ({"switches": {"leaf": "9*99999999"}}, "no list of sizes"),
        ({"switches": {"leaf": "8*1 0"}}, "greater than or equal to 1"),
        ({"number": 99}, "there are 7 rounds"),
    ],
)
def test_a_damaged_rule_is_refused(kit: Kit, change: dict[str, Any], message: str) -> None:
    made = plan_of(kit, site_of_fabric(kit, names(8), LEAF))
    written = next(made.steps()).model_dump(mode="json")
    assert Step.model_validate(written).round == next(made.steps()).round
    with pytest.raises(ValidationError, match=message):
        Step.model_validate({**written, "round": {**written["round"], **change}})


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ({"pairs": "rounds"}, "rounds is only accepted if scope is each-pair"),
        ({"pairs": "alone"}, "alone is only accepted if scope is each-pair"),
        ({"scope": "each-pair", "rounds": 2}, "only accepted if pairs is rounds or alone"),
        ({"scope": "each-pair", "pairs": "rounds", "rounds": 0}, "greater than or equal to 1"),
    ],
)
def test_a_use_names_its_pairs_completely(use: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SuiteUse.model_validate(use)


def test_a_plan_of_an_earlier_version_has_pairs_of_neighbours(kit: Kit) -> None:
    made = plan_of(kit, site_of_fabric(kit, names(8)), pairs="neighbours")
    text = json.dumps(made.model_dump(mode="json"))
    assert "round" not in json.loads(text)["groups"][0]["jobs"][0]["steps"][0]
    assert Plan.model_validate_json(text) == made


def test_a_reference_without_the_parameter_judges_no_pairs_that_share_links(kit: Kit) -> None:
    """The control: the same limit selects the pairs that measured alone."""
    limit = {"case": "fake", "metric": "rate", "value": 1, "unit": "MB/s"}
    limit |= {"at_least": 1, "source": "contract"}
    for pairs, where, refused in (
        ("rounds", {}, True),
        ("rounds", {"measured": "together"}, False),
        ("alone", {}, False),
    ):
        site = site_of_fabric(kit, names(8), LEAF)
        contract = contract_of([item(**limit, where=where)])
        limited = site.model_copy(update={"contract": contract})
        if refused:
            with pytest.raises(BadInput, match="measured 'together'"):
                plan_of(kit, limited, pairs=pairs)
        else:
            plan_of(kit, limited, pairs=pairs)


def test_rules_of_equal_hosts_share_their_pairs(kit: Kit) -> None:
    site = site_of_fabric(kit, names(32), LEAF)
    ((_, switches),) = node_groups(site, None)
    fabric = site.partition.fabric
    one, again = (pair_rounds(fabric, switches, 16, "together") for _ in range(2))
    assert one == again
    assert all(isinstance(each, PairRound) for each in one)
    assert one[0].pairs(32) is again[0].pairs(32)
    assert np.array_equal(np.unique(one[0].pairs(32)), np.arange(32))


def test_the_suite_links_has_rounds_and_steps_beside_a_load() -> None:
    steps = list(plan_of_skl("links").steps())
    assert {step.case for step in steps if step.round} == {"osu-bw", "osu-bibw", "osu-latency"}
    assert {step.case for step in steps if step.load} == {"osu-congestion"}
