"""Runs through a real OpenPBS on a virtual cluster, with default settings: no history of jobs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.emulators.vcluster import Cluster, OpenPbs
from tests.fixtures.kit import Kit, make_kit, steps_of, until

from proofmark.jobs.job_parts import JobSupply
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.watch import JobMonitor
from proofmark.judge.judging import judge_run
from proofmark.machine.outcome import NodeError
from proofmark.machine.scheduler import NO_SUCH_JOB
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.plan.plan import Job
from proofmark.runs.job_state import State
from proofmark.runs.run import Run, site_of
from proofmark.site.execution import Queue

PREFIX = os.environ.get("PROOFMARK_OPENPBS", "")
pytestmark = [
    pytest.mark.root,
    pytest.mark.soak,
    pytest.mark.skipif(not PREFIX, reason="PROOFMARK_OPENPBS is not set: no OpenPBS was built"),
]


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPbs]:
    shared = tmp_path_factory.mktemp("shared")
    with (
        Cluster(shared / "cluster", 2, shared=[shared]) as cluster,
        OpenPbs(cluster, Path(PREFIX)) as pbs,
    ):
        yield pbs


@pytest.fixture
def pbs(booted: OpenPbs, monkeypatch: pytest.MonkeyPatch) -> OpenPbs:
    monkeypatch.setenv("PATH", f"{booted.cluster.bin}:{os.environ['PATH']}")
    return booted


@pytest.fixture
def kit(booted: OpenPbs, tmp_path: Path) -> Kit:
    made = make_kit(booted.cluster.folder.parent / tmp_path.name)
    made.program(
        'echo "size $1"; while [ ! -e "$GO" ]; do sleep 0.05; done; echo "rate 100"; echo END'
    )
    return made


def stage(kit: Kit, pbs: OpenPbs, **queue: Any) -> Run:
    """Write a run with steps that each of both nodes measures, in one job."""
    kit.case(
        suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}},
        environment={"GO": str(kit.folder / "go")},
    )
    site = kit.site(hosts=pbs.cluster.names)
    settings = Queue(**{"stall_timeout_s": 20, **queue})
    partition = site.partition.model_copy(update={"scheduler": "pbs", "queue": settings})
    return kit.run(site=site.model_copy(update={"partition": partition}))


def watch(run: Run, said: list[str]) -> None:
    jobs: list[Job] = [job for group in run.plan.groups for job in group.jobs]
    batch = BatchQueue("pbs", site_of(run).partition.queue)
    monitor = JobMonitor(run, JobSupply(jobs), batch, said.append)
    while monitor.poll():
        time.sleep(0.3)


def started(run: Run) -> tuple[Thread, list[str]]:
    said: list[str] = []
    thread = Thread(target=watch, args=(run, said))
    thread.start()
    return thread, said


def job_of(run: Run) -> str:
    """Return the id of the job, when it is submitted."""

    def submitted() -> bool:
        tickets = [json.loads(path.read_text()) for path in run.folder.rglob("ticket.json")]
        return any(ticket["id"] for ticket in tickets)

    until(submitted)
    (ticket,) = run.folder.rglob("ticket.json")
    return str(json.loads(ticket.read_text())["id"])


def runs_on_both(run: Run) -> None:
    (step,) = steps_of(run)
    until(lambda: len(list(step.glob("*/*/started"))) == 2)


def is_whole(run: Run) -> bool:
    coverage = judge_run(run).coverage
    return (coverage.measured, coverage.expected, coverage.stopped) == (2, 2, ())


@pytest.mark.parametrize("history", [False, True])
def test_every_node_of_a_job_measures(kit: Kit, pbs: OpenPbs, history: bool) -> None:
    """Control: no fault is injected. Without a history PBS forgets a job at its end."""
    pbs.call("qmgr", "-c", f"set server job_history_enable = {history}")
    run = stage(kit, pbs)
    thread, _ = started(run)
    job = job_of(run)
    runs_on_both(run)
    assert Pbs().states([job])[job].state is State.RUNNING
    assert set(Pbs().nodes(pbs.cluster.names).values()) == {"busy"}
    (kit.folder / "go").touch()
    thread.join(120)
    assert is_whole(run)
    assert (job in Pbs().states([job])) == history
    assert history or Pbs().ended(job) == NO_SUCH_JOB
    pbs.call("qmgr", "-c", "set server job_history_enable = False")


def test_a_held_job_is_named_and_goes_on(kit: Kit, pbs: OpenPbs) -> None:
    pbs.call("qmgr", "-c", "set server scheduling = False")
    run = stage(kit, pbs, stall_timeout_s=120)
    thread, said = started(run)
    job = job_of(run)
    pbs.call("qhold", job)
    until(lambda: any("held" in line for line in said))
    pbs.call("qrls", job)
    pbs.call("qmgr", "-c", "set server scheduling = True")
    (kit.folder / "go").touch()
    thread.join(120)
    assert is_whole(run)


def test_a_node_that_goes_offline_after_the_submission_is_named(kit: Kit, pbs: OpenPbs) -> None:
    first, _ = pbs.cluster.names
    pbs.call("qmgr", "-c", "set server scheduling = False")
    run = stage(kit, pbs, stall_timeout_s=120)
    thread, said = started(run)
    job_of(run)
    pbs.call("pbsnodes", "-o", "-C", "fan", first)
    until(lambda: any(f"{first}: down offline fan" in line for line in said))
    with pytest.raises(NodeError, match="does not list knl9; no node was changed"):
        Pbs().drain([pbs.cluster.names[1], "knl9"], "x")
    assert not Pbs().node_status(pbs.cluster.names)[pbs.cluster.names[1]].out
    pbs.call("pbsnodes", "-r", "-C", "", first)
    pbs.call("qmgr", "-c", "set server scheduling = True")
    (kit.folder / "go").touch()
    thread.join(120)
    assert is_whole(run)


def test_a_stopped_queue_is_named(kit: Kit, pbs: OpenPbs) -> None:
    pbs.call("qmgr", "-c", "set queue workq started = False")
    run = stage(kit, pbs, stall_timeout_s=120)
    thread, said = started(run)
    until(lambda: any("the queue workq is stopped" in line for line in said))
    pbs.call("qmgr", "-c", "set queue workq started = True")
    (kit.folder / "go").touch()
    thread.join(120)
    assert is_whole(run)


def test_a_submit_limit_is_tried_again(kit: Kit, pbs: OpenPbs) -> None:
    pbs.call("qmgr", "-c", "set queue workq max_queued = [u:PBS_GENERIC=1]")
    script = kit.folder / "sleep.sh"
    script.write_text("#!/bin/sh\nsleep 300\n")
    other = pbs.call("qsub", "-h", "-o", "/dev/null", "-j", "oe", str(script)).strip()
    run = stage(kit, pbs)
    thread, said = started(run)
    (kit.folder / "go").touch()
    time.sleep(5)
    assert thread.is_alive() and not said
    pbs.call("qdel", other)
    thread.join(120)
    pbs.call("qmgr", "-c", "unset queue workq max_queued")
    assert is_whole(run)


def test_a_job_that_an_admin_deletes_is_named(kit: Kit, pbs: OpenPbs) -> None:
    run = stage(kit, pbs)
    thread, _ = started(run)
    runs_on_both(run)
    pbs.call("qdel", job_of(run))
    thread.join(120)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith("job 00-0001: cancelled by another user")


def test_a_restart_of_the_server_loses_no_job(kit: Kit, pbs: OpenPbs) -> None:
    """It is the last test: a process that it starts ends with the cluster."""
    run = stage(kit, pbs, stall_timeout_s=300)
    thread, _ = started(run)
    runs_on_both(run)
    pbs.stop_server()
    time.sleep(2)
    pbs.start_server()
    (kit.folder / "go").touch()
    thread.join(200)
    assert not thread.is_alive()
    assert is_whole(run)
    assert len(list(run.folder.rglob("attempt-*"))) == 1
