"""A crew over emulated BMCs and a Slurm that is a shell script: what tests of modes work with."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.emulators.bmc.server import PASSWORD, USER, Emulator

from proofmark.machine.bmc.back_end import BackEndContext, back_end
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.model import Host
from proofmark.machine.modes.rollout import ModeRollout
from proofmark.machine.modes.transition import ModeTransition, TargetMode
from proofmark.machine.modes.verification import ExpectedState, verify_mode
from proofmark.machine.remote_shell import RemoteShell
from proofmark.machine.scheduler import draining
from proofmark.site.firmware import Firmware, wanted
from proofmark.site.node.numa import NumaShape

GIB = 1 << 30
ONE, TWO = ((272, 96 * GIB),), ((136, 48 * GIB),) * 2
FOUR = ((64, 24 * GIB),) * 2 + ((72, 24 * GIB),) * 2
MODES: dict[str, tuple[str, str, NumaShape]] = {
    "a2a-flat": ("All2All", "Flat", NumaShape(ONE, (16 * GIB,))),
    "hemisphere-flat": ("Hemisphere", "Flat", NumaShape(ONE, (16 * GIB,))),
    "quadrant-flat": ("Quadrant", "Flat", NumaShape(ONE, (16 * GIB,))),
    "quadrant-cache": ("Quadrant", "Cache", NumaShape(ONE, ())),
    "quadrant-hybrid25": ("Quadrant", "Hybrid-25", NumaShape(ONE, (12 * GIB,))),
    "quadrant-hybrid50": ("Quadrant", "Hybrid-50", NumaShape(ONE, (8 * GIB,))),
    "snc2-flat": ("SNC-2", "Flat", NumaShape(TWO, (8 * GIB,) * 2)),
    "snc2-cache": ("SNC-2", "Cache", NumaShape(TWO, ())),
    "snc4-flat": ("SNC-4", "Flat", NumaShape(FOUR, (4 * GIB,) * 4)),
    "snc4-cache": ("SNC-4", "Cache", NumaShape(FOUR, ())),
}
"""Cluster mode, memory mode and domains of a Xeon Phi 7250 with 96 GB."""
SHAPES = {
    name: ExpectedState({"cluster": cluster, "memory": memory}, layout)
    for name, (cluster, memory, layout) in MODES.items()
}
ATTRIBUTES: dict[str, Any] = {
    "cluster": "ClusterMode",
    "memory": {
        "Cache": {"MemoryMode": "Cache"},
        "Flat": {"MemoryMode": "Flat"},
        "Hybrid-25": {"MemoryMode": "Hybrid", "MemoryModeHybridPercent": "25"},
        "Hybrid-50": {"MemoryMode": "Hybrid", "MemoryModeHybridPercent": "50"},
    },
}
SCONTROL = r"""#!/bin/sh
# A Slurm of files: FOLDER/<node> holds the reason of a drained node, and is absent of any other.
folder=${0%/*}/slurm
echo "$*" >>"$folder.calls"
case $1 in
--oneliner)
    IFS=,
    for node in $4; do
        if [ -e "$folder/$node" ]; then
            reason=$(cat "$folder/$node")
            echo "NodeName=$node Arch=x86_64 State=IDLE+DRAIN Reason=$reason [root@now]"
        else echo "NodeName=$node Arch=x86_64 State=IDLE Comment=x"; fi
    done ;;
update)
    IFS=,
    for node in ${2#NodeName=}; do
        case $3 in
        State=DRAIN) printf %s "${4#Reason=}" >"$folder/$node" ;;
        State=RESUME) rm -f "$folder/$node" ;;
        esac
    done ;;
esac
"""


@dataclass
class Slurm:
    """The scheduler of files."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "slurm").mkdir(parents=True)
        script = self.folder / "scontrol"
        script.write_text(SCONTROL)
        script.chmod(0o755)

    @property
    def drained(self) -> dict[str, str]:
        """Return the reason of each node that is out of service."""
        return {path.name: path.read_text() for path in (self.folder / "slurm").iterdir()}

    def drain(self, node: str, reason: str) -> None:
        """Drain a node as an administrator does."""
        (self.folder / "slurm" / node).write_text(reason)

    @property
    def calls(self) -> list[str]:
        """Return every call so far."""
        path = self.folder / "slurm.calls"
        return path.read_text().splitlines() if path.exists() else []


@dataclass
class World:
    """Emulated machines, their scheduler, and the run that moves them."""

    emulator: Emulator
    slurm: Slurm
    run: Path
    said: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[str]:
        return list(self.emulator.machines)

    def firmware(self, **changes: Any) -> Firmware:
        facts: dict[str, Any] = {
            "back_end": "redfish",
            "port": self.emulator.port,
            "ca": str(self.emulator.ca),
            "attributes": ATTRIBUTES,
            "smbios": "knl",
            "remote_shell": self.emulator.reach,
            "poll_s": 0.02,
            "reset_timeout_s": 2,
            "boot_timeout_s": 60,
            "drain_limit_s": 60,
            "timeout_s": 60,
            "max_attempts": 3,
        }
        return Firmware.model_validate(facts | changes)

    def crew(
        self, *, scheduler: str = "slurm", stop: threading.Event | None = None, **changes: Any
    ) -> ModeRollout:
        firmware = self.firmware(**changes)
        shell = RemoteShell(firmware.remote_shell, firmware.timeout_s)
        every = {**wanted(firmware, SHAPES["quadrant-hybrid25"].settings)} if ATTRIBUTES else {}
        given = BackEndContext(firmware, Credentials(USER, PASSWORD), shell)
        return ModeRollout(
            run=self.run,
            tag="proofmark:test",
            transition=ModeTransition(
                firmware, back_end(given), shell, every, stop or threading.Event()
            ),
            drain=draining(scheduler),
            hosts={node: Host(node, self.emulator.address(node)) for node in self.nodes},
            say=self.said.append,
        )

    def goal(
        self, mode: str, shapes: Mapping[str, ExpectedState] = SHAPES, **changes: Any
    ) -> TargetMode:
        firmware = self.firmware(**changes)
        attributes = wanted(firmware, shapes[mode].settings)
        return TargetMode(
            mode, attributes, lambda seen: verify_mode(seen, mode, shapes, firmware.smbios)
        )

    def settings(self, node: str) -> tuple[str, str]:
        """Return cluster and memory mode that act now."""
        current = self.emulator.machines[node].current
        return current["ClusterMode"], current["MemoryMode"]


def searched_first(folder: Path) -> str:
    """Return PATH with `folder` before all others."""
    return f"{folder}:{os.environ['PATH']}"
