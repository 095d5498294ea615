"""Why a job of a stability run failed: node, fabric, file system, scheduler, program or unknown.

The first rule that applies decides. A cause is named only if something shows it: a job that ends
without a result, a message or a state is unknown, and counts as an interrupt of the machine.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from proofmark.judge.crashes import CRASHES
from proofmark.runs.job_state import State
from proofmark.runs.stability_log import JobRun
from proofmark.site.stability_terms import JobCause

FILE_SYSTEM = (
    # strerror(3) of EIO, ENOTCONN, ESHUTDOWN (a client that Lustre evicted), ESTALE, EROFS, ENOSPC
    # and EDQUOT
    "Input/output error",
    "Transport endpoint is not connected",
    "Cannot send after transport endpoint shutdown",
    "Stale file handle",
    "Read-only file system",
    "No space left on device",
    "Disk quota exceeded",
)
FABRIC = (
    # UCX (github.com/openucx/ucx, issues 5199, 6000 and 9590) and ibv_wc_status_str(3)
    "Transport retry count exceeded",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    # strerror(3) of ENETDOWN, ENETUNREACH, EHOSTUNREACH, ECONNRESET and ETIMEDOUT
    "Network is down",
    "Network is unreachable",
    "No route to host",
    "Connection reset by peer",
    "Connection timed out",
)
OF_SCHEDULER = frozenset(
    {State.REFUSED, State.CANCELLED, State.PREEMPTED, State.REQUEUED, State.VANISHED, State.HELD}
    | {State.SUSPENDED, State.UNKNOWN, State.UNREACHABLE, State.UNAVAILABLE, State.WAITING}
)
"""The scheduler or another user ended a job with this state, or the job never ran."""
INVALID: Literal["invalid"] = "invalid"
"""The end of a job whose result is no measurement, because of the conditions of the run."""
JobEnd = JobCause | Literal["invalid"]
"""Why a job did not finish."""
_KILLED = 128 + 9
"""The exit code of a program that SIGKILL ended: who sent it is not known."""


@dataclass(frozen=True)
class Shown:
    """What the program of a job shows.

    Attributes:
        said: the messages of the program and of the script of its job.
        files: whether a node could not use the folder of the step after its end.
        code: the exit code; None if it did not end.
        timed_out: whether the kit stopped it, because it took too long.
        reasons: the codes of the reasons why the execution is INVALID.
    """

    said: str = ""
    files: bool = False
    code: int | None = None
    timed_out: bool = False
    reasons: Collection[str] = ()


def cause_of(run: JobRun, shown: Shown, *, node_down: bool = False) -> JobEnd | None:
    """Return why a job did not finish; None if it finished, has not ended, or was withdrawn.

    A job that the kit cancelled, and that a node or a file system stopped before, has failed.

    Args:
        run: the submission of the job.
        shown: what its program shows.
        node_down: whether a node of it went down.
    """
    if run.open:
        return None
    crashed = bool(shown.code) or shown.timed_out or not CRASHES.isdisjoint(shown.reasons)
    if run.state is State.ENDED and shown.code is not None and not crashed:
        return INVALID if shown.reasons else None
    if run.state is State.NODE_FAILED or node_down:
        return "node"
    if shown.files or any(words in shown.said for words in FILE_SYSTEM):
        return "file-system"
    if run.withdrawn:
        return None
    if any(words in shown.said for words in FABRIC):
        return "fabric"
    if run.state in OF_SCHEDULER:
        return "scheduler"
    if shown.timed_out or run.state is State.TIME_LIMIT or shown.code == _KILLED:
        return "unknown"  # a program that hangs, or waits for a node or a file system
    return "program" if crashed else "unknown"
