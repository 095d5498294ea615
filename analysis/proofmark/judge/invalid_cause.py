"""The cause of an INVALID figure: the next step depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from proofmark.common.message import Message


class InvalidCause(Enum):
    """Why a figure is INVALID."""

    DISTURBED = "disturbed"
    NO_SPACE = "no-space"
    ERROR_COUNTERS = "error-counters"
    NO_PROGRAM = "no-program"
    NO_END = "no-end"
    FILE_SYSTEM = "file-system"
    MODE = "mode"
    BINDING = "binding"
    IMPOSSIBLE = "impossible"
    NETWORK = "network"
    NETWORK_UNPROVEN = "network-unproven"
    OTHER = "other"


NOT_BY_RERUN = frozenset(
    {InvalidCause.BINDING, InvalidCause.MODE, InvalidCause.NO_PROGRAM, InvalidCause.IMPOSSIBLE}
    | {InvalidCause.NETWORK, InvalidCause.NETWORK_UNPROVEN}
)
"""The causes that a further execution of the step does not remove."""


def invalid_cause(reason: Message) -> InvalidCause:
    """Return the cause of a figure that is INVALID for `reason`."""
    codes = set(reason.codes())
    return next((cause for cause, known in CODES.items() if codes & known), InvalidCause.OTHER)


CODES: Mapping[InvalidCause, frozenset[str]] = {
    InvalidCause.DISTURBED: frozenset({"disturbed", "rate-changed"}),
    InvalidCause.NO_SPACE: frozenset({"no-space", "reader-no-space", "scratch-full-on"}),
    InvalidCause.ERROR_COUNTERS: frozenset(
        {"counter-rose", "counter-changed", "counter-rose-at", "counter-changed-at"}
    ),
    InvalidCause.NO_PROGRAM: frozenset(
        {"no-program", "no-program-said", "no-execution", "no-execution-said"}
    ),
    InvalidCause.NO_END: frozenset(
        {"timed-out", "killed", "processes-left", "exit-code", "exit-code-said"}
    ),
    InvalidCause.FILE_SYSTEM: frozenset(
        {"scratch-elsewhere", "scratch-empty", "scratch-mount", "scratch-mount-root"}
        | {"scratch-mount-changed", "scratch-link-changed", "scratch-same", "scratch-files"}
        | {"scratch-bytes", "scratch-failed", "other-mount"}
    ),
    InvalidCause.MODE: frozenset(
        {"mode-without-boot", "mode-of-other-boot", "mode-not-readable", "mode-not-proven"}
        | {"other-mode", "other-shape"}
    ),
    InvalidCause.BINDING: frozenset(
        {"rank-twice", "ranks-silent", "rank-unplanned", "rank-cpus", "rank-host", "rank-memory"}
        | {"rank-threads-missing", "rank-threads", "thread-unplanned", "threads-silent"}
        | {"thread-cpus"}
    ),
    InvalidCause.IMPOSSIBLE: frozenset({"above-bound", "below-bound"}),
    InvalidCause.NETWORK: frozenset({"other-network"}),
    InvalidCause.NETWORK_UNPROVEN: frozenset(
        {"networks-unread", "networks-unrecorded", "node-networks-unread"}
        | {"node-networks-unrecorded"}
    ),
}
"""The codes of each cause. The first cause with a code of the reason counts."""
