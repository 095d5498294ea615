"""The cause of an INVALID figure, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from proofmark.common.message import Message
from proofmark.common.translation import N_


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


class Again(Enum):
    """The command that follows an advice."""

    NOTHING = "nothing"
    """The advice has no command, or its text names one."""
    RERUN = "rerun"
    """The steps run again, and the run is judged again."""
    CONTINUE = "continue"
    """The command of the acceptance repeats what is missing or was disturbed."""
    FRESH = "fresh"
    """The command of the acceptance starts a new run."""
    REPEATS = "repeats"
    """The command of the acceptance starts a new run, which repeats what is too noisy."""
    RESTORE = "restore"
    """The nodes are restored."""
    COMPARE = "compare"
    """The inventory is compared with the machine."""


class Advice(NamedTuple):
    """What to do about a cause.

    Attributes:
        text: one or two sentences without the last full stop, for `translated`. ``{processes}``
            stands for what disturbed the figures.
        again: the command that follows.
    """

    text: str
    again: Again


ADVICE: Mapping[InvalidCause, Advice] = {
    InvalidCause.DISTURBED: Advice(
        N_("Stop {processes}. Then the same command repeats only the disturbed steps"),
        Again.CONTINUE,
    ),
    InvalidCause.NO_SPACE: Advice(
        N_("Free some space, or use another scratch folder. Then measure again"), Again.RERUN
    ),
    InvalidCause.ERROR_COUNTERS: Advice(
        N_("Error counters of the node rose. Replace the part that they name, then measure again"),
        Again.RERUN,
    ),
    InvalidCause.NO_PROGRAM: Advice(
        N_("The program or a library is missing. Check it with `proofmark stage check-programs`"),
        Again.NOTHING,
    ),
    InvalidCause.NO_END: Advice(
        N_("The program did not end by itself. Read stderr of the step, then measure again"),
        Again.RERUN,
    ),
    InvalidCause.FILE_SYSTEM: Advice(
        N_("Check the mounts of the scratch folder on the node. Then measure again"), Again.RERUN
    ),
    InvalidCause.MODE: Advice(
        N_(
            "Verify the firmware mode of the node with `proofmark modes verify`. Then measure again"
        ),
        Again.NOTHING,
    ),
    InvalidCause.BINDING: Advice(
        N_(
            "Check the affinity of the scheduler and of the MPI. A changed machine needs a new "
            "run. Compare the machine with the inventory"
        ),
        Again.COMPARE,
    ),
    InvalidCause.IMPOSSIBLE: Advice(
        N_("The value is faster than the hardware. Check the input and the clock of the node"),
        Again.NOTHING,
    ),
    InvalidCause.NETWORK: Advice(
        N_("The traffic did not use the planned network. Check the settings of the MPI"),
        Again.NOTHING,
    ),
    InvalidCause.NETWORK_UNPROVEN: Advice(
        N_("The counters of the networks are missing. Read the messages of the job"),
        Again.NOTHING,
    ),
    InvalidCause.OTHER: Advice(
        N_("Read stdout and stderr of the step. Remove the cause. Then measure again"), Again.RERUN
    ),
}
"""The one advice for each cause. The terminal and the page print it."""

NOT_BY_RERUN = frozenset(
    cause for cause, advice in ADVICE.items() if advice.again not in (Again.RERUN, Again.CONTINUE)
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
