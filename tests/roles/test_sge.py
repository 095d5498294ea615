"""Runs through a real Grid Engine on a virtual cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster, GridEngine
from tests.roles.batch import Batch, is_whole, make_batch, runs_on_all, ticket_of

from proofmark.jobs.job_request import extreme_requests
from proofmark.judge.judging import judge_run
from proofmark.machine.preflight import scheduler_findings
from proofmark.machine.schedulers.sge import GridEngine as Scheduler
from proofmark.runs.job_folder import State
from proofmark.runs.run import site_of

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
def batch(engine: GridEngine, tmp_path: Path) -> Batch:
    return make_batch("sge", engine, tmp_path.name, exclusive=False)


def test_every_node_of_a_job_measures(batch: Batch) -> None:
    """Control: no fault is injected."""
    run = batch.stage()
    batch.go()
    batch.watch(run)
    assert is_whole(run)


def test_a_job_that_an_admin_deletes_is_named(batch: Batch, engine: GridEngine) -> None:
    run = batch.stage()
    with batch.watched(run):
        runs_on_all(run)
        engine.call("qdel", ticket_of(run)["id"])
    (line,) = judge_run(run).coverage.stopped
    # Its last state tells of the deletion. Accounts of newer releases report who deleted the job.
    # With -notify the job has probed its node before it was killed. A loaded machine may not reach
    # the others in the time that the job takes for it.
    assert line.startswith("job 00-0001: cancelled by another user: dr")
    assert list(run.folder.rglob("*.after"))


@pytest.mark.parametrize(("options", "job"), [([], "OK"), (["-l arch=elsewhere"], "REFUSED")])
def test_a_job_that_no_queue_can_run_is_named_before_the_run(
    batch: Batch, options: list[str], job: str
) -> None:
    run = batch.stage()
    facts = site_of(run)
    queue = facts.partition.queue.model_copy(update={"options": options})
    partition = facts.partition.model_copy(update={"scheduler": "sge", "queue": queue})
    facts = facts.model_copy(update={"partition": partition})
    first, _, *rest = scheduler_findings(facts, extreme_requests(facts, run.plan), "root")
    assert first.outcome == "OK"
    assert {each.outcome for each in rest} == {job}


@pytest.mark.parametrize(
    ("queue", "short", "key"),
    [
        ({"options": ["-pe proofmark 99"]}, "INFINITY", "queue.parallel_environment"),
        ({}, "00:00:10", "queue.max_walltime_s"),
    ],
)
def test_a_job_that_no_queue_can_ever_run_ends_at_once(
    batch: Batch, engine: GridEngine, queue: dict[str, list[str]], short: str, key: str
) -> None:
    run = batch.stage(**queue)
    engine.call("qconf", "-mattr", "queue", "h_rt", short, "all.q")
    with batch.watched(run):
        pass
    engine.call("qconf", "-mattr", "queue", "h_rt", "INFINITY", "all.q")
    (line,) = judge_run(run).coverage.stopped
    assert "verification: no suitable queues" in line
    assert f"it never starts; change `{key}`" in line


def test_states_of_nodes_and_of_a_job_by_its_id(
    batch: Batch, engine: GridEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file .sge_qstat of the user hides the job from a plain qstat."""
    first, second = engine.cluster.names
    scheduler = Scheduler()
    run = batch.stage()
    with batch.watched(run):
        runs_on_all(run)
        submission = ticket_of(run)
        (batch.kit.folder / ".sge_qstat").write_text("-s z\n")
        monkeypatch.setenv("HOME", str(batch.kit.folder))
        assert scheduler.find(submission["name"]) == submission["id"]
        assert list(scheduler.states([submission["id"]])) == [submission["id"]]
        known = scheduler.ended(submission["id"])
        assert known is not None
        assert known.state in (State.RUNNING, State.WAITING)
        assert set(scheduler.nodes([first, second]).values()) == {"busy"}
        batch.go()
    engine.call("qmod", "-d", f"*@{first}")
    assert scheduler.nodes([first, second]) == {first: "down d", second: "idle"}
    engine.call("qmod", "-e", f"*@{first}")


@pytest.mark.fault("scheduler-restarts")
def test_a_restart_of_the_qmaster_loses_no_job(batch: Batch, engine: GridEngine) -> None:
    """It is the last test: a process that it starts ends with the engine."""
    run = batch.stage()
    with batch.watched(run):
        runs_on_all(run)
        engine.stop_master()
        time.sleep(1)
        engine.start_master()
        batch.go()
    assert is_whole(run)
    assert len(list(run.folder.rglob("attempt-*"))) == 1
