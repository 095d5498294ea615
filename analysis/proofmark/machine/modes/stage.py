"""What a mode change needs from a run and its site: the crew, the goal, the hosts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from proofmark.common.errors import bad_input, nearest
from proofmark.common.expressions import render
from proofmark.machine.bmc.back_end import BackEndContext, back_end
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.model import Host
from proofmark.machine.modes.rollout import ModeRollout
from proofmark.machine.modes.transition import ModeTransition, TargetMode
from proofmark.machine.modes.verification import ExpectedState, verify_mode
from proofmark.machine.remote_shell import RemoteShell
from proofmark.machine.scheduler import draining
from proofmark.runs.run import Run
from proofmark.site.firmware import Firmware, Scalar, wanted
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.numa import numa_shape

Say = Callable[[str], None]


def rollout_of(
    opened: Run, site: Site, who: Credentials, say: Say, stop: threading.Event
) -> ModeRollout:
    """Return what moves the nodes of a run.

    Raises:
        BadInput: back end, scheduler, certificates or addresses are not right.
    """
    firmware = firmware_of(site)
    shell = RemoteShell(firmware.remote_shell, firmware.timeout_s)
    context = BackEndContext(firmware, who, shell)
    every: dict[str, Scalar] = {}
    for mode in site.partition.modes.values():
        every |= wanted(firmware, mode.settings)
    return ModeRollout(
        run=opened.folder,
        tag=f"proofmark:{opened.id}",
        transition=ModeTransition(firmware, back_end(context), shell, every, stop),
        drain=draining(site.partition.scheduler),
        hosts=hosts_of(site, firmware),
        say=say,
    )


def hosts_of(site: Site, firmware: Firmware) -> dict[str, Host]:
    """Return every node of the partition with the address of its BMC.

    Raises:
        BadInput: the address cannot be computed.
    """
    key = "partition.firmware.bmc"
    return {
        node: Host(
            node,
            str(render(firmware.bmc, {"node": node, "number": number}, file=site.facts, key=key)),
        )
        for number, node in enumerate(site.partition_hosts or site.hosts)
    }


def bmc_range(hosts: Mapping[str, Host], nodes: Sequence[str]) -> str:
    """Return the addresses of the BMCs of `nodes`, from the first to the last."""
    if not nodes:
        return "none"
    first, last = hosts[nodes[0]].address, hosts[nodes[-1]].address
    return first if first == last else f"{first} … {last}"


def target_mode(site: Site, mode: str) -> TargetMode:
    """Return `mode` as a goal: attributes for the firmware, proof from the operating system.

    Raises:
        BadInput: the partition has no such mode, or a topology cannot be read.
    """
    modes = site.partition.modes
    if mode not in modes:
        raise bad_input("--mode", "", f"{mode!r}{nearest(mode, modes)}", ", ".join(modes))
    shapes = {
        name: ExpectedState(each.settings, numa_shape(topology_of_mode(site, name)))
        for name, each in modes.items()
    }
    firmware = firmware_of(site)
    judged = partial(verify_mode, mode=mode, shapes=shapes, smbios=firmware.smbios)
    return TargetMode(mode, wanted(firmware, modes[mode].settings), judged)


def firmware_of(site: Site) -> Firmware:
    """Return the firmware of a partition that has one."""
    assert site.partition.firmware is not None
    return site.partition.firmware
