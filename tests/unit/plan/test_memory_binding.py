"""Memory is bound on nodes with several kinds of memory, and only there."""

from __future__ import annotations

import pytest
from tests.fixtures.kit import Kit

from proofmark.plan.expansion import make_plan
from proofmark.plan.step import Step
from proofmark.records.binding import binding_error
from proofmark.runs.attempts import read_binding
from proofmark.site.machines import Machine
from proofmark.site.node.topology import Topology

TWO_SOCKETS = "pack:2 [numa(memory=4GiB)] core:2 pu:1"
WITH_MCDRAM = "pack:2 [numa(memory=4GiB)] [numa(memory=1GiB)] core:2 pu:1"


def step_on(kit: Kit, notation: str, memory: str = "ddr") -> Step:
    """Return the step of two ranks on the first socket, with `memory`."""
    kit.case(
        launch="mpi",
        sweep={"size": 1, "ranks": 2, "memory": memory},
        let={"whole": "{bound_bytes}"},
    )
    topology = Topology.from_lstopo(notation).of_processor("Xeon Phi")
    seen = Machine({"cores": 4, "nodes": 1}, topology)
    (step,) = make_plan(kit.benchmarks(), "quick", kit.site(), seen).steps()
    return step


@pytest.mark.fault("memory-bound-to-one-socket")
def test_memory_of_the_other_socket_can_be_used_if_there_is_one_kind(kit: Kit) -> None:
    step = step_on(kit, TWO_SOCKETS)
    assert step.membind == []
    assert step.derived["whole"] == 8 << 30
    assert step.parameters["memory"] == "ddr"


@pytest.mark.parametrize(("memory", "domain"), [("ddr", 0), ("mcdram", 1)])
def test_memory_is_bound_if_there_are_several_kinds(kit: Kit, memory: str, domain: int) -> None:
    step = step_on(kit, WITH_MCDRAM, memory)
    assert step.membind == [domain]
    assert step.derived["whole"] == (4 << 30 if memory == "ddr" else 1 << 30)


@pytest.mark.fault("memory-bound-to-one-socket")
@pytest.mark.parametrize("policy", ["default", "bind:0"])
def test_a_rank_whose_memory_is_bound_against_the_plan_is_invalid(kit: Kit, policy: str) -> None:
    step = step_on(kit, TWO_SOCKETS)
    report = read_binding(
        {"rank": rank, "host": "localhost", "cpus": str(rank), "memory": policy}
        for rank in range(2)
    )
    expected = f"rank 0 had the memory policy {policy}, planned memory of all domains"
    reason = binding_error(step, ["localhost"], report)
    assert reason == ("" if policy == "default" else expected)
