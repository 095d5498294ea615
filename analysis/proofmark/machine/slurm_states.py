"""The states of a node of Slurm 20.11 to 26.05, and what each means for the kit.

Source: the tables ``node_states`` and ``node_state_flags``, and the functions ``node_state_string``
and ``node_state_string_compact``, of ``src/common/slurm_protocol_defs.c`` in each release.
"""

from __future__ import annotations

from proofmark.machine.node_states import Use, states_of

FLAGS = {
    # node_states: each node has one of these.
    "ALLOCATED": Use.OCCUPIED,
    "DOWN": Use.OUT,
    "ERROR": Use.OUT,
    "FUTURE": Use.OUT,  # a place for a node that does not exist yet
    "IDLE": Use.IN_SERVICE,
    "INVALID": Use.OUT,  # Slurm's word for a value without a name
    "MIXED": Use.OCCUPIED,
    "UNKNOWN": Use.OUT,  # slurmctld has started, and the node has not reported yet
    # node_state_flags: a node can have several.
    "BLOCKED": Use.OCCUPIED,  # by a job that must be alone in a part of the fabric
    "CLOUD": Use.IN_SERVICE,  # while it exists; else it is POWERED_DOWN too
    "COMPLETING": Use.OCCUPIED,
    "DRAIN": Use.OUT,
    "DYNAMIC": Use.IN_SERVICE,  # 21.08: how the node was registered
    "DYNAMIC_FUTURE": Use.IN_SERVICE,
    "DYNAMIC_NORM": Use.IN_SERVICE,
    "EXTERNAL": Use.OUT,  # 25.05: another program starts its jobs; it has no slurmd
    "FAIL": Use.OUT,
    "INVALID_REG": Use.OUT,  # the node has less hardware than slurm.conf states
    "MAINTENANCE": Use.RESERVED,
    "NOT_RESPONDING": Use.OUT,
    "PERFCTRS": Use.OCCUPIED,  # to 23.11: a job uses the counters of the network alone
    "PLANNED": Use.PROMISED,
    "POWERED_DOWN": Use.BOOTS,
    "POWERING_DOWN": Use.BOOTS,
    "POWERING_UP": Use.BOOTS,
    "POWER_DOWN": Use.BOOTS,
    "POWER_UP": Use.BOOTS,
    "REBOOT_ISSUED": Use.BOOTS,
    "REBOOT_REQUESTED": Use.BOOTS,
    "RESERVED": Use.PROMISED,  # `Scheduler.reservations` has the name
    "RESUME": Use.IN_SERVICE,
}

OTHER_NAMES = {
    "ALLOC": "ALLOCATED",
    "BLOCK": "BLOCKED",
    "BOOT": "REBOOT_REQUESTED",
    "COMP": "COMPLETING",
    "DRAINED": "DRAIN",
    "DRAINING": "DRAIN ALLOCATED",
    "DRNG": "DRAIN ALLOCATED",
    "EXT": "EXTERNAL",
    "FAILG": "FAIL ALLOCATED",
    "FAILING": "FAIL ALLOCATED",
    "FUTR": "FUTURE",
    "INVAL": "INVALID_REG",
    "MAINT": "MAINTENANCE",
    "MIX": "MIXED",
    "NPC": "PERFCTRS",
    "PLND": "PLANNED",
    "POWERED_DN": "POWERED_DOWN",
    "POWRING_DN": "POWERING_DOWN",
    "POWRNG_DN": "POWERING_DOWN",
    "POW_DN": "POWER_DOWN",
    "POW_UP": "POWER_UP",
    "REBOOT": "REBOOT_REQUESTED",
    "RESM": "RESUME",
    "RESV": "RESERVED",
    "UNK": "UNKNOWN",
}
"""The words of ``sinfo --format=%T`` and ``%t`` for one or two of `FLAGS`."""

SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
    "+": "COMPLETING",
}
"""sinfo(1), NODE STATE CODES: the character after a word of ``%T`` and ``%t``."""


def node_states(text: str) -> dict[str, Use]:
    """Return the flags of a node and their meanings.

    Args:
        text: ``idle+drain`` (StateComplete), ``DRAINED*`` (``%T``) or ``drain*`` (``%t``).
    """
    words: list[str] = []
    for word in text.strip().upper().split("+"):
        name = word.rstrip("".join(SUFFIXES))
        words += OTHER_NAMES.get(name, name).split()
        words += [SUFFIXES[mark] for mark in word[len(name) :]]
    if text.strip().endswith("+"):
        words.append(SUFFIXES["+"])
    return states_of(words, FLAGS)


_NO_REASON = "none"
"""The reason that sinfo prints if there is none."""


def read_reasons(text: str, mark: str) -> dict[str, str]:
    """Return the reason of each node; each entry of `text` is ``MARK NODE REASON``.

    A reason may have line breaks. A node of several partitions has several equal entries.
    """
    entries = (entry.partition(" ") for entry in f"\n{text}".split(f"\n{mark} ")[1:])
    reasons = {node: reason.rstrip("\n") for node, _, reason in entries}
    return {node: "" if reason == _NO_REASON else reason for node, reason in reasons.items()}
