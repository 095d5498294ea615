"""The faults of tests/faults.yml that a rehearsal can inject, and their expected messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.rehearsal.room import Room


def _nothing(_: Room) -> None:
    pass


class Need(Enum):
    """The requirement on a rehearsal for a fault to have an effect."""

    CONFIRMATION = "confirm_reboot=true"
    RESET = "a reset of the node"
    CHANGE = "playbooks that change the nodes"
    LINKS = "a measurement of the links"


@dataclass(frozen=True)
class Fault:
    """One fault. ``{node}`` in its texts is the node that has it.

    Attributes:
        what: the fault, in few words.
        message: the text that the playbooks must print, or that the lines of the verdict must have.
        bmc: the fault of the node's BMC, a word of `tests.emulators.bmc.machine.FAULTS`.
        rate: the speed of the node's link.
        mount: lines of sh that the node's mount command runs first.
        before: called when the cluster has started.
        meanwhile: called in a thread while a job runs.
        ends_well: whether the run still measures everything and the verdict is 0.
        needs: the requirements on the rehearsal. Every fault also needs a step on its node.
    """

    what: str
    message: str
    bmc: str = ""
    rate: str = ""
    mount: str = ""
    before: Callable[[Room], None] = _nothing
    meanwhile: Callable[[Room], None] | None = None
    ends_well: bool = False
    needs: frozenset[Need] = frozenset({Need.CHANGE})


_AT_THE_CHECK = frozenset({Need.CONFIRMATION})
_AT_THE_RESET = frozenset({Need.CONFIRMATION, Need.RESET, Need.CHANGE})


def _bmc(word: str, what: str, outcome: str, needs: frozenset[Need] = _AT_THE_CHECK) -> Fault:
    return Fault(what, f"{outcome}: 1 nodes ({{node}})", bmc=word, needs=needs)


def _drain(room: Room) -> None:
    reason = ("State=DRAIN", "Reason=a fan is broken")
    room.slurm.call("scontrol", "update", f"NodeName={room.victim}", *reason)


def _restart_scheduler(room: Room) -> None:
    room.slurm.stop_controller()
    time.sleep(2)
    room.slurm.start_controller()


def _take_power(room: Room) -> None:
    room.cluster.kill(room.victim)


FAULTS = {
    "bmc-unreachable": _bmc("unreachable", "no BMC at the address of {node}", "UNREACHABLE"),
    "bmc-wrong-password": _bmc("wrong-password", "another password in the BMC of {node}", "DENIED"),
    "bmc-expired-certificate": _bmc("expired", "an expired certificate", "BAD_CERTIFICATE"),
    "bmc-hang": _bmc("hang", "a BMC that never answers", "NO_ANSWER"),
    "bmc-503-storm": _bmc("busy", "a BMC that is always busy", "BUSY"),
    "mode-foreign-pending": _bmc("foreign", "a change of another person waits", "FOREIGN_PENDING"),
    "mode-not-applied": _bmc(
        "silent", "firmware that forgets its settings", "NOT_APPLIED", _AT_THE_RESET
    ),
    "mode-no-return": _bmc("no-return", "{node} does not boot", "NO_RETURN", _AT_THE_RESET),
    "mode-other-mode": _bmc(
        "other-mode", "{node} boots in another mode", "OTHER_MODE", _AT_THE_RESET
    ),
    "mode-drained-by-admin": Fault(
        "an administrator has drained {node}",
        "HELD: 1 nodes ({node})",
        before=_drain,
        needs=_AT_THE_CHECK,
    ),
    "mount-fails": Fault(
        "the file system cannot be mounted on {node}",
        "on {node}: found UNEXPECTED: /run/pfs: the server does not answer",
        mount="echo 'the server does not answer' >&2; exit 1",
    ),
    "another-file-system": Fault(
        "{node} mounts another file system of the same name",
        "on {node}: found cat: ",
        mount='set -- $(echo "$@" | sed "s|pfs\\.db|other.db|")',
    ),
    "node-dies": Fault(
        "{node} loses power during a job", "lost a node: NODE_FAIL", meanwhile=_take_power
    ),
    "scheduler-restarts": Fault(
        "slurmctld is killed during a job and started again",
        "0 FAIL, 0 INVALID",
        meanwhile=_restart_scheduler,
        ends_well=True,
    ),
    "slow-link": Fault(
        "the link of {node} has a quarter of its speed",
        "bad node: {node}",
        rate="50mbit",
        needs=frozenset({Need.CHANGE, Need.LINKS}),
    ),
}
"""By the id of tests/faults.yml."""
