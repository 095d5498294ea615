"""What the states of a node mean for the kit, whatever its scheduler calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from proofmark.machine.scheduler import BUSY, IDLE, NodeState, NodeStatus, NodeUse


class Use(Enum):
    """What a state of a node means for the kit."""

    IN_SERVICE = "in service"
    PROMISED = "in service, and a job or a reservation of others waits for it"
    OCCUPIED = "in service, and jobs run on it"
    BOOTS = "without power, or about to restart; the scheduler starts it for a job"
    RESERVED = "out of service for all jobs but those of a reservation"
    OUT = "out of service"
    UNKNOWN = "a word that the kit does not know: out of service, perhaps with jobs"


_CLOSED = (Use.BOOTS, Use.RESERVED, Use.OUT, Use.UNKNOWN)
_DOWN = (Use.OUT, Use.UNKNOWN)
_BUSY = (Use.PROMISED, Use.OCCUPIED, Use.BOOTS)

States = Mapping[str, Use]
"""The states of one node, in the words of its scheduler."""


def states_of(words: Iterable[str], table: Mapping[str, Use]) -> dict[str, Use]:
    """Return the meaning of each of `words`, also of those that `table` does not have."""
    found = {
        word if word in table else f"{word!r}, unknown to the kit": table.get(word, Use.UNKNOWN)
        for word in words
    }
    return found or {"no state": Use.UNKNOWN}


def status_of(states: States, reason: str, *, idle: bool | None = None) -> NodeStatus:
    """Return the status of a node with these states.

    Args:
        states: its states.
        reason: why it is out, in the words of the person or program that drained it. A node in
            service has none: Slurm 24.11 keeps the last one.
        idle: whether no job runs on it; None: as its states say.
    """
    closed = [word for word, use in states.items() if use in _CLOSED]
    return NodeStatus(
        out=bool(closed),
        idle=not {Use.OCCUPIED, Use.UNKNOWN} & set(states.values()) if idle is None else idle,
        reason=reason if closed else "",
        states=tuple(word.lower() for word in closed),
        reserved=bool(closed) and all(states[word] is Use.RESERVED for word in closed),
    )


def state_of(states: States, shown: str, reason: str) -> NodeState:
    """Return the state of a node with these states.

    A node that has to boot is busy: a job waits for it.

    Args:
        states: its states.
        shown: its states, as its scheduler prints them.
        reason: why it is out.
    """
    if any(use in _DOWN for use in states.values()):
        return NodeState(NodeUse.DOWN, shown, reason)
    if Use.RESERVED in states.values():
        return NodeState(NodeUse.RESERVED, shown, reason)
    return BUSY if any(use in _BUSY for use in states.values()) else IDLE
