"""Mode rollouts over emulated BMCs, with a Slurm that is a shell script."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.shells import remote_shell

from proofmark.machine.bmc.back_end import BackEndContext, Credentials, Host, back_end
from proofmark.machine.modes.drains import ModeResult
from proofmark.machine.modes.rollout import ModeRollout
from proofmark.machine.modes.transition import (
    ExpectedState,
    ModeTransition,
    TargetMode,
    verify_mode,
)
from proofmark.machine.scheduler import draining
from proofmark.machine.schedulers import slurm
from proofmark.runs.node_locks import NodeLocks
from proofmark.site.firmware import Firmware, wanted
from proofmark.site.node.topology import NumaShape

GIB = 1 << 30
ONE, TWO = ((272, 96 * GIB),), ((136, 48 * GIB),) * 2
FOUR = ((64, 24 * GIB),) * 2 + ((72, 24 * GIB),) * 2
MODES: dict[str, tuple[str, str, NumaShape]] = {
    "a2a-flat": ("All2All", "Flat", NumaShape(((0, 16 * GIB), *ONE))),
    "hemisphere-flat": ("Hemisphere", "Flat", NumaShape(((0, 16 * GIB), *ONE))),
    "quadrant-flat": ("Quadrant", "Flat", NumaShape(((0, 16 * GIB), *ONE))),
    "quadrant-cache": ("Quadrant", "Cache", NumaShape(ONE)),
    "quadrant-hybrid25": ("Quadrant", "Hybrid-25", NumaShape(((0, 12 * GIB), *ONE))),
    "quadrant-hybrid50": ("Quadrant", "Hybrid-50", NumaShape(((0, 8 * GIB), *ONE))),
    "snc2-flat": ("SNC-2", "Flat", NumaShape(((0, 8 * GIB),) * 2 + TWO)),
    "snc2-cache": ("SNC-2", "Cache", NumaShape(TWO)),
    "snc4-flat": ("SNC-4", "Flat", NumaShape(((0, 4 * GIB),) * 4 + FOUR)),
    "snc4-cache": ("SNC-4", "Cache", NumaShape(FOUR)),
}
"""Cluster mode, memory mode and NUMA domains of a Xeon Phi 7250 with 96 GB."""
EXPECTED_STATES = {
    name: ExpectedState({"cluster": cluster, "memory": memory}, numa_shape)
    for name, (cluster, memory, numa_shape) in MODES.items()
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
TOOL = r"""#!/bin/sh
# scontrol and sinfo. slurm/NODE contains the reason of a drained node.
folder=${0%/*}/slurm
echo "${0##*/} $*" >>"$folder.calls"
IFS=,
case $1 in
--noheader)
    for node in ${4#--nodes=}; do
        state=idle reason=none
        if [ -e "$folder/$node" ]; then
            state=idle+drain reason=$(cat "$folder/$node")
            [ -n "$reason" ] || reason=none
        fi
        [ ! -e "$folder.flags/$node" ] || state=$state$(cat "$folder.flags/$node")
        case $5 in
        --Format=NodeList*) echo "$node     $state" ;;
        --format=%N\|%T) echo "$node|$state" ;;
        --format=*\ %N\ %E) mark=${5#--format=}; echo "${mark%% *} $node $reason" ;;
        *) echo "what? $5" >&2; exit 1 ;;
        esac
    done ;;
--oneliner)
    [ "$2 $3" = "show reservation" ] || { echo "what? $*" >&2; exit 1; }
    [ ! -e "$folder.reservations" ] || cat "$folder.reservations" ;;
show)
    [ "$2" = config ] || { echo "what? $*" >&2; exit 1; }
    echo "Configuration data as of 2026-11-01T08:00:00"
    echo "AccountingStorageType   = accounting_storage/none"
    echo "SlurmUser               = $(id -un)($(id -u))" ;;
create) echo "$3 $4 $5 Flags=IGNORE_JOBS,OVERLAP State=ACTIVE" >>"$folder.reservations" ;;
delete)
    sed -i "/^$2 /d" "$folder.reservations" ;;
update)
    case $2 in
    ReservationName=*) sed -i "s/^$2 Nodes=[^ ]*/$2 $3/" "$folder.reservations"; exit ;;
    esac
    for node in ${2#NodeName=}; do
        case $3 in
        State=DRAIN) printf %s "${4#Reason=}" >"$folder/$node" ;;
        State=RESUME) rm -f "$folder/$node" ;;
        esac
    done ;;
esac
"""


@dataclass
class FileSlurm:
    """An scontrol and an sinfo that keep the drained nodes in files, one per node.

    Its sbatch takes each job and starts none.
    """

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "slurm").mkdir(parents=True)
        for name in ("scontrol", "sinfo", "sbatch"):
            script = self.folder / name
            script.write_text("#!/bin/sh\n" if name == "sbatch" else TOOL)
            script.chmod(0o755)

    @property
    def drained(self) -> dict[str, str]:
        """Return the reason of each drained node."""
        return {path.name: path.read_text() for path in (self.folder / "slurm").iterdir()}

    def drain(self, node: str, reason: str) -> None:
        """Drain a node as an administrator would."""
        (self.folder / "slurm" / node).write_text(reason)

    def reserve(self, name: str, node: str) -> None:
        """Reserve a node for maintenance from now on, as an administrator would."""
        line = f"ReservationName={name} Nodes={node} Users=root Flags=MAINT State=ACTIVE\n"
        with (self.folder / "slurm.reservations").open("a") as reservations:
            reservations.write(line)
        self.flag(node, "+maintenance+reserved")

    def flag(self, node: str, flags: str) -> None:
        """Give a node further states."""
        (self.folder / "slurm.flags").mkdir(exist_ok=True)
        (self.folder / "slurm.flags" / node).write_text(flags)

    @property
    def calls(self) -> list[str]:
        """Return the command line of every call."""
        path = self.folder / "slurm.calls"
        return path.read_text().splitlines() if path.exists() else []


def firmware_facts(emulator: Emulator) -> dict[str, Any]:
    """Return the facts ``firmware`` of a partition whose nodes have emulated BMCs."""
    return {
        "back_end": "redfish",
        "port": emulator.port,
        "ca": str(emulator.ca),
        "attributes": ATTRIBUTES,
        "smbios": "knl",
        "remote_shell": emulator.remote_shell,
        "boot_s": 5,
    }


LIMITS = {"poll_s": 0.02, "reset_timeout_s": 2, "boot_timeout_s": 60}
"""The limits of the kit that emulated nodes replace, with their values."""
CONSTANTS = (*LIMITS, "drain_limit_s", "max_attempts", "max_parallel")
"""What a site cannot set, and a test can."""


def firmware_with(facts: Mapping[str, Any]) -> Firmware:
    """Return the firmware of `facts`, which may have `CONSTANTS` of the kit with other values."""
    own = {name: value for name, value in facts.items() if name not in CONSTANTS}
    firmware = Firmware.model_validate(own)
    vars(firmware).update({**LIMITS, **{name: facts[name] for name in CONSTANTS if name in facts}})
    return firmware


@dataclass
class EmulatedSite:
    """Emulated machines, their scheduler, and the folder of a run.

    Attributes:
        lines: the progress of all rollouts.
    """

    emulator: Emulator
    slurm: FileSlurm
    run: Path
    lines: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[str]:
        return list(self.emulator.machines)

    def claims(self, run: str = "test", controller: str = "head") -> NodeLocks:
        """Return the claims of `run`, in the state of the site of a controller."""
        folder = self.run.parent / f"state-{controller}" / "nodes"
        return NodeLocks(folder, run, self.run.parent / "runs" / run, controller)

    def firmware(self, **changes: Any) -> Firmware:
        facts = {"drain_limit_s": 60, "timeout_s": 60, "max_attempts": 3, **changes}
        return firmware_with(firmware_facts(self.emulator) | facts)

    def rollout(
        self,
        *,
        scheduler: str = "slurm",
        stop: threading.Event | None = None,
        run: str = "test",
        controller: str = "head",
        reservation: str = "",
        **changes: Any,
    ) -> ModeRollout:
        """Return the rollout of `run`; `changes` are facts of the firmware."""
        folder = self.run if run == "test" and controller == "head" else self.run / controller / run
        folder.mkdir(parents=True, exist_ok=True)
        firmware = self.firmware(**changes)
        shell = remote_shell(firmware.remote_shell, firmware.timeout_s)
        mode_attributes = wanted(firmware, EXPECTED_STATES["quadrant-hybrid25"].settings)
        context = BackEndContext(firmware, Credentials(USER, PASSWORD), shell)
        return ModeRollout(
            run=folder,
            locks=self.claims(run, controller),
            transition=ModeTransition(
                firmware, back_end(context), shell, mode_attributes, stop or threading.Event()
            ),
            scheduler=draining(scheduler),
            hosts={node: Host(node, self.emulator.address(node)) for node in self.nodes},
            say=self.lines.append,
            reservation=reservation,
        )

    def target(self, mode: str, **changes: Any) -> TargetMode:
        firmware = self.firmware(**changes)
        attributes = wanted(firmware, EXPECTED_STATES[mode].settings)
        return TargetMode(
            mode,
            attributes,
            lambda observation: verify_mode(observation, mode, EXPECTED_STATES, firmware.smbios),
        )

    def settings(self, node: str) -> tuple[str, str]:
        """Return the cluster mode and the memory mode in effect."""
        current = self.emulator.machines[node].current
        return current["ClusterMode"], current["MemoryMode"]


def path_with(folder: Path) -> str:
    """Return PATH with `folder` as its first entry."""
    return f"{folder}:{os.environ['PATH']}"


def outcomes_of(results: Mapping[str, ModeResult]) -> dict[str, str]:
    """Return the outcome of each node of a rollout."""
    return {node: str(result.outcome) for node, result in results.items()}


@contextmanager
def emulated_sites(
    folder: Path, patch: pytest.MonkeyPatch | None = None
) -> Iterator[Callable[..., EmulatedSite]]:
    """Yield a function that starts emulated machines, which end with the context.

    Its arguments are the names of the machines and those of `Emulator`. With `patch` this process
    asks the emulated scheduler, and repeats a failed request at once.
    """
    if patch:
        patch.setenv("PATH", path_with(folder / "bin"))
        patch.setattr(slurm, "folded", ",".join)
        patch.setattr("proofmark.machine.bmc.client.FIRST_PAUSE_S", 0.01)
    with ExitStack() as stack:

        def make(names: Sequence[str], **settings: Any) -> EmulatedSite:
            emulator = stack.enter_context(Emulator(names, folder, **settings))
            (folder / "run").mkdir()
            return EmulatedSite(emulator, FileSlurm(folder / "bin"), folder / "run")

        yield make
