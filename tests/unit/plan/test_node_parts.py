"""Steps of one NUMA domain, one socket and one rail: their CPUs, and the rail that MPI uses."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from tests.fixtures.kit import item
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.sites import MOST_HOSTS, machines
from tests.unit.site.test_run_variables import package

from proofmark.jobs.step_script import environment_of_step, unselected_rails
from proofmark.judge.references.judgement import applies
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.records.columns import Record
from proofmark.site.execution import LaunchSettings
from proofmark.site.hardware import StatedRails
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine
from proofmark.site.rails import variables_of_rail
from proofmark.software.software import Software

RAILS = {"mlx5_0:1": 0, "mlx5_1:1": 2, "mlx5_2:1": 4, "mlx5_3:1": 6}


@cache
def site_of(name: str) -> Site:
    """Return a shipped partition, with a few of its hosts."""
    site = shipped_site(*name.split("/"))
    hosts = site.hosts[:MOST_HOSTS]
    return site.model_copy(update={"hosts": hosts, "partition_hosts": hosts})


@cache
def plan_of(name: str, suite: str = "node", rails: tuple[str, ...] = ()) -> Plan:
    site = site_of(name)
    if rails:
        adapters = {rail: RAILS[rail] for rail in rails}
        node = site.partition.node.model_copy(
            update={"rails": StatedRails(rate="200 Gb/sec (4X HDR)", adapters=adapters)}
        )
        partition = site.partition.model_copy(update={"node": node})
        site = site.model_copy(update={"partition": partition})
    return make_plan(shipped_benchmarks(), suite, site, machines(site), digest=False)


def numbers(step: Step, node: int = 0) -> list[int]:
    return sorted(cpu for rank in step.cpus if rank.node == node for cpu in rank.cpus)


def epyc() -> Machine:
    of_mode = machines(site_of("example-epyc/epyc"))
    return of_mode if isinstance(of_mode, Machine) else of_mode("nps4")


def test_stream_runs_on_each_domain_and_each_socket_alone() -> None:
    steps = {
        str(step.parameters["domain"]): step
        for step in plan_of("example-epyc/epyc").steps()
        if "domain" in step.parameters
    }
    assert {step.case for step in steps.values()} == {"stream"}
    assert list(steps) == [*(f"numa-{n}" for n in range(8)), "socket-0", "socket-1"]
    cores = epyc().topology.cores
    for part, step in steps.items():
        level, _, number = part.partition("-")
        own = [core for core in cores if int(number) == getattr(core, level)]
        assert numbers(step) == sorted(core.pus[0] for core in own)
        assert (step.threads, step.scope) == (len(own), "each-node")


def test_messages_between_sockets_are_measured_on_each_node() -> None:
    steps = [step for step in plan_of("example-epyc/epyc").steps() if "socket" in step.placement]
    assert [(step.case, step.placement) for step in steps] == [
        ("osu-bw", "other-socket"),
        ("osu-latency", "other-socket"),
    ]
    core_of = epyc().topology.core_of
    for step in steps:
        assert step.scope == "each-node"
        assert len({core_of[cpu].socket for cpu in numbers(step)}) == 2


def test_a_node_of_one_domain_has_no_further_step() -> None:
    for step in plan_of("rehearsal/knl").steps():
        assert not {"domain", "rail"} & step.parameters.keys()
        assert "socket" not in step.placement


@pytest.mark.parametrize("suite", ["node", "links"])
def test_each_rail_is_measured_alone_from_its_domain_and_all_together(suite: str) -> None:
    steps = [
        step
        for step in plan_of("example-epyc/epyc", suite, tuple(RAILS)).steps()
        if "rail" in step.parameters
    ]
    assert {step.case for step in steps} == {"osu-mbw-mr"}
    assert {step.parameters["rail"] for step in steps} == {*RAILS, "all"}
    core_of = epyc().topology.core_of
    for step in steps:
        domains = RAILS.get(str(step.parameters["rail"]))
        for node in (0, 1):
            used = {core_of[cpu].numa for cpu in numbers(step, node)}
            assert used == ({*range(8)} if domains is None else {domains})
            assert len(numbers(step, node)) == (16 if domains is None else 4)


def test_one_rail_needs_no_further_step() -> None:
    steps = plan_of("example-epyc/epyc", rails=("mlx5_0:1",)).steps()
    assert not [step for step in steps if "rail" in step.parameters]


@pytest.mark.parametrize(
    ("rail", "mpi", "variables"),
    [
        ("mlx5_2:1", "openmpi", {"UCX_NET_DEVICES": "mlx5_2:1"}),
        ("mlx5_2:2", "intel", {"UCX_NET_DEVICES": "mlx5_2:2"}),
        ("hfi1_1:1", "openmpi", {"HFI_UNIT": "1", "FI_OPX_HFI_SELECT": "1"}),
        ("cxi3:1", "mpich", {"FI_CXI_DEVICE_NAME": "cxi3"}),
        ("cxi3:1", "mvapich", None),
        ("mlx5_2:1", None, None),
        ("mlx5_2:1", "poe", None),
    ],
)
def test_the_mpi_is_told_which_rail_to_use(
    rail: str, mpi: str | None, variables: dict[str, str] | None
) -> None:
    found = variables_of_rail(rail, mpi)
    assert found == variables


def test_a_step_of_a_rail_has_its_variable_and_overrides_the_site() -> None:
    plan = plan_of("example-epyc/epyc", rails=tuple(RAILS))
    steps = {str(step.parameters.get("rail")): step for step in plan.steps()}
    launch = LaunchSettings(environment={"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1", "UCX_TLS": "rc"})

    def environment(rail: str) -> dict[str, str]:
        update: dict[str, Any] = {"program": "osu_bw"}
        return environment_of_step(steps[rail].model_copy(update=update), package(launch))

    assert environment("mlx5_3:1")["UCX_NET_DEVICES"] == "mlx5_3:1"
    assert environment("mlx5_3:1")["UCX_TLS"] == "rc"
    assert environment("all")["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1"


def test_a_rail_that_the_mpi_cannot_be_told_is_not_measured_and_said_so() -> None:
    """The program of the package is none of the plan: its MPI is not known."""
    plan = plan_of("example-epyc/epyc", rails=tuple(RAILS))
    unknown = Software(packages={"osu-micro-benchmarks": package(LaunchSettings())})
    reasons = unselected_rails(plan, unknown)
    rails = [step for step in plan.steps() if step.parameters.get("rail") in RAILS]
    assert list(reasons) == [step.id for step in rails]
    assert "not judged" in str(reasons[rails[0].id])


def test_a_limit_of_a_node_is_not_for_a_part_of_it() -> None:
    limit = item(case="stream", metric="triad", source="s", value=400, at_least=1)
    record = Record(
        *("r", "s", 1, "epyc", "epyc", "n", "measured", "stream", "STREAM", "triad", 1.0, "MB/s"),
        *(1, "current", "close", {"domain": "numa-3"}, "h", True, ""),  # type: ignore[arg-type]
    )
    assert not applies(limit, record)
    assert applies(limit.model_copy(update={"where": {"domain": "numa-3"}}), record)
