"""Outcomes of what is done to a node, and the failure that carries one."""

from __future__ import annotations

from enum import StrEnum

from proofmark.common.errors import ProofmarkError


class Outcome(StrEnum):
    """How an act on a node ended."""

    OK = "OK"
    UNREACHABLE = "UNREACHABLE"
    """Nobody answers at the address."""
    NO_ANSWER = "NO_ANSWER"
    """The line stands, and nothing comes."""
    DENIED = "DENIED"
    """Wrong user or password; not tried again, because BMCs lock accounts."""
    BAD_CERTIFICATE = "BAD_CERTIFICATE"
    BUSY = "BUSY"
    """The BMC kept saying 503, however often it was asked."""
    UNEXPECTED = "UNEXPECTED"
    """An answer that makes no sense here; the text has it."""
    REFUSED = "REFUSED"
    """The firmware does not offer what was asked for."""
    CANNOT_SET = "CANNOT_SET"
    """This back end only records; a person has to set the machine."""
    FOREIGN_PENDING = "FOREIGN_PENDING"
    """Somebody else's change waits for the next boot."""
    HELD = "HELD"
    """Somebody else has taken the node out of service."""
    NOT_DRAINED = "NOT_DRAINED"
    """Jobs still run on it after the time that they were given."""
    NOT_RESET = "NOT_RESET"
    """It was told to restart and answers with the boot id of before."""
    NO_RETURN = "NO_RETURN"
    """It did not come back in time."""
    NOT_APPLIED = "NOT_APPLIED"
    """It restarted and is in the mode of before."""
    OTHER_MODE = "OTHER_MODE"
    """It restarted and is in a mode that nobody asked for."""
    UNPROVEN = "UNPROVEN"
    """The operating system does not tell enough to know the mode."""
    STOPPED = "STOPPED"
    """We were told to stop before this node's turn."""


class NodeError(ProofmarkError):
    """An act on one node failed, with its outcome."""

    def __init__(self, outcome: Outcome, text: str) -> None:
        self.outcome, self.text = outcome, text
        super().__init__(f"{outcome}: {text}")
