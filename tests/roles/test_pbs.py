"""Runs through a real OpenPBS on a virtual cluster, with default settings: no history of jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster, OpenPbs
from tests.emulators.vcluster.pbs import SERVER
from tests.fixtures.kit import until
from tests.roles.batch import (
    NEEDS_OPENPBS,
    OPENPBS,
    Batch,
    is_whole,
    make_batch,
    runs_on_all,
    ticket_of,
)

from proofmark.judge.judging import judge_run
from proofmark.machine.outcome import NodeError
from proofmark.machine.scheduler import NO_SUCH_JOB
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.runs.job_folder import State

pytestmark = NEEDS_OPENPBS


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPbs]:
    shared = tmp_path_factory.mktemp("shared")
    with (
        Cluster(shared / "cluster", 2, shared=[shared]) as cluster,
        OpenPbs(cluster, Path(OPENPBS), settings=("set server acl_roots = root",)) as pbs,
    ):
        yield pbs


@pytest.fixture
def pbs(booted: OpenPbs, monkeypatch: pytest.MonkeyPatch) -> OpenPbs:
    monkeypatch.setenv("PATH", f"{booted.cluster.bin}:{os.environ['PATH']}")
    return booted


@pytest.fixture
def batch(pbs: OpenPbs, tmp_path: Path) -> Batch:
    return make_batch("pbs", pbs, tmp_path.name)


@pytest.mark.parametrize("history", [False, True])
def test_every_node_of_a_job_measures(batch: Batch, pbs: OpenPbs, history: bool) -> None:
    """Control: no fault is injected. Without a history PBS forgets a job at its end."""
    pbs.call("qmgr", "-c", f"set server job_history_enable = {history}")
    run = batch.stage()
    with batch.watched(run):
        job = ticket_of(run)["id"]
        runs_on_all(run)
        assert Pbs().states([job])[job].state is State.RUNNING
        assert set(Pbs().nodes(pbs.cluster.names).values()) == {"busy"}
        batch.go()
    assert is_whole(run)
    assert (job in Pbs().states([job])) == history
    assert history or Pbs().ended(job) == NO_SUCH_JOB
    pbs.call("qmgr", "-c", "set server job_history_enable = False")


def test_a_held_job_is_named_and_goes_on(batch: Batch, pbs: OpenPbs) -> None:
    pbs.call("qmgr", "-c", "set server scheduling = False")
    run = batch.stage(stall_timeout_s=120)
    with batch.watched(run):
        job = ticket_of(run)["id"]
        pbs.call("qhold", job)
        until(lambda: any("held" in line for line in batch.said))
        pbs.call("qrls", job)
        pbs.call("qmgr", "-c", "set server scheduling = True")
        batch.go()
    assert is_whole(run)


def test_a_node_that_goes_offline_after_the_submission_is_named(batch: Batch, pbs: OpenPbs) -> None:
    first, second = pbs.cluster.names
    pbs.call("qmgr", "-c", "set server scheduling = False")
    run = batch.stage(stall_timeout_s=120)
    with batch.watched(run):
        ticket_of(run)
        pbs.call("pbsnodes", "-o", "-C", "fan", first)
        until(lambda: any(f"{first}: down offline fan" in line for line in batch.said))
        with pytest.raises(NodeError, match="does not list knl9; no node was changed"):
            Pbs().drain([second, "knl9"], "x")
        assert not Pbs().node_status(pbs.cluster.names)[second].out
        pbs.call("pbsnodes", "-r", "-C", "", first)
        pbs.call("qmgr", "-c", "set server scheduling = True")
        batch.go()
    assert is_whole(run)


def test_a_stopped_queue_is_named(batch: Batch, pbs: OpenPbs) -> None:
    pbs.call("qmgr", "-c", "set queue workq started = False")
    run = batch.stage(stall_timeout_s=120)
    with batch.watched(run):
        until(lambda: any("the queue workq is stopped" in line for line in batch.said))
        pbs.call("qmgr", "-c", "set queue workq started = True")
        # A cycle now: by default the scheduler looks again after ten minutes.
        pbs.call("qmgr", "-c", "set server scheduling = True")
        batch.go()
    assert is_whole(run)


def test_a_submit_limit_is_tried_again(batch: Batch, pbs: OpenPbs) -> None:
    pbs.call("qmgr", "-c", "set queue workq max_queued = [u:PBS_GENERIC=1]")
    script = batch.kit.folder / "sleep.sh"
    script.write_text("#!/bin/sh\nsleep 300\n")
    other = pbs.call("qsub", "-h", "-o", "/dev/null", "-j", "oe", str(script)).strip()
    run = batch.stage()
    with batch.watched(run) as thread:
        batch.go()
        time.sleep(5)
        assert thread.is_alive() and not batch.said
        pbs.call("qdel", other)
    pbs.call("qmgr", "-c", "unset queue workq max_queued")
    assert is_whole(run)


def test_a_job_that_an_admin_deletes_is_named(batch: Batch, pbs: OpenPbs) -> None:
    run = batch.stage()
    with batch.watched(run):
        runs_on_all(run)
        pbs.call("qdel", ticket_of(run)["id"])
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith("job 00-0001: cancelled by another user")


def test_a_restart_of_the_server_loses_no_job(batch: Batch, pbs: OpenPbs) -> None:
    """It is the last test: a process that it starts ends with the cluster."""
    run = batch.stage(stall_timeout_s=300)
    with batch.watched(run, 200):
        runs_on_all(run)
        pbs.stop_server(SERVER)
        time.sleep(2)
        pbs.start_server(SERVER)
        until(lambda: "down" not in pbs.call("pbsnodes", "-a"))
        # A server that was killed may have kept no record that the job runs: it runs again. Until
        # its next look, ten minutes later, it says that the job can never run.
        pbs.call("qmgr", "-c", "set server scheduling = True")
        batch.go()
    assert is_whole(run)
    assert len(list(run.folder.rglob("attempt-*"))) <= 2
