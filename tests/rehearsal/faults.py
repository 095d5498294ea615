"""The faults of tests/faults.yml that a rehearsal can inject, and their expected messages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.rehearsal.room import Room


POINT = "/run/pfs"
"""The mount point of the file system of a rehearsal."""


def _nothing(_: Room) -> None:
    pass


class Need(Enum):
    """The requirement on a rehearsal for a fault to have an effect."""

    CONFIRMATION = "confirm_reboot=true"
    RESET = "a reset of the node"
    CHANGE = "playbooks that change the nodes"
    LINKS = "a measurement of the links"
    UPLINKS = "a fabric of two levels"
    FILES = "a step that writes files on every node"
    SPEED = "a step that each node computes alone"


@dataclass(frozen=True)
class Fault:
    """One fault. ``{node}`` in its texts is the node that has it, ``{server}`` the file server.

    Attributes:
        what: the fault, in few words.
        message: the text that the playbooks must print, or that the lines of the verdict must have.
        bmc: the fault of the node's BMC, a word of `tests.emulators.bmc.machine.FAULTS`.
        slow_links: whose link has a quarter of its speed; empty: none.
        slow_uplink: the leaf (from 1) and the uplink (from 0) that has a quarter of its speed.
        loss: the share of the packets that the node's link loses, in each direction.
        mount: lines of sh that the node's mount command runs first.
        throttled: whether the node shows counters of a throttled processor.
        served: whether a server must have the files.
        capacity_gib: the size of the file system, GiB; 0: without limit.
        before: called when the cluster has started.
        meanwhile: called in a thread while a job runs.
        ends_well: whether the run still measures everything and the verdict is 0.
        suite: the suite of the rehearsal if none is given.
        limit: the partition of the rehearsal if none is given.
        needs: the requirements on the rehearsal. Every fault also needs a step on its node.
    """

    what: str
    message: str
    bmc: str = ""
    slow_links: Literal["", "node", "server"] = ""
    slow_uplink: tuple[int, int] | None = None
    loss: float = 0
    mount: str = ""
    throttled: bool = False
    served: bool = False
    capacity_gib: int = 0
    before: Callable[[Room], None] = _nothing
    meanwhile: Callable[[Room], None] | None = None
    ends_well: bool = False
    suite: str = "rehearsal"
    limit: str = "knl"
    needs: frozenset[Need] = frozenset({Need.CHANGE})


SHORT = "rehearsal-short"
_AT_THE_CHECK = frozenset({Need.CONFIRMATION})
_FILES = frozenset({Need.CHANGE, Need.FILES})
_AT_THE_RESET = frozenset({Need.CONFIRMATION, Need.RESET, Need.CHANGE})


def _bmc(word: str, what: str, outcome: str, needs: frozenset[Need] = _AT_THE_CHECK) -> Fault:
    return Fault(what, f"{outcome}: 1 node ({{node}})", bmc=word, needs=needs)


def _drain(room: Room) -> None:
    reason = ("State=DRAIN", "Reason=a fan is broken")
    room.slurm.call("scontrol", "update", f"NodeName={room.victim}", *reason)


def _restart_scheduler(room: Room) -> None:
    room.slurm.stop_controller()
    time.sleep(2)
    room.slurm.start_controller()


def _take_power(room: Room) -> None:
    room.cluster.kill(room.victim)


def _stop_server(room: Room) -> None:
    room.cluster.kill(room.server)


def _fill(room: Room) -> None:
    assert room.file_system
    room.file_system.fill(POINT, room.names[-1])


def _stop_client(room: Room) -> None:
    assert room.file_system
    room.file_system.stop_client(room.victim)


def _throttle(room: Room) -> None:
    program = Path(__file__).with_name("throttle.py")
    room.cluster.start(room.victim, sys.executable, str(program))


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
        "HELD: 1 node ({node})",
        before=_drain,
        needs=_AT_THE_CHECK,
    ),
    "mount-fails": Fault(
        "the file system cannot be mounted on {node}",
        "on {node}: UNEXPECTED: found /run/pfs: the server does not answer",
        mount="echo 'the server does not answer' >&2; exit 1",
    ),
    "another-file-system": Fault(
        "{node} mounts another file system of the same name",
        "on {node}: found cat: ",
        mount='set -- $(echo "$@" | sed "s|pfs\\.db|other.db|")',
    ),
    "node-dies": Fault(
        "{node} loses power during a job", "without {node}: down", meanwhile=_take_power
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
        slow_links="node",
        needs=frozenset({Need.CHANGE, Need.LINKS}),
    ),
    "slow-uplink": Fault(
        "uplink 1 of the second leaf switch has a quarter of its speed",
        "slow element: uplink 1 of leaf-002",
        slow_uplink=(2, 1),
        suite="rehearsal-links",
        limit="fabric",
        needs=frozenset({Need.CHANGE, Need.LINKS, Need.UPLINKS}),
    ),
    "lossy-link": Fault(
        "the link of {node} loses 3 % of the packets",
        "bad node: {node}: its port or cable loses packets",
        loss=0.03,
        suite=SHORT,
        needs=frozenset({Need.CHANGE, Need.LINKS}),
    ),
    "throttled-node": Fault(
        "the processor of {node} throttles itself during a job",
        "bad node: {node}: the processor was throttled",
        throttled=True,
        meanwhile=_throttle,
        suite=SHORT,
        needs=frozenset({Need.CHANGE, Need.SPEED}),
    ),
    "slow-disk-server": Fault(
        "the link of the file server {server} has a quarter of its speed",
        "slow alike on all nodes",
        slow_links="server",
        served=True,
        ends_well=True,
        suite=SHORT,
        needs=_FILES,
    ),
    "full-file-system": Fault(
        "another user fills the file system during a job",
        "No space left on device",
        capacity_gib=4,
        meanwhile=_fill,
        suite=SHORT,
        needs=_FILES,
    ),
    "client-hangs": Fault(
        "the client of the file system hangs on {node} during a job",
        "on {node}: the client of this node, or its network",
        meanwhile=_stop_client,
        suite=SHORT,
        needs=_FILES,
    ),
    "server-stops": Fault(
        "the file server {server} stops during a job",
        "): its servers, or the network to them",
        served=True,
        meanwhile=_stop_server,
        suite=SHORT,
        needs=_FILES,
    ),
}
"""By the id of tests/faults.yml."""
