"""Slurm (20.11 and later; tried with 22.05)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import folded
from proofmark.machine.controller_tools import ask_tool
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import (
    DrainingScheduler,
    NodeStatus,
    Request,
    SchedulerError,
    SchedulerUnavailable,
    ask_scheduler,
)
from proofmark.runs.job_state import JobStatus, State

_SILENT = ("nable to contact", "timed out", "connect failure", "temporarily unable", "Zero Bytes")

_STATES = {
    "BOOT_FAIL": State.NODE_FAILED,
    "CANCELLED": State.CANCELLED,
    "COMPLETED": State.ENDED_UNKNOWN,
    "COMPLETING": State.RUNNING,
    "CONFIGURING": State.WAITING,  # its nodes boot
    "DEADLINE": State.TIME_LIMIT,
    "FAILED": State.ENDED_UNKNOWN,
    "LAUNCH_FAILED": State.NODE_FAILED,
    "NODE_FAIL": State.NODE_FAILED,
    "OUT_OF_MEMORY": State.KILLED,
    "PENDING": State.WAITING,  # or what the reason says
    "POWER_UP_NODE": State.WAITING,
    "PREEMPTED": State.PREEMPTED,
    "RECONFIG_FAIL": State.NODE_FAILED,
    "REQUEUED": State.WAITING,
    "REQUEUE_FED": State.WAITING,
    "REQUEUE_HOLD": State.HELD,
    "RESIZING": State.RUNNING,
    "RESV_DEL_HOLD": State.HELD,
    "REVOKED": State.CANCELLED,
    "RUNNING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "SPECIAL_EXIT": State.HELD,
    "STAGE_OUT": State.RUNNING,
    "STOPPED": State.SUSPENDED,
    "SUSPENDED": State.SUSPENDED,
    "TIMEOUT": State.TIME_LIMIT,
}
"""`man squeue`, section JOB STATE CODES."""

_REASONS = {
    "JobHeld": State.HELD,  # JobHeldUser, JobHeldAdmin
    "JobHoldMaxRequeue": State.HELD,
    "launch": State.HELD,  # launch_failed_requeued_held, with blanks or without
    "ReqNodeNotAvail": State.UNAVAILABLE,
    "Nodes required": State.UNAVAILABLE,
    "Nodes_required": State.UNAVAILABLE,
    "NodeDown": State.UNAVAILABLE,
    "BadConstraints": State.UNAVAILABLE,
    "Partition": State.UNAVAILABLE,  # PartitionDown, -Inactive, -NodeLimit, -TimeLimit
    "Invalid": State.UNAVAILABLE,  # InvalidAccount, InvalidQOS
    "AccountNotAllowed": State.UNAVAILABLE,
    "QOSNotAllowed": State.UNAVAILABLE,
    "DependencyNeverSatisfied": State.UNAVAILABLE,
    "ReservationDeleted": State.UNAVAILABLE,
}
"""The reasons for which a pending job will not start by itself, by how they begin."""

_DOWN = ("down", "drain", "drng", "fail", "maint", "inval", "unk", "power", "boot", "reboot")
"""Node states (`sinfo -o %T`) from which nothing starts, by how they begin; a ``*`` is silence."""

TIMEOUT_S = 60

OUT = {"DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "MAINT"}

OCCUPIED = {"ALLOCATED", "MIXED", "COMPLETING", "DRAINING"}

FIELD = re.compile(r"(?:^| )(NodeName|State|Reason)=")

MARK = re.compile(r"(?:^| )\[[^\]]*@[^\]]*\]$")
"""Of a reason's end: who gave it and when."""


class Slurm(DrainingScheduler):
    """Slurm (20.11 and later; tried with 22.05)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "scancel"

    def header(self, request: Request) -> list[str]:
        """Return the lines of ``#SBATCH``."""
        return [f"#SBATCH {option}" for option in _options(request)]

    def fan_out(self, request: Request) -> list[str]:
        """Start it by srun, once on every node; one that was lost is no longer among the job's.

        Slurm loses count of what is free in a job that has lost a node: hence ``--overlap``.
        """
        return [
            "on_all() {",
            'count=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%D) && [ -n "$count" ] ||',
            "count=$SLURM_JOB_NUM_NODES",
            'exec srun --nodes="$count" --ntasks="$count" --ntasks-per-node=1 --no-kill \\',
            "--wait=0 --kill-on-bad-exit=0 --overlap --mpi=none --cpu-bind=none --input=none \\",
            'sh "$@"',
            "}",
        ]

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        said = ask_scheduler("sbatch", "--parsable", str(script), silent=_SILENT)
        return said.strip().partition(";")[0]

    def find(self, name: str) -> str:
        """Return the job that is called `name`."""
        found = ask_scheduler(*_squeue("%i", f"--name={name}"), silent=_SILENT).split()
        return found[0] if found else ""

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Ask squeue once for all jobs of this user; it lists ended jobs until MinJobAge."""
        # Not --jobs: an id that is no longer known makes an error of the whole question.
        lines = ask_scheduler(*_squeue("%i|%T|%r", "--states=all"), silent=_SILENT).splitlines()
        known = (line.split("|", 2) for line in lines if line.count("|") >= 2)
        return {job: _state(word, reason) for job, word, reason in known if job in ids}

    def ended(self, job: str) -> JobStatus | None:
        """Ask the accounts, where there are any."""
        try:
            said = ask_scheduler(
                "sacct", "--noheader", "--parsable2", "-X", f"--jobs={job}", "--format=State"
            )
        except (SchedulerError, SchedulerUnavailable, BadInput):
            return None
        return _state(said.split()[0], "") if said.split() else None

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancel the jobs; one that has ended is none to complain about."""
        ask_scheduler("scancel", "--quiet", *ids, silent=_SILENT)

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Ask sinfo once."""
        wanted = f"--nodes={folded(names)}"
        said = ask_scheduler(
            "sinfo", "--noheader", "--Node", wanted, "--format=%N|%T|%E", silent=_SILENT
        )
        told = (line.split("|", 2) for line in said.splitlines())
        return {name: _node(state, reason) for name, state, reason in told}

    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        """Read state and reason of each node."""
        text = _scontrol("--oneliner", "show", "node", folded(nodes))
        found = dict(_node_status(line) for line in text.splitlines() if line.strip())
        if missing := sorted(set(nodes) - found.keys()):
            raise NodeError(Outcome.UNEXPECTED, f"scontrol does not know {folded(missing)}")
        return found

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Let the nodes take no further job."""
        _scontrol("update", f"NodeName={folded(nodes)}", "State=DRAIN", f"Reason={reason}")

    def resume(self, nodes: Sequence[str]) -> None:
        """Let the nodes take jobs again."""
        _scontrol("update", f"NodeName={folded(nodes)}", "State=RESUME")

    def missing_permission(self, node: str) -> str:
        """Return why we may not drain, or nothing.

        Only an operator may set a node's comment or state; its comment is set to what it is.
        """
        try:
            line = _scontrol("--oneliner", "show", "node", node)
            there = re.search(r" Comment=(.*?)(?= \w+=|$)", line)
            _scontrol("update", f"NodeName={node}", f"Comment={there[1] if there else ''}")
        except NodeError as failed:
            return failed.text
        return ""


def _options(request: Request) -> list[str]:
    queue = request.queue
    chosen = {
        "job-name": request.name,
        "nodelist": folded(request.nodes),
        "nodes": str(len(request.nodes)),
        "time": request.clock,
        "output": shlex.quote(f"{request.log}"),
        "open-mode": "append",
        "partition": queue.name,
        "account": queue.account,
        "reservation": queue.reservation,
    }
    options = [f"--{name}={value}" for name, value in chosen.items() if value]
    options += ["--no-requeue"]  # a job that is run again is a new attempt, which we start
    options += ["--exclusive"] if queue.exclusive else []
    options += ["--no-kill"] if request.independent and len(request.nodes) > 1 else []
    return [*options, *queue.options]


def _squeue(form: str, *options: str) -> list[str]:
    return ["squeue", "--noheader", f"--user={os.getuid()}", *options, f"--format={form}"]


def _state(word: str, reason: str) -> JobStatus:
    state = _STATES.get(word, State.UNKNOWN)
    if word == "PENDING":
        state = next((found for part, found in _REASONS.items() if reason.startswith(part)), state)
    told = reason if reason not in ("None", "") else ""
    return JobStatus(state, " ".join(filter(None, (word, told))))


def _node(state: str, reason: str) -> str:
    if state.startswith(_DOWN) or state.endswith("*"):
        return " ".join(filter(None, ("down", state, reason if reason != "none" else "")))
    return "idle" if state == "idle" else "busy"


def _node_status(line: str) -> tuple[str, NodeStatus]:
    parts = FIELD.split(line)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    flags = set(re.split(r"[^A-Z_]+", told["State"].split()[0]))
    reason = MARK.sub("", told.get("Reason", "").strip())
    name = told["NodeName"].split()[0]
    return name, NodeStatus(bool(flags & OUT), not flags & OCCUPIED, reason)


def _scontrol(*arguments: str) -> str:
    return ask_tool("scontrol", *arguments, timeout_s=TIMEOUT_S)
