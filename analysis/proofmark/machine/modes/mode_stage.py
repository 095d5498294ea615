"""Builds the parts of a mode change from a run and its site: rollout, target mode, hosts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from proofmark.common.errors import bad_input, nearest
from proofmark.machine.bmc.back_end import BACK_ENDS, BackEndContext, back_end
from proofmark.machine.bmc.bmc_addresses import address_of
from proofmark.machine.bmc.bmc_model import Host
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.modes.rollout import ModeRollout
from proofmark.machine.modes.target_mode import TargetMode
from proofmark.machine.modes.transition import ModeTransition
from proofmark.machine.modes.verification import ExpectedState, look_alikes, verify_mode
from proofmark.machine.remote_shell import RemoteShell
from proofmark.machine.scheduler import draining
from proofmark.runs.claims import Claims
from proofmark.site.bmc_vendors.vendor_model import UNSEEN
from proofmark.site.firmware import Firmware, Scalar, abstract, wanted
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.numa import numa_shape

Say = Callable[[str], None]


def rollout_of(
    folder: Path,
    claims: Claims,
    site: Site,
    credentials: Credentials,
    say: Say,
    stop: threading.Event,
) -> ModeRollout:
    """Return the rollout that changes the modes of the nodes of a run.

    Args:
        folder: the folder of the run's state.
        claims: the nodes that the run holds.
        site: of the inventory. Only the nodes that it selects are changed.
        credentials: of the BMCs.
        say: gets each line of progress.
        stop: no new action is started after it is set.

    Raises:
        BadInput: back end, scheduler, certificates or BMC addresses of the site are wrong.
    """
    firmware = firmware_of(site)
    shell = RemoteShell(site, firmware.timeout_s)
    selected = set(site.hosts)
    context = BackEndContext(firmware, credentials, shell, site.partition.queue)
    mode_attributes: dict[str, Scalar] = {}
    mode_settings: dict[tuple[str, str], None] = {}
    for mode in site.partition.modes.values():
        mode_attributes |= wanted(firmware, mode.settings)
        mode_settings |= dict.fromkeys(abstract(firmware, mode.settings).items())
    return ModeRollout(
        run=folder,
        claims=claims,
        transition=ModeTransition(
            firmware, back_end(context), shell, mode_attributes, stop, tuple(mode_settings)
        ),
        scheduler=draining(site.partition.scheduler, site.partition.queue),
        hosts={node: host for node, host in hosts_of(site, firmware).items() if node in selected},
        say=say,
        reservation=site.partition.queue.reservation,
    )


def hosts_of(site: Site, firmware: Firmware) -> dict[str, Host]:
    """Return every node of the partition with the address of its BMC and the id of its system.

    Raises:
        BadInput: ``firmware.bmc`` or ``firmware.system`` is no valid expression; two nodes have one
            system, and the back end would reset it twice.
    """
    hosts: dict[str, Host] = {}
    owners: dict[tuple[str, str], str] = {}
    used = BACK_ENDS.get(firmware.back_end).uses_bmcs
    for number, node in enumerate(site.partition_hosts or site.hosts):
        address = address_of(firmware.bmc, number, node, site.facts)
        system = address_of(firmware.system, number, node, site.facts, "system")
        hosts[node] = Host(node, address, system)
        owner = owners.setdefault((address, system), node)
        if used and owner != node:
            of_system = f", system {system}" if system else ""
            found = f"the BMC {address}{of_system} for {owner} and for {node}"
            accepted = 'a system for each node, with firmware.system such as "Node{number % 2}"'
            raise bad_input(site.facts, "partition.firmware.bmc", found, accepted)
    return hosts


def target_mode(site: Site, mode: str) -> TargetMode:
    """Return the target `mode`: its firmware attributes, and the check of an observation.

    Raises:
        BadInput: the partition has no such mode, or a topology cannot be read.
    """
    firmware, modes = firmware_of(site), site.partition.modes
    if mode not in modes:
        raise bad_input("--mode", "", f"{mode!r}{nearest(mode, modes)}", ", ".join(modes))
    states = {
        name: ExpectedState(
            seen_settings(firmware, declared.settings), numa_shape(topology_of_mode(site, name))
        )
        for name, declared in modes.items()
    }
    alike = look_alikes(mode, states, firmware.smbios)
    by_bmc = BACK_ENDS.get(firmware.back_end).uses_bmcs
    if by_bmc:
        # The BMC reports the values in effect: for these modes it is the proof, after a boot.
        states |= {name: replace(states[name], settings=states[mode].settings) for name in alike}
    verify = partial(verify_mode, mode=mode, expected_states=states, smbios=firmware.smbios)
    settings = modes[mode].settings
    return TargetMode(
        mode,
        wanted(firmware, settings),
        verify,
        abstract(firmware, settings),
        unseen=by_bmc and bool(alike),
        look_alikes=() if by_bmc else tuple(alike),
    )


def refuse_unprovable(site: Site, goal: TargetMode) -> None:
    """Accept a mode that a node can prove after its boot, before a node is drained for it.

    Raises:
        BadInput: other modes look the same, whatever the node shows.
    """
    if goal.look_alikes:
        others = ", ".join(goal.look_alikes)
        found = f"{goal.mode} and {others}, which differ in nothing that a node shows"
        accepted = "modes with other NUMA domains, firmware.smbios, or back_end redfish"
        raise bad_input(site.facts, "partition.modes", found, accepted)


def unprovable_modes(site: Site) -> Iterator[str]:
    """Yield a line for each group of modes that `refuse_unprovable` refuses.

    Raises:
        BadInput: a topology cannot be read.
    """
    if site.partition.firmware is None:
        return
    goals = [target_mode(site, mode) for mode in site.partition.modes]
    groups = {frozenset((each.mode, *each.look_alikes)) for each in goals if each.look_alikes}
    for group in sorted(map(sorted, groups)):
        yield (
            f"not provable: {site.partition_name}: modes {', '.join(group)}: a node shows no "
            "difference between them, and a change to one is refused"
        )


def seen_settings(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, str]:
    """Return `settings` without those that only the firmware shows.

    Modes that differ in nothing else look alike to the operating system. The BMC distinguishes
    them.
    """
    unseen = abstract(firmware, settings).keys() & set(UNSEEN)
    return {name: value for name, value in settings.items() if name not in unseen}


def firmware_of(site: Site) -> Firmware:
    """Return the firmware settings of the partition.

    Raises:
        BadInput: the partition has none.
    """
    if site.partition.firmware is None:
        accepted = "the settings of docs/modes.md"
        raise bad_input(site.facts, "partition.firmware", "nothing", accepted)
    return site.partition.firmware
