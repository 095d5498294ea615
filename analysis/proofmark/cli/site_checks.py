"""The checks of ``check`` that need the plug-ins, the users and the files of this machine."""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from pathlib import Path

from archspec.cpu import TARGETS

from proofmark.common.errors import BadInput, bad_input, nearest
from proofmark.jobs.launcher import LAUNCHERS
from proofmark.machine.bmc.back_end import BACK_ENDS
from proofmark.machine.bmc.https import tls_context
from proofmark.machine.modes.rollout import hosts_of
from proofmark.machine.scheduler import SCHEDULERS
from proofmark.machine.scratch_stage import mount_commands
from proofmark.plan.validation import Check
from proofmark.site.inventory import Site
from proofmark.software.environments import check_environment
from proofmark.software.provider import check_name


def site_checks(kit: Path) -> Mapping[str, Check]:
    """Return the checks by the dotted key of the partition that each of them reads.

    A registry checks each name, also the names of the plug-ins of a site.
    """
    return {
        "node.architecture": _architecture,
        "environment": lambda site: check_environment(
            kit / "environments", site.partition.environment
        ),
        "provision_from": lambda site: check_name(site.partition.provision_from),
        "scheduler": lambda site: SCHEDULERS.get(site.partition.scheduler),
        "launch.launcher": _launcher,
        "launch.environment_of": _launchers,
        "firmware.back_end": _back_end,
        "firmware.bmc": _bmc_addresses,
        "firmware.ca": _authorities,
        "run_user": _run_user,
        "scratch": lambda site: mount_commands(site.partition.scratch),
    }


def _architecture(site: Site) -> None:
    architecture = site.partition.node.architecture
    if architecture and architecture not in TARGETS:
        found = f"{architecture!r}{nearest(architecture, TARGETS)}"
        raise bad_input("", "", found, f"a name of archspec: {', '.join(sorted(TARGETS))}")


def _launcher(site: Site) -> None:
    if name := site.partition.launch.launcher:
        LAUNCHERS.get(name)


def _launchers(site: Site) -> None:
    for name in site.partition.launch.environment_of:
        LAUNCHERS.get(name)


def _back_end(site: Site) -> None:
    if firmware := site.partition.firmware:
        BACK_ENDS.get(firmware.back_end)


def _bmc_addresses(site: Site) -> None:
    firmware = site.partition.firmware
    if firmware is None:
        return
    try:
        BACK_ENDS.get(firmware.back_end)
    except BadInput:
        return  # `_back_end` reports it
    hosts_of(site, firmware)


def _authorities(site: Site) -> None:
    """Read the authorities of the BMCs. Emulated BMCs write theirs when they start."""
    firmware = site.partition.firmware
    if firmware is None or firmware.ca is None or site.partition.origin == "emulated":
        return
    try:
        tls_context(firmware.ca, verify=firmware.verify_tls)
    except BadInput as error:
        (mistake,) = error.mistakes
        found = f"{firmware.ca!r}, {mistake.found}"
        raise bad_input("", "", found, mistake.accepted) from None


def _run_user(site: Site) -> None:
    """Find the user on this machine, where the plays run commands as this user."""
    name = site.partition.run_user
    if name is None:
        return
    try:
        pwd.getpwnam(name)
    except KeyError:
        users = [entry.pw_name for entry in pwd.getpwall() if entry.pw_uid != 0]
        found = f"{name!r}, no user of this machine{nearest(name, users)}"
        raise bad_input("", "", found, "a user of this machine and of all nodes") from None
