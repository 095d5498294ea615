"""The scheduler modules, with emulated commands that refuse what the real commands refuse."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import make_kit
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import (
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    scheduler,
)
from proofmark.machine.schedulers import sge, slurm
from proofmark.runs.job_state import State
from proofmark.site.execution import Queue

EMULATOR = ROOT / "tests/emulators/batch.py"
COMMANDS = (
    *("qsub", "qstat", "qselect", "qdel", "pbsnodes"),
    *("llsubmit", "llq", "llcancel", "llstatus"),
)
JOB = "p1a2b3c-00-0001"
pbs, loadleveler = scheduler("pbs"), scheduler("loadleveler")


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the emulated commands first in PATH; return the folder of their files."""
    for name in COMMANDS:
        (tmp_path / name).symlink_to(EMULATOR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_BATCH", str(tmp_path))
    return tmp_path


def request(*nodes: str, **queue: Any) -> Request:
    settings = Queue(name="normal", account="etc", **queue)
    return Request(JOB, nodes or ("n1",), 3661, Path("/runs/1/messages"), settings)


def script(folder: Path, module: Scheduler, requested: Request) -> Path:
    path = folder / "job.sh"
    path.write_text("\n".join(["#!/bin/sh", *module.header(requested), "true"]) + "\n")
    return path


def set_queue(folder: Path, **jobs: Any) -> None:
    (folder / "jobs.json").write_text(json.dumps(jobs))


def pbs_job(state: str, **fields: Any) -> dict[str, Any]:
    return {"Job_Name": JOB, "job_state": state, **fields}


@pytest.mark.parametrize("nodes", [("n1",), ("n1", "n2", "n10")])
@pytest.mark.parametrize("exclusive", [True, False])
def test_headers_are_accepted(batch: Path, nodes: tuple[str, ...], exclusive: bool) -> None:
    requested = request(*nodes, exclusive=exclusive)
    assert pbs.submit(script(batch, pbs, requested), requested) == "1234.pbs01"
    assert loadleveler.submit(script(batch, loadleveler, requested), requested) == "srv24ib.840220"


def test_an_unknown_option_is_refused(batch: Path) -> None:
    """The control of the emulated commands: they refuse unknown options."""
    requested = request(options=["-Z 1"])
    with pytest.raises(SchedulerError, match="usage: qsub: -Z 1"):
        pbs.submit(script(batch, pbs, requested), requested)
    requested = request(options=["colour = red"])
    with pytest.raises(SchedulerError, match="has not been submitted: colour = red"):
        loadleveler.submit(script(batch, loadleveler, requested), requested)


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        (pbs_job("Q"), State.WAITING),
        (pbs_job("Q", comment="Can Never Run: Insufficient amount of resource"), State.UNAVAILABLE),
        (pbs_job("R", comment="Job run at Fri Nov 20 at 10:00"), State.RUNNING),
        (pbs_job("H", Hold_Types="s"), State.HELD),
        (pbs_job("W"), State.WAITING),
        (pbs_job("S"), State.SUSPENDED),
        (pbs_job("F", Exit_status=0, substate=92), State.ENDED_UNKNOWN),
        (pbs_job("F", Exit_status=74, substate=92), State.ENDED_UNKNOWN),
        (pbs_job("F", Exit_status=-29, substate=93), State.TIME_LIMIT),
        (pbs_job("F", Exit_status=271, substate=93), State.TIME_LIMIT),
        (pbs_job("F", Exit_status=271, substate=91), State.CANCELLED),
        (pbs_job("F", Exit_status=-4), State.NODE_FAILED),
        (pbs_job("Z"), State.UNKNOWN),
    ],
)
def test_states_of_pbs(batch: Path, fields: dict[str, Any], state: State) -> None:
    set_queue(batch, **{"1234.pbs01": fields})
    statuses = pbs.states(["1234.pbs01", "99.pbs01"])  # an unknown job is no error
    assert {job: status.state for job, status in statuses.items()} == {"1234.pbs01": state}


@pytest.mark.parametrize(
    ("codes", "state"),
    [
        ("D I MP NQ P", State.WAITING),
        ("CK CP EP R RP ST VP XP", State.RUNNING),
        ("H HS S", State.HELD),
        ("NR", State.UNAVAILABLE),
        ("E", State.SUSPENDED),
        ("C", State.ENDED_UNKNOWN),
        ("CA RM", State.CANCELLED),
        ("V", State.NODE_FAILED),
        ("TX", State.KILLED),
        ("X", State.REFUSED),
        ("ZZ", State.UNKNOWN),
    ],
)
def test_states_of_loadleveler(batch: Path, codes: str, state: State) -> None:
    for code in codes.split():
        set_queue(batch, **{"srv24ib.840220": {"state": code, "name": JOB}})
        statuses = loadleveler.states(["srv24ib.840220", "srv24ib.1"])
        assert {job: status.state for job, status in statuses.items()} == {"srv24ib.840220": state}
        assert loadleveler.find(JOB) == "srv24ib.840220"


NEVER = "Can Never Run: Insufficient amount of resource: host"


@pytest.mark.parametrize(
    ("name", "fields", "message", "cancelled"),
    [
        pytest.param(
            "pbs",
            pbs_job("H", Hold_Types="o"),
            "held: H, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-held"),
        ),
        pytest.param(
            "pbs",
            pbs_job("Q", comment=NEVER),
            f"its nodes are not available: Q {NEVER}, given up after 0 s",
            True,
            marks=pytest.mark.fault("nodes-unavailable"),
        ),
        ("pbs", pbs_job("Q"), "waiting: Q, given up after 0 s", True),
        ("pbs", pbs_job("U"), "suspended: U, given up after 0 s", True),
        ("pbs", pbs_job("M"), "vanished: M, given up after 0 s", True),
        pytest.param(
            "pbs",
            pbs_job("Z"),
            "in an unknown state: Z, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-state-unknown"),
        ),
        ("pbs", pbs_job("F", Exit_status=-3), "lost a node: F exit status -3; ", False),
        ("pbs", pbs_job("F", substate=93), "stopped at its time limit: F", False),
        ("pbs", pbs_job("F", Exit_status=0), "ended, and its results are still missing: F", True),
        ("pbs", None, "vanished: the scheduler no longer lists it, given up after 0 s", True),
        pytest.param(
            "loadleveler",
            {"state": "S"},
            "held: S, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-held"),
        ),
        ("loadleveler", {"state": "X"}, "refused: X", False),
        ("loadleveler", None, "vanished: the scheduler no longer lists it", True),
    ],
)
def test_a_job_that_cannot_continue_stops_with_its_state(
    batch: Path,
    tmp_path: Path,
    name: str,
    fields: dict[str, Any] | None,
    message: str,
    cancelled: bool,
) -> None:
    job = {"pbs": "1234.pbs01", "loadleveler": "srv24ib.840220"}[name]
    set_queue(batch, **({job: {"name": "another", **fields}} if fields else {}))
    (batch / "nodes.json").write_text('{"nodes": {"n1": {"state": "free"}}}')
    kit = make_kit(tmp_path / "kit")
    site = kit.site(hosts=["n1"])
    queue = Queue(stall_timeout_s=0.1, queue_timeout_s=0.1)
    changes = {"scheduler": name, "queue": queue}
    partition = site.partition.model_copy(update=changes)
    run = kit.run(site=site.model_copy(update={"partition": partition}))
    execute(run, name, lambda line: None)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith(f"job 00-0001: {message}")
    assert line.endswith("; 2 of 2 steps left")
    calls = (batch / "calls").read_text().split()
    assert (("qdel" if name == "pbs" else "llcancel") in calls) == cancelled


def test_an_empty_queue_is_no_error(batch: Path) -> None:
    assert loadleveler.states(["srv24ib.1"]) == {}
    assert (pbs.states(["1.pbs01"]), pbs.find(JOB), loadleveler.find(JOB)) == ({}, "", "")
    pbs.cancel(["1.pbs01"])
    loadleveler.cancel(["srv24ib.1"])


def test_an_unavailable_server_and_a_refusal_raise_different_errors(batch: Path) -> None:
    (batch / "refuse").write_text("qstat: cannot connect to server pbs01 (errno=15010)")
    with pytest.raises(SchedulerUnavailable, match="cannot connect to server"):
        pbs.states(["1.pbs01"])
    (batch / "refuse").write_text("qsub: Unknown queue")
    with pytest.raises(SchedulerError, match="Unknown queue"):
        pbs.submit(script(batch, pbs, request()), request())
    (batch / "refuse").write_text("llq: 2512-301 An error occurred: Unable to connect to 9614")
    with pytest.raises(SchedulerUnavailable):
        loadleveler.states(["srv24ib.1"])


def test_states_of_nodes(batch: Path) -> None:
    nodes = {
        "n1": {"state": "free"},
        "n2": {"state": "job-exclusive"},
        "n3": {"state": "offline,down", "comment": "DIMM"},
    }
    (batch / "nodes.json").write_text(json.dumps({"nodes": nodes}))
    expected = {"n1": "idle", "n2": "busy", "n3": "down offline,down DIMM"}
    assert pbs.nodes(["n1", "n2", "n3", "n4"]) == expected
    states = loadleveler.nodes(["p595-01", "p595-02", "p595-03"])
    assert states == {"p595-01": "idle", "p595-02": "busy", "p595-03": "down Down"}


def test_a_missing_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BadInput, match="no program 'qstat' in PATH"):
        pbs.states(["1"])


def test_one_by_one_runs_on_every_node_and_fails_if_one_node_fails(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text(
        "#!/bin/sh\nfor last; do shift; case $last in n*) node=$last; break;; esac; done\n"
        f'[ "$node" != n2 ] || exit 3\neval "set -- $*"\n'  # as the shell on the node does
        f'for word; do node="$node|$word"; done\necho "$node" >>"{tmp_path}/seen"\n'
    )
    (tmp_path / "ssh").chmod(0o755)
    lines = loadleveler.fan_out(request("n1", "n2", "n3"))
    (tmp_path / "try").write_text("\n".join([*lines, "on_all '/x y/run.sh' \"it's\" '$HOME'"]))
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["sh", str(tmp_path / "try")], env={"PATH": path}, check=False)
    assert done.returncode == 3
    seen = sorted((tmp_path / "seen").read_text().splitlines())
    assert seen == ["n1|sh|/x y/run.sh|it's|$HOME", "n3|sh|/x y/run.sh|it's|$HOME"]


@pytest.mark.parametrize(
    ("name", "reason", "state"),
    [
        ("RUNNING", "None", State.RUNNING),
        ("CONFIGURING", "None", State.WAITING),
        ("SUSPENDED", "None", State.SUSPENDED),
        ("COMPLETED", "None", State.ENDED_UNKNOWN),
        ("FAILED", "NonZeroExitCode", State.ENDED_UNKNOWN),
        ("CANCELLED", "None", State.CANCELLED),
        ("TIMEOUT", "TimeLimit", State.TIME_LIMIT),
        ("NODE_FAIL", "None", State.NODE_FAILED),
        ("OUT_OF_MEMORY", "None", State.KILLED),
        ("PREEMPTED", "None", State.PREEMPTED),
        ("PENDING", "JobHeldAdmin", State.HELD),
        ("PENDING", "launch failed requeued held", State.HELD),
        ("PENDING", "ReqNodeNotAvail, UnavailableNodes:knl0007", State.UNAVAILABLE),
        ("PENDING", "Priority", State.WAITING),
        ("PENDING", "Resources", State.WAITING),
        ("BORED", "None", State.UNKNOWN),
    ],
)
def test_states_of_slurm(name: str, reason: str, state: State) -> None:
    assert slurm._state(name, reason).state is state


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("qw", State.WAITING),
        ("hqw", State.HELD),
        ("Eqw", State.HELD),
        ("r", State.RUNNING),
        ("t", State.RUNNING),
        ("dr", State.RUNNING),
        ("Rr", State.RUNNING),
        ("Rq", State.WAITING),
        ("s", State.SUSPENDED),
        ("S", State.SUSPENDED),
        ("T", State.SUSPENDED),
        ("z", State.UNKNOWN),
    ],
)
def test_states_of_grid_engine(letters: str, state: State) -> None:
    assert sge._state(letters).state is state
