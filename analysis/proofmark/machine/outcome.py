"""Outcomes of an operation on a node, and the exception that carries one."""

from __future__ import annotations

from enum import StrEnum

from proofmark.common.errors import ProofmarkError


class Outcome(StrEnum):
    """How an operation on a node ended."""

    OK = "OK"
    UNREACHABLE = "UNREACHABLE"
    """No connection to the address."""
    NO_ANSWER = "NO_ANSWER"
    """The connection is open, but no response arrived in time."""
    DENIED = "DENIED"
    """Wrong user or password; there is no retry, because BMCs lock accounts."""
    BAD_CERTIFICATE = "BAD_CERTIFICATE"
    BUSY = "BUSY"
    """The BMC answered every attempt with 429 or 503."""
    UNEXPECTED = "UNEXPECTED"
    """A response that the protocol does not allow here; the text quotes it."""
    REFUSED = "REFUSED"
    """The firmware does not offer the requested setting or reset."""
    CANNOT_SET = "CANNOT_SET"
    """The back end sets nothing; a person has to set the machine."""
    FOREIGN_PENDING = "FOREIGN_PENDING"
    """A setting that this kit did not request waits for the next boot."""
    HELD = "HELD"
    """Another user or program has drained the node."""
    NOT_DRAINED = "NOT_DRAINED"
    """Jobs still run on the node after the drain limit."""
    NOT_RESET = "NOT_RESET"
    """A restart was requested, but the node still has the boot id of before."""
    NO_RETURN = "NO_RETURN"
    """The node did not boot within the boot limit."""
    NOT_APPLIED = "NOT_APPLIED"
    """The node restarted and is in the mode of before."""
    OTHER_MODE = "OTHER_MODE"
    """The node restarted and is in a mode that was not requested."""
    UNPROVEN = "UNPROVEN"
    """The operating system does not show enough to distinguish the modes."""
    STOPPED = "STOPPED"
    """The command was stopped before or during the operation on this node."""


class NodeError(ProofmarkError):
    """An operation on one node failed, with its outcome."""

    def __init__(self, outcome: Outcome, text: str) -> None:
        self.outcome, self.text = outcome, text
        super().__init__(f"{outcome}: {text}")
