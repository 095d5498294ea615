"""Runs through a real Flux with a broker on each node of a virtual cluster, and a real MPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from tests.emulators.vcluster import Cluster, Flux
from tests.fixtures.kit import Kit, end, execution, left_behind, make_kit, steps_of, until
from tests.folders import ROOT
from tests.roles.kit import accept_disturbance, make_real_kit

from proofmark.cli.main import main
from proofmark.common.nodesets import hosts_of_nodes
from proofmark.jobs.job_request import BatchQueue, JobSupply
from proofmark.jobs.scripts import Scripts, write_job, write_scripts
from proofmark.jobs.watch import JobMonitor
from proofmark.judge.judging import judge_run
from proofmark.machine.schedulers.flux import Flux as Scheduler
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import State
from proofmark.runs.run import Run, site_of
from proofmark.site.execution import Queue
from proofmark.site.inventory import load_sites

FLUX, MPICC = shutil.which("flux"), shutil.which("mpicc.mpich")
pytestmark = [
    pytest.mark.root,
    pytest.mark.soak,
    pytest.mark.skipif(FLUX is None, reason="no flux-core is installed"),
]
needs_mpich = pytest.mark.skipif(MPICC is None, reason="no MPICH is installed")
flux = Scheduler()
WAITS = 'echo "size $1"; [ "$1" != 2 ] || [ -e "$GO" ] || sleep 100; echo "rate 100"; echo END'
RANKS = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
	int rank, one = 1, ranks = 0, size = atoi(words[1]);
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (size > 100)
		signal(SIGTERM, SIG_IGN);
	sleep(size);
	if (rank == 0)
		printf("size %d\nrate %d\nEND\n", size, ranks);
	MPI_Finalize();
	return 0;
}
"""
"""A program that counts its ranks and sleeps for its size in seconds; a long one needs SIGKILL."""


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    shared = tmp_path_factory.mktemp("shared")
    assert FLUX
    with (
        Cluster(shared / "cluster", 3, shared=[shared]) as cluster,
        Flux(cluster, Path(FLUX).parent.parent, cores=2) as instance,
    ):
        yield instance


@pytest.fixture
def instance(booted: Flux, monkeypatch: pytest.MonkeyPatch) -> Flux:
    monkeypatch.setenv("PATH", f"{booted.cluster.bin}:{os.environ['PATH']}")
    return booted


@pytest.fixture
def kit(booted: Flux, tmp_path: Path) -> Kit:
    made = make_kit(booted.cluster.folder.parent / tmp_path.name)
    made.program(WAITS)
    return made


def stage(kit: Kit, instance: Flux, **queue: Any) -> Run:
    """Write a run with two steps that each of the three nodes measures, in one job."""
    kit.case(
        suites={"quick": {"scope": "each-node", "sweep": {"size": [1, 2]}}},
        environment={"GO": str(kit.folder / "go")},
    )
    site = kit.site(hosts=instance.cluster.names)
    settings = Queue(**{"stall_timeout_s": 60, **queue})
    partition = site.partition.model_copy(update={"scheduler": "flux", "queue": settings})
    return kit.run(site=site.model_copy(update={"partition": partition}))


def watch(run: Run, said: list[str]) -> None:
    jobs: list[Job] = [job for group in run.plan.groups for job in group.jobs]
    batch = BatchQueue("flux", site_of(run).partition.queue)
    monitor = JobMonitor(run, JobSupply(jobs), batch, said.append)
    while monitor.poll():
        time.sleep(0.3)


def ended_as(job: str, state: State) -> None:
    until(lambda: (status := flux.ended(job)) is not None and status.state is state, 180)


def no_process_stays(run: Run) -> None:
    for variable in ("PROOFMARK_STEP", "PROOFMARK_HELPER"):
        assert left_behind(f"{variable}={run.folder}/", 60) == []


def test_every_node_of_a_job_measures(kit: Kit, instance: Flux) -> None:
    """Control: no fault is injected. Each node has its probes and its samples."""
    (kit.folder / "go").touch()
    run = stage(kit, instance)
    said: list[str] = []
    watch(run, said)
    coverage = judge_run(run).coverage
    assert (coverage.measured, coverage.expected, coverage.stopped) == (6, 6, ()), said
    for name in instance.cluster.names:
        for when in ("before", "after"):
            (probe,) = run.folder.glob(f"workdir/jobs/*/attempt-1/{name}.{when}")
            assert f"| hostname: {name}\n" in probe.read_text()
        for step in steps_of(run):
            assert list(step.glob(f"{name}/execution-1/noise*")) != []
    no_process_stays(run)


@pytest.mark.parametrize("how", ["time-limit", "cancel"])
def test_a_job_that_is_stopped_leaves_the_proofs_of_all_nodes_and_no_process(
    kit: Kit, instance: Flux, how: str
) -> None:
    run = stage(kit, instance)
    ((job,),) = (group.jobs for group in run.plan.groups)
    request = write_job(run.folder, job, BatchQueue("flux", Queue()))
    script = run.folder / "workdir/jobs" / job.id / "job.sh"
    if how == "time-limit":
        script.write_text(script.read_text().replace(f"={request.seconds}s", "=30s"))
    submitted = flux.submit(script, request)
    first, second = steps_of(run)
    until(lambda: len(list(second.glob("*/unfinished-1/stdout"))) == 3)
    if how == "cancel":
        flux.cancel([submitted])
    ended_as(submitted, State.CANCELLED if how == "cancel" else State.TIME_LIMIT)
    until((script.parent / "attempt-1/exit").exists, 60)
    names = instance.cluster.names
    assert all(execution(first / name).exists() for name in names)
    # Flux kills some seconds after its signal. A node that it did not let probe itself is named.
    verdict = judge_run(run)
    left = [name for name in names if not (script.parent / f"attempt-1/{name}.after").exists()]
    faults = [each for each in verdict.conditions.open_stages if each.code == "NOT_PROBED"]
    assert [*hosts_of_nodes(each.nodes for each in faults)] == left
    assert (verdict.counts["INVALID"], verdict.counts["UNJUDGED"]) == (0, 3)
    no_process_stays(run)


def test_a_drained_node_is_named_with_its_reason(kit: Kit, instance: Flux) -> None:
    _, second, third = instance.cluster.names
    instance.call("flux", "resource", "drain", second, "a | DIMM; see 12")
    (kit.folder / "go").touch()
    run = stage(kit, instance)
    said: list[str] = []
    thread = Thread(target=watch, args=(run, said))
    thread.start()
    try:
        until(lambda: any(f"{second}: down drained a | DIMM; see 12" in line for line in said), 60)
        assert flux.nodes([second, third])[third] == "idle"
    finally:
        instance.call("flux", "resource", "undrain", second)
        thread.join(180)
    coverage = judge_run(run).coverage
    assert coverage.measured == 4
    (line,) = coverage.stopped
    assert line.endswith(f"without {second}: down drained a | DIMM; see 12")


def mpi_run(kit: Kit, instance: Flux, **case: Any) -> Run:
    """Write a run on two nodes whose four virtual cores are the CPUs of this machine, in turn."""
    source = kit.folder / "ranks.c"
    source.write_text(RANKS)
    assert MPICC
    subprocess.run([MPICC, source, "-o", kit.folder / "programs/fake"], check=True)
    kit.case(launch="mpi", **case)
    site = kit.site(hosts=instance.cluster.names[:2])
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    facts = {"scheduler": "flux", "origin": "emulated", "host_cpus": cpus}
    site = site.model_copy(update={"partition": site.partition.model_copy(update=facts)})
    software = kit.software(launcher="hydra")
    run = kit.run(software, site, kit.plan(cores=4, site=site))
    for each in ("scripts", "workdir"):
        shutil.rmtree(run.folder / each / "steps")
    made = Scripts.of(site.partition, software, site_of(run).aliases, kit.benchmarks())
    write_scripts(run.folder, run.plan, made)
    return run


@needs_mpich
@pytest.mark.parametrize("ranks", [2, 4, 5, 7, 8])
def test_flux_run_starts_the_ranks_of_mpich(kit: Kit, instance: Flux, ranks: int) -> None:
    """Flux counts two cores on each node: five ranks are more, and not the same on each node."""
    sweep = {"size": 1, "nodes": 2, "ranks": ranks, "placement": "BD"}
    run = mpi_run(kit, instance, sweep=sweep)
    said: list[str] = []
    watch(run, said)
    (step,) = steps_of(run)
    done = execution(step)
    assert end(step) == "0", (said, (done / "stderr").read_text())
    assert f"rate {ranks}\n" in (done / "stdout").read_text()
    assert "flux run" in (step / "run.sh").read_text()
    coverage = judge_run(run).coverage
    assert (coverage.measured, coverage.expected) == (1, 1)


@needs_mpich
def test_copies_run_at_the_same_time(kit: Kit, instance: Flux) -> None:
    sweep = {"size": 5, "nodes": 2, "ranks": 4, "placement": "BD"}
    run = mpi_run(kit, instance, sweep=sweep, copies=2)
    said: list[str] = []
    watch(run, said)
    (step,) = steps_of(run)
    done = execution(step)
    assert end(step) == "0", (said, (done / "stderr").read_text())
    first, second = json.loads((done / "copies.json").read_text())
    assert max(first["start"], second["start"]) < min(first["end"], second["end"])
    for copy in (1, 2):
        assert "rate 2\n" in (done / f"copy-{copy}.out").read_text()


@needs_mpich
def test_steps_of_nodes_run_at_the_same_time(kit: Kit, instance: Flux) -> None:
    sweep = {"size": 5, "nodes": 1, "ranks": 3, "placement": "close"}
    suites = {"quick": {"scope": "each-node", "sweep": sweep}}
    run = mpi_run(kit, instance, suites=suites, sweep={})
    said: list[str] = []
    watch(run, said)
    (step,) = steps_of(run)
    ended = [json.loads(path.read_text()) for path in step.glob("*/execution-1/when.json")]
    starts = [datetime.fromisoformat(each["start"]) for each in ended]
    assert len(ended) == 2, said
    assert max(starts) < min(datetime.fromisoformat(each["end"]) for each in ended)
    assert {path.read_text() for path in step.glob("*/execution-1/rc")} == {"0\n"}


@needs_mpich
def test_a_step_runs_beside_its_load(kit: Kit, instance: Flux) -> None:
    """Both are commands of Flux on the same two nodes."""
    of_load = {"size": 100, "ranks": 2, "placement": "BD"}
    kit.case("load", launch="mpi", suites={}, sweep={})
    load = {"case": "load", "place": "same-nodes", "sweep": of_load}
    sweep = {"size": 5, "nodes": 2, "ranks": 2, "placement": "BD"}
    run = mpi_run(kit, instance, suites={"quick": {"load": load, "sweep": sweep}}, sweep={})
    said: list[str] = []
    watch(run, said)
    (step,) = steps_of(run)
    assert end(step) == "0", said
    assert not (execution(step) / "load.failed").exists()
    no_process_stays(run)


@needs_mpich
def test_ranks_beyond_the_time_limit_of_a_step_end_on_all_nodes(kit: Kit, instance: Flux) -> None:
    sweep = {"size": [1000, 1], "nodes": 2, "ranks": 5, "placement": "BD"}
    run = mpi_run(kit, instance, sweep=sweep, timeout=10)
    said: list[str] = []
    watch(run, said)
    first, second = steps_of(run)
    assert json.loads((execution(first) / "when.json").read_text())["timed_out"], said
    assert end(second) == "0", said
    no_process_stays(run)


@pytest.fixture
def top() -> Iterator[Path]:
    """Yield a folder that all nodes see: a run below /tmp is refused."""
    with TemporaryDirectory(prefix="proofmark-flux-kit-", dir="/srv") as folder:
        yield Path(folder)


def test_init_writes_a_site_and_the_play_measures_it(
    instance: Flux, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    play = make_real_kit(top)
    accept_disturbance(play)  # else a job ends early beside other work
    folder = play.folder / "inventory/mysite"
    assert main(["init", str(folder), "--from-node", "knl0001", "--scheduler", "flux"]) == 0
    facts = folder / "group_vars/knl/partition.yml"
    lines = facts.read_text().splitlines()
    answers = {
        "path:": f"{top}/scratch",
        "stream_array_size:": "1000000000",
    }
    for number, line in enumerate(lines):
        key = line.strip().partition(" ")[0]
        if key in answers and "the default of the kit" not in line:
            lines[number] = f"{line[: line.index(key)]}{key} {answers[key]}"
    facts.write_text("\n".join(lines) + "\n")
    assert main(["check", "-i", str(folder), "--suite", "quick"]) == 0
    (made,) = load_sites(folder, "knl")
    assert made.partition.scheduler == "flux"
    assert list(made.hosts) == instance.cluster.names
    assert main(["init", "--diff", str(folder), "--from-node", "knl0001"]) == 0
    # Other work on this machine changes the verdict, and so the exit code: it is not compared.
    words = ("-e", "suite=quick", "-e", "repeats=1", "-e", "provision_from=system")
    played = play.play("acceptance.yml", "-i", str(folder), "-l", "knl", *words)
    coverage = play.verdict()["coverage"]
    assert coverage["measured"] == coverage["expected"] > 0, played.output
    assert (coverage["missing"], coverage["stopped"]) == ([], [])
    assert {path.read_text() for path in play.run().glob("workdir/steps/*/execution-*/rc")} == {
        "0\n"
    }
