"""The state of a job, as its scheduler reports it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """The states of a job. The states of every scheduler map onto these.

    ENDED_UNKNOWN: the scheduler only reports that the job ended; the exit code is read from the
    job's own file.
    """

    WAITING = "waiting"
    RUNNING = "running"
    # A job does not leave these states without help. The watch waits for a limited time.
    HELD = "held"
    UNAVAILABLE = "its nodes are not available"
    SUSPENDED = "suspended"
    UNKNOWN = "in an unknown state"
    UNREACHABLE = "the scheduler does not answer"
    ENDED_UNKNOWN = "ended, and its results are still missing"
    VANISHED = "vanished"
    # Final states.
    ENDED = "ended"
    FAILED = "failed"
    KILLED = "killed"
    REFUSED = "refused"
    CANCELLED = "cancelled by another user"
    STOPPED = "its own command was stopped and cancelled it"
    TIME_LIMIT = "stopped at its time limit"
    NODE_FAILED = "lost a node"
    PREEMPTED = "preempted"
    REQUEUED = "requeued too often"
    FAIL_FAST = "stopped by fail_fast"
    DISTURBED = "ended early"

    @property
    def stuck(self) -> bool:
        """Whether the job needs help to continue."""
        return self in _STUCK

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self not in _STUCK and self not in (State.WAITING, State.RUNNING)


_STUCK = (
    State.HELD,
    State.UNAVAILABLE,
    State.SUSPENDED,
    State.UNKNOWN,
    State.UNREACHABLE,
    State.ENDED_UNKNOWN,
    State.VANISHED,
)


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, and the reason in the words of the scheduler."""

    state: State
    reason: str = ""
