"""The states of a job of Slurm, and the reasons for which it waits."""

from __future__ import annotations

from proofmark.runs.job_state import JobStatus, State

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
    "JobHeld": State.HELD,  # JobHeldUser, JobHeldAdmin
    "JobHoldMaxRequeue": State.HELD,
    "launch": State.HELD,  # launch_failed_requeued_held, with spaces or underscores
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
"""Prefixes of reasons for which a pending job does not start without help."""


def status_of_job(name: str, said: str) -> JobStatus:
    """Return the status of a job in the state `name`, for which Slurm has the reason `said`."""
    state = _STATES.get(name, State.UNKNOWN)
    if name == "PENDING":
        known = (stuck for prefix, stuck in _REASONS.items() if said.startswith(prefix))
        state = next(known, state)
    shown = "" if said == "None" else said
    return JobStatus(state, " ".join(filter(None, (name, shown))))
