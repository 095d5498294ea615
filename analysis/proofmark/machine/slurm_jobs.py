"""The states of a job of Slurm, and the reasons for which it waits."""

from __future__ import annotations

import re

from proofmark.runs.job_state import JobStatus, State
from proofmark.site.execution import Queue

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
    "PENDING": State.WAITING,  # or the state of its reason
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
    "JobHeldAdmin": State.HELD,
    "JobHeldUser": State.HELD,
    "JobHoldMaxRequeue": State.HELD,
    "launch failed requeued held": State.HELD,
    "job requeued in held state": State.HELD,
    "BadConstraints": State.UNAVAILABLE,
    "PartitionDown": State.UNAVAILABLE,
    "PartitionInactive": State.UNAVAILABLE,
    "PartitionNodeLimit": State.UNAVAILABLE,
    "PartitionTimeLimit": State.UNAVAILABLE,
    "InvalidAccount": State.UNAVAILABLE,
    "InvalidQOS": State.UNAVAILABLE,
    "AccountNotAllowed": State.UNAVAILABLE,
    "QOSNotAllowed": State.UNAVAILABLE,
    "DependencyNeverSatisfied": State.UNAVAILABLE,
    "ReservationDeleted": State.UNAVAILABLE,
}
"""Reasons for which a pending job does not start without help, with blanks or underscores.

Reasons that speak of nodes are not here (``ReqNodeNotAvail``, ``Nodes required for job are DOWN,
DRAINED or reserved …``): a job that names its nodes has them also while these are busy. Source:
``job_reason_string`` of Slurm 20.11 to 24.11.
"""


_CLUSTERS = re.compile(r"(?:^|\s)(?:--clusters?(?:=|\s+)|-M\s*)[\"']?([^\s\"']+)")


def cluster_of(queue: Queue) -> str:
    """Return the cluster that the options of `queue` name; empty if they name none."""
    found = []
    for line in queue.options:
        found += _CLUSTERS.findall(line)
    return found[-1] if found else ""


def of_cluster(queue: Queue, program: str) -> list[str]:
    """Return `program` with the option of its cluster: squeue or sinfo asks that of its host."""
    cluster = cluster_of(queue)
    return [program, f"--clusters={cluster}"] if cluster else [program]


def queue_options(queue: Queue) -> list[str]:
    """Return the options of sbatch, one a line, that say where each job of the kit runs."""
    values = {"partition": queue.name, "account": queue.account, "reservation": queue.reservation}
    return [*(f"--{name}={value}" for name, value in values.items() if value), *queue.options]


def status_of_job(name: str, said: str) -> JobStatus:
    """Return the status of a job in the state `name`, for which Slurm has the reason `said`."""
    state = _STATES.get(name, State.UNKNOWN)
    if name == "PENDING":
        code = said.partition(",")[0].replace("_", " ").strip("() ")
        state = _REASONS.get(code, state)
    shown = "" if said == "None" else said
    return JobStatus(state, " ".join(filter(None, (name, shown))))
