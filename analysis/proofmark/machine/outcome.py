"""Outcomes of an operation on a node, and the exception that carries one."""

from __future__ import annotations

from enum import StrEnum

from proofmark.common.errors import OutsideError
from proofmark.common.text import one_line

LONGEST_TEXT = 400
"""The limit of the text of a failure in characters: a BMC may send any text."""


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
    """A response that the protocol does not allow here, or an exception; the text quotes it."""
    REFUSED = "REFUSED"
    """The firmware does not offer the requested setting or reset."""
    BLOCKED = "BLOCKED"
    """The firmware refuses every change in its present state, for example a lockdown."""
    CANNOT_SET = "CANNOT_SET"
    """The back end sets nothing; a person has to set the machine."""
    CANNOT_RESTORE = "CANNOT_RESTORE"
    """The firmware does not report a value that the change would replace."""
    CHANGED = "CHANGED"
    """Another person or controller has changed the mode that the run had set."""
    REPLACED = "REPLACED"
    """The serial number is not that of the node that was changed."""
    BAD_JOURNAL = "BAD_JOURNAL"
    """The journal of the node is damaged."""
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
    UNKNOWN = "UNKNOWN"
    """The scheduler does not report it; the text has the command that shows it."""
    UNPROVEN = "UNPROVEN"
    """The operating system does not show enough to distinguish the modes."""
    STOPPED = "STOPPED"
    """The command was stopped before or during the operation on this node."""


TEMPORARY = (Outcome.UNREACHABLE, Outcome.NO_ANSWER, Outcome.BUSY)
"""Outcomes of a BMC that may answer later, for example while its node boots."""


class NodeError(OutsideError):
    """An operation on one node failed, with its outcome.

    Attributes:
        text: one printable line of at most `LONGEST_TEXT` characters.
        refused: whether the other side answered that it has not executed the request.
    """

    def __init__(self, outcome: Outcome, text: str, *, refused: bool = False) -> None:
        line = one_line(text)
        if len(line) > LONGEST_TEXT:
            line = f"{line[: LONGEST_TEXT - 1]}…"
        self.outcome, self.text, self.refused = outcome, line, refused
        super().__init__(f"{outcome}: {line}")
