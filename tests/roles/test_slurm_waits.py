"""What a job waits for on a real Slurm, and variables of its commands that the caller has set."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.kit import ends, make_kit, until
from tests.roles.test_slurm import WAITS, Site, finish, slurm_site, stopped

from proofmark.jobs.job_request import extreme_requests
from proofmark.judge.judging import judge_run
from proofmark.machine.preflight import scheduler_findings
from proofmark.machine.scheduler import NO_SUCH_JOB
from proofmark.machine.schedulers.slurm import Slurm as Scheduler
from proofmark.runs.job_folder import State
from proofmark.runs.run import Run, site_of

pytestmark = pytest.mark.root

STALL_S = 2
RESERVATION = ("StartTime=now", "Duration=60", "Users=nobody", "Nodes=knl0001")


URGENT = "PartitionName=urgent Nodes=ALL PriorityTier=10 OverSubscribe=EXCLUSIVE State=UP"
OTHERS = (
    "PartitionName=short Nodes=ALL MaxTime=1 State=UP",
    "PartitionName=shut Nodes=ALL State=DOWN",
    "PartitionName=one Nodes=ALL MaxNodes=1 State=UP",
)


@pytest.fixture
def urgent_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with slurm_site(tmp_path, monkeypatch, 2, lines=[URGENT, *OTHERS]) as made:
        yield made


def occupied(site: Site, *partitions: str) -> Callable[[], object]:
    """Submit a job for the first node to each partition; return what cancels them."""
    nap = ("sbatch", "--parsable", "--nodelist=knl0001", "--output=/dev/null", "--wrap=sleep 600")
    ids: list[str] = []
    for partition in partitions:
        ids.append(site.slurm.call(*nap[:-1], f"--partition={partition}", nap[-1]).strip())
        until(lambda: site.slurm.states()["knl0001"] == "alloc")
    return lambda: site.slurm.call("scancel", *ids)


def reserved(site: Site, flags: str) -> Callable[[], object]:
    create = ("scontrol", "create", "reservation", "ReservationName=others", *RESERVATION)
    site.slurm.call(*create, f"Flags={flags}")
    return lambda: site.slurm.call("scontrol", "delete", "ReservationName=others")


def run_after(site: Site, run: Run, reason: str, free: Callable[[], object]) -> None:
    """Execute `run`. Its job gets its node after it has waited for `reason` for a long time."""

    def later() -> None:
        pending = ("squeue", "--noheader", "--states=PENDING", "--format=%r")
        until(lambda: reason in site.slurm.call(*pending), 60)
        time.sleep(3 * STALL_S)
        free()

    helper = Thread(target=later)
    helper.start()
    site.go.touch()
    site.execute(run)
    helper.join()


@pytest.mark.parametrize(
    ("reason", "flags", "nodes"),
    [
        ("Nodes required for job are DOWN, DRAINED or reserved", "", 2),
        ("ReqNodeNotAvail, UnavailableNodes:knl0001", "", 1),
        ("ReqNodeNotAvail, May be reserved for other job", "IGNORE_JOBS", 1),
        ("ReqNodeNotAvail, May be reserved for other job", "MAINT", 1),
    ],
)
def test_a_job_waits_for_a_healthy_node_that_is_not_free(
    urgent_site: Site, reason: str, flags: str, nodes: int
) -> None:
    """Without a reservation a job runs on the node, and an urgent one waits for it, too."""
    run = urgent_site.run(nodes=nodes, stall_timeout_s=STALL_S, queue_timeout_s=90)
    free = reserved(urgent_site, flags) if flags else occupied(urgent_site, "knl", "urgent")
    run_after(urgent_site, run, reason, free)
    assert ends(run) == ["0", "0", "0"]
    assert judge_run(run).coverage.stopped == ()


def test_a_node_whose_prolog_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm drains the node and cancels the job: no user did it."""
    kit = make_kit(tmp_path)
    kit.program(WAITS)
    prolog = tmp_path / "prolog"
    prolog.write_text("#!/bin/sh\nexit 1\n")
    prolog.chmod(0o755)
    with (
        Cluster(tmp_path / "cluster", 1, shared=[tmp_path]) as cluster,
        Slurm(cluster, settings={"Prolog": prolog}) as slurm,
    ):
        monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        site = Site(kit, slurm)
        run = site.run()
        site.execute(run)
    assert "lost a node: knl0001: down" in stopped(run)
    assert "Prolog error" in stopped(run)


@pytest.mark.fault("nodes-unavailable")
def test_a_node_that_is_drained_while_its_job_waits_is_named(urgent_site: Site) -> None:
    run = urgent_site.run(stall_timeout_s=STALL_S, queue_timeout_s=90)
    occupied(urgent_site, "knl")
    update = ("scontrol", "update", "NodeName=knl0001", "State=DRAIN", "Reason=a fan")

    def later() -> None:
        until(lambda: len(urgent_site.jobs()) == 2)  # ours is submitted
        urgent_site.slurm.call(*update)

    helper = Thread(target=later)
    helper.start()
    urgent_site.execute(run)
    helper.join()
    assert "its nodes are not available: PENDING" in stopped(run)
    assert "knl0001: down draining a fan" in stopped(run)


@pytest.mark.parametrize(
    ("queue", "limits", "job"),
    [
        ({}, "OK", "OK"),
        ({"name": "short"}, "UNFIT short: scontrol show partition: at most 1 min", "OK"),
        ({"name": "shut"}, "UNFIT shut: scontrol show partition: DOWN", "OK"),
        ({"name": "one"}, "UNFIT one: scontrol show partition: at most 1 nodes", "REFUSED"),
        ({"name": "shrt"}, "NO_QUEUE 'shrt', did you mean 'short'?", "REFUSED"),
        ({"reservation": "others"}, "OK", "REFUSED"),
        ({"options": ["--constraint=hbm"]}, "OK", "REFUSED"),
        ({"exclusive": False, "cpus_per_node": 500}, "OK", "REFUSED"),
    ],
)
def test_a_queue_that_refuses_the_longest_job_is_named_before_the_run(
    urgent_site: Site, queue: dict[str, Any], limits: str, job: str
) -> None:
    run = urgent_site.run(nodes=2, **queue)
    facts = site_of(run)
    first, second, *rest = scheduler_findings(facts, extreme_requests(facts, run.plan), "root")
    assert first.outcome == "OK"
    assert f"{second.outcome} {second.text}".startswith(limits)
    assert {each.outcome for each in rest} == {job}
    assert urgent_site.jobs() == []


def test_nodes_that_are_out_of_service_are_named_before_the_run(urgent_site: Site) -> None:
    urgent_site.slurm.call("scontrol", "update", "NodeName=knl0001", "State=DRAIN", "Reason=a fan")
    run = urgent_site.run(nodes=2)
    facts = site_of(run)
    first, *_ = scheduler_findings(facts, extreme_requests(facts, run.plan), "root")
    assert (first.outcome, first.nodes) == ("CLOSED", ("knl0001",))
    assert first.text == "knl0001: down drained a fan"


MISLEADING = {
    "SCANCEL_PARTITION": "elsewhere",
    "SCANCEL_STATE": "SUSPENDED",
    "SCANCEL_NAME": "another",
    "SCANCEL_ACCOUNT": "another",
    "SCANCEL_USER": "nobody",
    "SQUEUE_PARTITION": "elsewhere",
    "SQUEUE_STATES": "SUSPENDED",
    "SQUEUE_USERS": "nobody",
    "SQUEUE_NAMES": "another",
    "SQUEUE_FORMAT": "%j",
    "SBATCH_PARTITION": "elsewhere",
    "SBATCH_HOLD": "1",
    "SBATCH_EXCLUSIVE": "user",
    "SBATCH_NODELIST": "knl0002",
    "SBATCH_JOB_NAME": "another",
    "SBATCH_TEST_ONLY": "1",
    "SINFO_PARTITION": "elsewhere",
    "SINFO_FORMAT": "%t",
    "SLURM_CLUSTERS": "elsewhere",
    "SLURM_HINT": "nomultithread",
    "SLURM_JOB_ID": "1",
    "SLURM_NTASKS": "7",
}
"""Variables that are options of the commands of Slurm."""


def test_variables_of_the_caller_are_no_options(
    urgent_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands find their server by the SLURM_CONF of the caller."""
    for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo"):
        urgent_site.cluster.command(name)
    monkeypatch.setenv("SLURM_CONF", f"{urgent_site.slurm.configuration}")
    scheduler = Scheduler()
    run = urgent_site.run()
    for name, value in MISLEADING.items():
        monkeypatch.setenv(name, value)
    assert scheduler.nodes(["knl0001"]) == {"knl0001": "idle"}
    with urgent_site.begun(run) as process:
        (ticket,) = (run.folder / "queue").rglob("ticket.json")
        job = json.loads(ticket.read_text())["id"]
        assert scheduler.states([job])[job].state is State.RUNNING
        assert scheduler.nodes(["knl0001"]) == {"knl0001": "busy"}
        scheduler.cancel([job])
        until(lambda: scheduler.states([job])[job].state is State.CANCELLED)
        assert finish(process)[0] == 0
    assert "cancelled by another user" in stopped(run)
    assert scheduler.ended("999999") == NO_SUCH_JOB
