"""The plan of a program beside a step: free cores, free nodes, and the errors if there are none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples, make_kit, topology

from proofmark.common.errors import BadInput
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step
from proofmark.plan.suite_steps import spread

HOSTS = tuple(f"n{number}" for number in range(8))


def planned(
    tmp_path: Path, load: dict[str, Any], *, cores: int = 4, hosts: tuple[str, ...], **case: Any
) -> Plan:
    kit = make_kit(tmp_path)
    kit.case("noisy", launch="mpi", sweep={"size": 7, "ranks": "{nodes * cores}"}, suites={})
    how = {"launch": "mpi", "sweep": {"ranks": 2}, "let": {"size": 1}, **case}
    use = {"load": {"case": "noisy", **load}}
    kit.case(**how, suites={"quick": use})
    return kit.plan(cores=cores, site=kit.site(hosts=hosts))


def cpus_of(step: Step) -> set[int]:
    return {cpu for rank in step.cpus for cpu in rank.cpus}


def test_on_the_same_node_a_load_gets_the_free_cores(tmp_path: Path) -> None:
    (step,) = planned(tmp_path, {"place": "same-nodes"}, hosts=("n0",)).steps()
    assert step.load is not None
    assert (cpus_of(step), cpus_of(step.load.step)) == ({0, 1}, {2, 3})
    assert step.parameters["load"] == "noisy"
    assert step.load.step.timeout > step.timeout


def test_on_other_nodes_it_gets_all_of_them_between_the_nodes_of_the_step(tmp_path: Path) -> None:
    case: dict[str, Any] = {"sweep": {"nodes": 2, "ranks": 2}}
    load = {"place": "other-nodes", "baseline": True}
    plan = planned(tmp_path, load, hosts=HOSTS, **case)
    baseline, step = plan.steps()
    assert step.load is not None
    assert step.nodes[:2] == ["n0", "n4"]
    assert step.load.step.nodes == ["n1", "n2", "n3", "n5", "n6", "n7"]
    assert len(step.load.step.cpus) == 6 * 4
    assert {rank.node for rank in step.cpus} == {0, 1}
    assert (baseline.nodes, baseline.load) == (step.nodes, None)
    assert (baseline.parameters["load"], step.parameters["load"]) == ("none", "noisy")
    assert len(plan.groups[0].jobs) == 1


@pytest.mark.parametrize(
    ("load", "case", "message"),
    [
        ({"place": "same-nodes"}, {"sweep": {"ranks": 4}}, "leaves no core free"),
        ({"place": "same-nodes"}, {"launch": "process", "sweep": {}}, "does not bind"),
        ({"place": "same-nodes", "case": "nosy"}, {}, "did you mean"),
        ({"place": "same-nodes", "sweep": {"sise": 1}}, {}, "an axis that noisy does not use"),
        ({"place": "same-nodes", "sweep": {"size": [1, 2]}}, {}, "exactly one point"),
        ({"place": "same-nodes", "sweep": {"ranks": 9}}, {}, "9 ranks"),
        ({"place": "other-nodes"}, {}, "no node is free for the load noisy"),
    ],
)
def test_a_load_without_room_is_refused(
    tmp_path: Path, load: dict[str, Any], case: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        planned(tmp_path, load, hosts=("n0",), **case)


def test_other_nodes_need_a_step_of_the_whole_job(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    load = {"case": "fake", "place": "other-nodes"}
    kit.case(suites={"quick": {"scope": "each-node", "load": load}})
    with pytest.raises(BadInput, match="only accepted if scope is job"):
        kit.benchmarks()


@examples(1)
@given(st.integers(1, 300), st.data())
def test_the_nodes_of_a_step_are_spread_evenly(hosts: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, hosts))
    names = [f"n{number}" for number in range(hosts)]
    places = [names.index(name) for name in spread(names, count)]
    gaps = [after - before for before, after in pairwise(places)]
    assert len(set(places)) == count
    assert places == sorted(places)
    assert not gaps or max(gaps) - min(gaps) <= 1


@examples(1)
@given(st.integers(1, 12), st.sets(st.integers(0, 11)))
def test_a_topology_without_some_cores_numbers_the_others_again(cores: int, used: set[int]) -> None:
    left = topology(cores).without(used)
    kept = [cpu for cpu in range(cores) if cpu not in used]
    assert [core.pus for core in left.cores] == [(cpu,) for cpu in kept]
    assert [core.index for core in left.cores] == [*range(len(kept))]
    assert left.numa_domains[0].cores == tuple(range(len(kept)))
