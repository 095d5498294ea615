"""What keeps the jobs of a site from running is found without its nodes."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from tests.fixtures.kit import Kit, kit_with
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.jobs.job_request import BatchQueue, job_mistakes
from proofmark.jobs.scripts import Scripts, write_scripts
from proofmark.jobs.step_script import LaunchSite
from proofmark.site.execution import LaunchSettings, Queue
from proofmark.site.hardware import StatedNode
from proofmark.site.inventory import Site

NODE = {
    "cpu_model": "x",
    "architecture": "ppc64",
    "topology": "pack:2 [numa(memory=4GiB)] core:2 pu:2",
}


kit = kit_with(launch="mpi", sweep={"size": 1, "ranks": 4, "placement": "close"})


def site(kit: Kit, nodes: int = 2, **changes: Any) -> Site:
    """Return a declared site of LoadLeveler with POE; `changes` are those of its partition."""
    made = kit.site(hosts=[f"n{number:05d}" for number in range(1, nodes + 1)])
    partition: dict[str, Any] = {
        "node": StatedNode(**NODE),
        "scheduler": "loadleveler",
        "provision_from": "preinstalled",
        "launch": LaunchSettings(launcher="poe"),
        **changes,
    }
    return made.model_copy(update={"partition": made.partition.model_copy(update=partition)})


def mistakes(kit: Kit, chosen: Site) -> list[str]:
    return [f"{mistake}" for mistake in job_mistakes(chosen, [kit.plan(cores=4, site=chosen)])]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scheduler": "slurm", "launch": LaunchSettings()},
        {"provision_from": "spack", "launch": LaunchSettings()},
        {"queue": Queue(cpus_per_node=4)},
        {"queue": Queue(cpus_per_node=8)},
        {"scheduler": "sge", "queue": Queue(cpus_per_node=1)},
        {"scheduler": "none"},
        {"scheduler": "no such scheduler"},
    ],
)
def test_a_site_whose_jobs_can_run_has_no_mistakes(kit: Kit, changes: dict[str, Any]) -> None:
    assert mistakes(kit, site(kit, **changes)) == []


@pytest.mark.fault("mpi-without-launcher")
def test_ranks_without_a_launcher_are_refused(kit: Kit) -> None:
    (mistake,) = mistakes(kit, site(kit, launch=LaunchSettings()))
    assert mistake.startswith(": partition.launch.launcher: found 'nothing', and the probe does")
    assert "fake has 4 ranks; accepted: flux, hydra, openmpi, pals, poe, prterun, srun" in mistake
    (mistake,) = mistakes(kit, site(kit, launch=LaunchSettings(launcher="plain")))
    assert "found 'plain', which starts one process; fake has 4 ranks" in mistake
    kit.case(sweep={"size": 1})  # threads need no launcher
    assert mistakes(kit, site(kit, launch=LaunchSettings())) == []


@pytest.mark.parametrize(
    ("copies", "load", "launcher", "refused"),
    [
        (4, "", "flux", 0),
        (5, "", "flux", 5),
        (5, "", "", 5),  # flux run may start the ranks
        (5, "", "hydra", 0),
        (3, "mpi", "flux", 0),
        (4, "mpi", "flux", 5),
    ],
)
def test_copies_that_would_wait_for_each_other_are_refused(
    kit: Kit, copies: int, load: str, launcher: str, refused: int
) -> None:
    """Flux counts the cores of a node, 4 here; ranks and copies may use its hardware threads."""
    sweep = {"size": 1, "nodes": 2, "ranks": 2 * copies, "placement": "close"}
    suite: dict[str, Any] = {"sweep": sweep}
    if load:
        kit.case("load", launch=load, suites={}, sweep={"size": 1})
        suite["load"] = {"case": "load", "place": "same-nodes", "sweep": {"size": 1}}
    kit.case(launch="mpi", copies=copies, sweep={}, suites={"quick": suite})
    chosen = site(kit, scheduler="flux", launch=LaunchSettings(launcher=launcher))
    # A core of this plan is a hardware thread of the site.
    found = [f"{each}" for each in job_mistakes(chosen, [kit.plan(cores=8, site=chosen)])]
    assert len(found) == (refused > 0)
    if refused:
        assert f"partition.launch.launcher: found 'flux': fake starts {refused}" in found[0]
        assert "4 cores; accepted: hydra, openmpi" in found[0]


@pytest.mark.fault("mpi-without-launcher")
def test_scripts_are_not_written_if_ranks_have_no_launcher(kit: Kit) -> None:
    """The probe of the programs did not recognize the MPI."""
    kit.case(launch="mpi", sweep={"size": 1, "ranks": 2, "placement": "close"})
    run = kit.run(software=kit.software(launcher="openmpi"))
    shutil.rmtree(run.folder / "scripts")
    made = Scripts(LaunchSite(kit.software()), kit.folder, BatchQueue("none"))
    with pytest.raises(BadInput, match=r"found no launcher for 2 ranks.*launch\.launcher"):
        write_scripts(run.folder, run.plan, made)


@pytest.mark.fault("operating-system-not-linux")
def test_aix_is_refused_with_the_reason(kit: Kit) -> None:
    node = StatedNode(**NODE, operating_system="aix")
    (mistake,) = mistakes(kit, site(kit, node=node))
    assert "node.operating_system: found 'aix': the step runner reads /proc" in mistake
    assert mistake.endswith("plans can be made; accepted: linux")


@pytest.mark.fault("operating-system-not-linux")
def test_validate_refuses_the_power_595_and_plans_it(capsys: pytest.CaptureFixture[str]) -> None:
    inventory = ["-i", str(ROOT / "inventory/p595")]
    assert main(["check", *inventory]) == 3
    lines = capsys.readouterr().err.splitlines()
    (line,) = (each for each in lines if "steps run on Linux only" in each)
    assert "partition.yml:" in line
    planned = ["plan", *inventory, "-l", "p595", "--suite", "p5"]
    assert main(planned) == 0
    assert main([*planned, "--create", "--run-id", "never"]) == 3
    assert "steps run on Linux only" in capsys.readouterr().err
    assert not (ROOT / "runs/never").exists()


@pytest.mark.fault("too-few-cpus-requested")
def test_fewer_cpus_than_cores_are_refused(kit: Kit) -> None:
    (mistake,) = mistakes(kit, site(kit, queue=Queue(cpus_per_node=3)))
    assert "partition.queue.cpus_per_node: found 3; accepted: at least 4, the cores" in mistake


def test_a_job_that_the_scheduler_refuses_is_a_mistake(kit: Kit) -> None:
    kit.case(suites={"quick": {"scope": "each-node", "sweep": {"size": 1, "nodes": 1}}})
    many = site(kit, 9000, scheduler="pbs")
    (mistake,) = mistakes(kit, many)
    assert "partition.nodes_per_job: found a job of 9000 nodes" in mistake
    most = int(mistake.rpartition("at most about ")[2].split()[0])
    fewer = many.partition.model_copy(update={"nodes_per_job": most - 1})
    assert mistakes(kit, many.model_copy(update={"partition": fewer})) == []
