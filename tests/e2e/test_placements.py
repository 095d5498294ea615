"""Ranks over four virtual nodes: each launcher places every rank by the placement."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.vcluster.cluster import Cluster
from tests.emulators.vcluster.slurm import Slurm
from tests.fixtures.kit import SYMBOLS, described, make_kit
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.jobs.step_script import LaunchSite, step_script
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.records.binding import BindingCheck, HostNames
from proofmark.records.execution_checks import invalid_reason
from proofmark.runs.attempts import attempts
from proofmark.site.execution import LaunchSettings
from proofmark.site.file_systems import Scratch
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine
from proofmark.site.node.topology import Topology
from proofmark.site.partition import Partition
from proofmark.software.program import Mpi
from proofmark.software.software import Package, Software

P595 = "group:2 [numa(memory=2GiB)] pack:2 core:2 pu:1"
"""A small Power 595: two books of two sockets of two cores."""
HOST_CPUS = (0, 0, 0, 0, 1, 1, 1, 1)
SSH = LaunchSettings(bootstrap="ssh")
# The Slurm of the cluster has no task/affinity: it accepts the masks and ignores them.
SRUN = LaunchSettings(launcher="srun", mpi="none", binding="wrapper")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def cluster(shared: Path) -> Iterator[Cluster]:
    with Cluster(shared / "cluster", 4, shared=[shared]) as made, Slurm(made):
        yield made


def p5(launch_settings: LaunchSettings, **sweep: Any) -> tuple[Plan, Site]:
    """Plan suite p5 on four nodes, with the process counts and collectives of `sweep`."""
    benchmarks = shipped_benchmarks()
    partition = Partition(
        environment="local",
        scheduler="none",
        provision_from="preinstalled",
        scratch=Scratch(path="/var/tmp/proofmark"),
        origin="emulated",
        launch=launch_settings,
        host_cpus=HOST_CPUS,
    )
    hosts = tuple(f"knl{number:04d}" for number in range(1, 5))
    place = {"inventory": Path("inventory/v"), "limit": "knl", "partition_name": "knl"}
    site = Site(name="v", partition=partition, hosts=hosts, connection="ssh", **place)
    case = benchmarks.case("imb-collectives")
    (use,) = case.suites["p5"]
    use = use.model_copy(update={"sweep": {**use.sweep, **sweep}})
    case = case.model_copy(update={"suites": {"p5": [use]}})
    benchmarks = benchmarks.model_copy(update={"cases": {"imb-collectives": case}})
    facts = {**SYMBOLS, "cores": 8, "sockets": 4, "numa": 2, "nodes": 4, "memory_bytes": 4 << 30}
    machine = Machine(facts, Topology.from_lstopo(P595))
    return make_plan(benchmarks, "p5", site, machine, repeats=1), site


def software(program: Path, launcher: Any, prefix: str, family: str) -> Software:
    mpi = Mpi(family=family, version="1", library="libmpi.so", mpirun=f"{prefix}/bin/mpirun")
    described_program = described(program).model_copy(update={"mpi": mpi})
    package = Package(
        origin="preinstalled",
        version="1",
        launcher=launcher,
        prefix=prefix,
        programs={"IMB-MPI1": described_program},
    )
    return Software(packages={"intel-mpi-benchmarks": package})


@pytest.mark.root
@pytest.mark.parametrize(
    ("how", "ranks"),
    [
        ("openmpi", [6]),
        ("srun", [6, 16]),
        pytest.param("openmpi", [16], marks=pytest.mark.soak),
    ],
)
def test_p5_places_every_rank_by_its_placement(
    cluster: Cluster, shared: Path, how: str, ranks: list[int]
) -> None:
    launch_settings = SRUN if how == "srun" else SSH
    shared = shared / f"{how} {len(ranks)} {ranks[0]}".replace(" ", "-")
    kit = make_kit(shared / "kit")
    program = kit.program('echo "$@"')
    plan, site = p5(launch_settings, ranks=ranks, collective="Bcast")
    steps = list(plan.steps())
    assert {step.placement for step in steps} == {"BD", "BA", "UD", "UA"}
    provided = software(program, "openmpi", "/usr", "openmpi")
    for step in steps:
        folder = shared / step.id
        folder.mkdir(parents=True)
        site_of_programs = LaunchSite(provided, launch_settings, HOST_CPUS)
        script = step_script(step, site_of_programs, str(folder / "scratch"))
        (folder / "run.sh").write_text(script)
        start(cluster, folder, how)
        (attempt,) = attempts(folder)
        assert attempt.files.stdout.read_text().count("Bcast") == step.ranks
        # salloc runs the script on the head, srun starts the ranks on the nodes.
        names = HostNames({step.nodes[0]: [attempt.host]} if how == "srun" else {})
        check = BindingCheck(step, site.partition.host_cpus, names)
        assert invalid_reason(step, attempt, check) == ""
        report = attempt.binding_report
        by_rank = sorted(report.ranks, key=lambda entry: entry.rank)
        reported_hosts = [report.hosts[entry.cpus.node] for entry in by_rank]
        assert reported_hosts == [step.nodes[rank.node] for rank in step.cpus]


def start(cluster: Cluster, folder: Path, how: str) -> None:
    """Run a step as its job does: on its first node, with Slurm in an allocation."""
    if how == "srun":
        # With all namespaces of the head: a step searches /proc for its processes.
        head = ["nsenter", f"--target={cluster.head}", "--net", "--uts", "--pid", "--mount", "--"]
        salloc = [str(cluster.bin / "salloc"), "--quiet", "--nodes=4"]
        command = [*head, *salloc, "sh", f"{folder}/run.sh"]
        environment = {**cluster.environment()}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=1200
        )
    else:
        command = ["/usr/bin/env", "ssh", "knl0001", "sh", f"{folder}/run.sh"]
        done = subprocess.run(
            command, env=cluster.environment(), capture_output=True, text=True, timeout=1200
        )
    assert done.returncode == 0, done.stderr + "".join(
        path.read_text() for path in folder.glob("*/stderr")
    )
