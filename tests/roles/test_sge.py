"""Runs through a real Grid Engine on a virtual cluster."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.emulators.vcluster import Cluster, GridEngine
from tests.fixtures.kit import Kit, make_kit, steps_of, until

from proofmark.jobs.job_parts import JobSupply
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.watch import JobMonitor
from proofmark.judge.judging import judge_run
from proofmark.machine.schedulers.sge import GridEngine as Scheduler
from proofmark.plan.plan import Job
from proofmark.runs.job_state import State
from proofmark.runs.run import Run, site_of
from proofmark.site.execution import Queue

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridEngine]:
    shared = tmp_path_factory.mktemp("shared")
    with Cluster(shared / "cluster", 2, shared=[shared]) as cluster, GridEngine(cluster) as engine:
        yield engine


@pytest.fixture
def engine(booted: GridEngine, monkeypatch: pytest.MonkeyPatch) -> GridEngine:
    monkeypatch.setenv("PATH", f"{booted.cluster.bin}:{os.environ['PATH']}")
    return booted


@pytest.fixture
def kit(booted: GridEngine, tmp_path: Path) -> Kit:
    made = make_kit(booted.cluster.folder.parent / tmp_path.name)
    made.program(
        'echo "size $1"; while [ ! -e "$GO" ]; do sleep 0.05; done; echo "rate 100"; echo END'
    )
    return made


def stage(kit: Kit, engine: GridEngine, **queue: Any) -> Run:
    """Write a run with steps that each of both nodes measures, in one job."""
    kit.case(
        suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}},
        environment={"GO": str(kit.folder / "go")},
    )
    site = kit.site(hosts=engine.cluster.names)
    settings = Queue(**{"exclusive": False, "stall_timeout_s": 20, **queue})
    partition = site.partition.model_copy(update={"scheduler": "sge", "queue": settings})
    return kit.run(site=site.model_copy(update={"partition": partition}))


def watch(run: Run) -> None:
    jobs: list[Job] = [job for group in run.plan.groups for job in group.jobs]
    batch = BatchQueue("sge", site_of(run).partition.queue)
    monitor = JobMonitor(run, JobSupply(jobs), batch, lambda line: None)
    while monitor.poll():
        time.sleep(0.2)


def test_every_node_of_a_job_measures(kit: Kit, engine: GridEngine) -> None:
    """Control: no fault is injected."""
    run = stage(kit, engine)
    (kit.folder / "go").touch()
    watch(run)
    coverage = judge_run(run).coverage
    assert (coverage.measured, coverage.expected, coverage.stopped) == (2, 2, ())


def test_a_job_that_an_admin_deletes_is_named(kit: Kit, engine: GridEngine) -> None:
    run = stage(kit, engine)
    thread = Thread(target=watch, args=(run,))
    thread.start()
    (step,) = steps_of(run)
    until(lambda: len(list(step.glob("*/*/started"))) == 2)
    (ticket,) = (run.folder / "jobs").rglob("ticket.json")
    until(lambda: json.loads(ticket.read_text())["id"] != "")
    engine.call("qdel", json.loads(ticket.read_text())["id"])
    thread.join(50)
    (line,) = judge_run(run).coverage.stopped
    # The accounts of this release report no more. Newer releases report who deleted the job.
    assert line.startswith("job 00-0001: killed: 100 : assumedly after job; ")


def test_states_of_nodes_and_of_a_job_by_its_id(
    kit: Kit, engine: GridEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file .sge_qstat of the user hides the job from a plain qstat."""
    first, second = engine.cluster.names
    scheduler = Scheduler()
    run = stage(kit, engine)
    thread = Thread(target=watch, args=(run,))
    thread.start()
    (step,) = steps_of(run)
    until(lambda: len(list(step.glob("*/*/started"))) == 2)
    (ticket,) = (run.folder / "jobs").rglob("ticket.json")
    until(lambda: json.loads(ticket.read_text())["id"] != "")
    submission = json.loads(ticket.read_text())
    (kit.folder / ".sge_qstat").write_text("-s z\n")
    monkeypatch.setenv("HOME", str(kit.folder))
    assert scheduler.find(submission["name"]) == submission["id"]
    assert list(scheduler.states([submission["id"]])) == [submission["id"]]
    known = scheduler.ended(submission["id"])
    assert known is not None
    assert known.state in (State.RUNNING, State.WAITING)
    assert set(scheduler.nodes([first, second]).values()) == {"busy"}
    (kit.folder / "go").touch()
    thread.join(60)
    engine.call("qmod", "-d", f"*@{first}")
    assert scheduler.nodes([first, second]) == {first: "down d", second: "idle"}
    engine.call("qmod", "-e", f"*@{first}")


@pytest.mark.fault("scheduler-restarts")
def test_a_restart_of_the_qmaster_loses_no_job(kit: Kit, engine: GridEngine) -> None:
    """It is the last test: a process that it starts ends with the engine."""
    run = stage(kit, engine)
    thread = Thread(target=watch, args=(run,))
    thread.start()
    (step,) = steps_of(run)
    until(lambda: len(list(step.glob("*/*/started"))) == 2)
    engine.stop_master()
    time.sleep(1)
    engine.start_master()
    (kit.folder / "go").touch()
    thread.join(60)
    assert not thread.is_alive()
    coverage = judge_run(run).coverage
    assert (coverage.measured, coverage.expected, coverage.stopped) == (2, 2, ())
    assert len(list(run.folder.rglob("attempt-*"))) == 1
