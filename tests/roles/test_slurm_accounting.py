"""A real Slurm with accounting: limits of submitted jobs, and the commands of another cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.emulators.vcluster.slurm_accounting import SETTINGS, missing_programs, start_accounting
from tests.fixtures.kit import ends, make_kit, until
from tests.roles.test_slurm import WAITS, Site

from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import NO_SUCH_JOB
from proofmark.machine.schedulers.slurm import Slurm as Scheduler
from proofmark.runs.job_folder import State
from proofmark.site.execution import Queue

pytestmark = [
    pytest.mark.root,
    pytest.mark.soak,
    pytest.mark.skipif(bool(missing_programs()), reason="no slurmdbd, or no mariadb-server-core"),
]

NAP = ("sbatch", "--parsable", "--nodelist=knl0002", "--output=/dev/null", "--wrap=sleep 600")


@pytest.fixture
def accounting_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    kit = make_kit(tmp_path)
    kit.program(WAITS)
    with Cluster(tmp_path / "cluster", 2, shared=[tmp_path]) as cluster:
        start_accounting(cluster, cluster.folder / "slurm")
        programs = ("sacct", "sacctmgr")
        with Slurm(cluster, settings=SETTINGS, programs=programs) as slurm:
            slurm.call("sacctmgr", "--immediate", "add", "account", "lab")
            slurm.call("sacctmgr", "--immediate", "add", "user", "root", "account=lab")
            monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
            yield Site(kit, slurm)


def test_a_job_waits_while_the_limit_of_submitted_jobs_is_reached(accounting_site: Site) -> None:
    limit = ("sacctmgr", "--immediate", "modify", "user", "root", "set", "MaxSubmitJobs=1")
    accounting_site.slurm.call(*limit)
    other = accounting_site.slurm.call(*NAP).strip()
    run = accounting_site.run(stall_timeout_s=1, queue_timeout_s=90)
    accounting_site.go.touch()
    leaves = Timer(6, lambda: accounting_site.slurm.call("scancel", other))
    leaves.start()
    accounting_site.execute(run)
    leaves.join()
    (history,) = (run.folder / "queue").rglob("history.jsonl")
    assert "AssocMaxSubmitJobLimit" in history.read_text()
    assert ends(run) == ["0", "0", "0"]
    assert judge_run(run).coverage.stopped == ()


def test_all_commands_ask_the_cluster_of_the_queue(
    accounting_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slurm.conf of this host is that of a cluster whose slurmctld does not answer."""
    elsewhere = accounting_site.slurm.folder / "elsewhere" / "slurm.conf"
    elsewhere.parent.mkdir()
    text = accounting_site.slurm.configuration.read_text()
    text = text.replace('ClusterName="virtual"', "ClusterName=elsewhere")
    elsewhere.write_text(f"{text}SlurmctldPort=16817\n")
    for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "sacct"):
        accounting_site.cluster.command(name, SLURM_CONF=str(elsewhere))
    scheduler = Scheduler()
    scheduler.queue = Queue(options=["--clusters=virtual"])
    assert scheduler.nodes(["knl0001"]) == {"knl0001": "idle"}
    run = accounting_site.run(options=["--clusters=virtual"])
    accounting_site.go.touch()
    accounting_site.execute(run)
    assert ends(run) == ["0", "0", "0"]
    job = (
        accounting_site.slurm.call(*NAP[:-1], "--clusters=virtual", NAP[-1])
        .strip()
        .partition(";")[0]
    )
    until(lambda: scheduler.states([job])[job].state is State.RUNNING)
    scheduler.drain(["knl0002"], "a fan")
    status = scheduler.node_status(["knl0002"])["knl0002"]
    assert (status.out, status.idle, status.reason) == (True, False, "a fan")
    scheduler.resume(["knl0002"])
    assert scheduler.reservations() == {}
    scheduler.cancel([job])
    until(lambda: scheduler.states([job])[job].state is State.CANCELLED)
    assert scheduler.ended("999999") == NO_SUCH_JOB


@pytest.mark.parametrize(
    ("limit", "reason", "key"),
    [
        ("MaxTRESPerJob=node=1", "QOSMaxNodePerJobLimit", "partition.nodes_per_job"),
        ("MaxWall=1", "QOSMaxWallDurationPerJobLimit", "queue.max_walltime_s"),
    ],
)
def test_a_limit_of_one_job_ends_it_at_once(
    accounting_site: Site, limit: str, reason: str, key: str
) -> None:
    accounting_site.slurm.call("sacctmgr", "--immediate", "add", "qos", "small", "set", limit)
    accounting_site.slurm.call(
        "sacctmgr", "--immediate", "modify", "user", "root", "set", "qos+=small"
    )
    run = accounting_site.run(nodes=2, options=["--qos=small"])
    began = time.monotonic()
    accounting_site.execute(run)
    assert time.monotonic() - began < 300, "queue_timeout_s is 7 days, stall_timeout_s half an hour"
    (line,) = judge_run(run).coverage.stopped
    assert f"PENDING {reason}; PartitionName=" in line
    assert limit.replace("PerJob", "").replace("Wall=1", "Wall=00:01:00") in line
    assert f"change `{key}`" in line
    assert accounting_site.slurm.call("squeue", "--noheader").strip() == ""


GROUPS = [
    ("qos", "GrpTRES=node=1", "QOSGrpNodeLimit", "partition.nodes_per_job"),
    ("qos", "MaxTRESPerUser=node=1", "QOSMaxNodePerUserLimit", "partition.nodes_per_job"),
    ("qos", "GrpTRES=cpu=300", "QOSGrpCpuLimit", "partition.nodes_per_job"),
    ("account", "GrpTRES=node=1", "AssocGrpNodeLimit", "partition.nodes_per_job"),
]
"""Limits that one job of one node keeps, and a job of two nodes exceeds alone."""


@pytest.mark.parametrize(("owner", "limit", "reason", "key"), GROUPS)
def test_a_job_beyond_the_limit_of_its_group_ends_and_one_within_waits(
    accounting_site: Site, owner: str, limit: str, reason: str, key: str
) -> None:
    call = accounting_site.slurm.call
    call("sacctmgr", "--immediate", "add", "qos", "small")
    call("sacctmgr", "--immediate", "modify", "user", "root", "set", "qos+=small")
    name = {"qos": "small", "account": "lab"}[owner]
    call("sacctmgr", "--immediate", "modify", owner, name, "set", limit)
    options = ["--qos=small", "--account=lab"]
    large = accounting_site.run(nodes=2, options=options)
    accounting_site.execute(large)
    (line,) = judge_run(large).coverage.stopped
    assert f"PENDING {reason}; PartitionName=" in line
    assert f"it never starts; change `{key}`" in line
    other = call(*NAP[:-1], *options, "--exclusive", NAP[-1]).strip()
    until(lambda: Scheduler().states([other])[other].state is State.RUNNING)
    leaves = Timer(8, lambda: call("scancel", other))
    leaves.start()
    accounting_site.go.touch()
    small = accounting_site.run(stall_timeout_s=1, queue_timeout_s=90, options=options)
    accounting_site.execute(small)
    leaves.join()
    (history,) = (small.folder / "queue").rglob("history.jsonl")
    assert f"PENDING {reason}" in history.read_text()
    assert ends(small) == ["0", "0", "0"]
