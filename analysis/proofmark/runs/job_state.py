"""The state of a job, as its scheduler reports it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """What can be said of a job; every scheduler's own words map onto these.

    ENDED_UNKNOWN: the scheduler only reports that the job ended; the exit code is read from the
    job's own file.
    """

    WAITING = "waiting"
    RUNNING = "running"
    # It will not get on by itself; the wait for somebody who helps is bounded.
    HELD = "held"
    UNAVAILABLE = "its nodes are not available"
    SUSPENDED = "suspended"
    UNKNOWN = "in a state that is not known here"
    UNREACHABLE = "the scheduler does not answer"
    ENDED_UNKNOWN = "over, and its results are not there yet"
    VANISHED = "vanished"
    # Nothing comes after these.
    ENDED = "ended"
    FAILED = "failed"
    KILLED = "killed"
    REFUSED = "refused"
    CANCELLED = "cancelled by somebody else"
    TIME_LIMIT = "stopped at its time limit"
    NODE_FAILED = "lost a node"
    PREEMPTED = "preempted"
    REQUEUED = "requeued again and again"

    @classmethod
    def of(cls, name: str) -> State:
        """Return the state called `name`, also by the name that it had in runs of format 1."""
        return cls[_OLD_NAMES.get(name, name)]

    @property
    def stuck(self) -> bool:
        """Whether nothing will happen unless somebody acts."""
        return self in _STUCK

    @property
    def final(self) -> bool:
        """Whether the job is over."""
        return self not in _STUCK and self not in (State.WAITING, State.RUNNING)


_OLD_NAMES = {"OVER": "ENDED_UNKNOWN", "SILENT": "UNREACHABLE"}
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
    """A job's state and, in the scheduler's own words, why."""

    state: State
    reason: str = ""
