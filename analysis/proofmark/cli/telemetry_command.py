"""The command ``telemetry`` reads power and temperature from the BMCs during a run."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator

from proofmark.cli.bmc_credentials import credentials_argument, credentials_of
from proofmark.cli.command import Command, run_argument
from proofmark.cli.command_inputs import site_arguments, site_of_run
from proofmark.common.errors import bad_input
from proofmark.common.progress_lines import say
from proofmark.machine.bmc.client import ConnectionPool, ConnectionSettings
from proofmark.machine.bmc.https import tls_context
from proofmark.machine.bmc.sensors import BmcSensors
from proofmark.machine.modes.rollout import firmware_of, hosts_of
from proofmark.machine.outcome import fan_out, split
from proofmark.runs.bmc_telemetry import append_look
from proofmark.runs.run import Run, open_run
from proofmark.runs.run_lock import is_locked

EVERY_S = 60.0
WAIT_S = 0.5
NODES_OF_A_LOOK = 1000
"""For each further thousand nodes the pause between two looks is as long again."""


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    run_argument(parser)
    site_arguments(parser)
    credentials_argument(parser)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="read once, also if the run does not run")
    when.add_argument(
        "--until-stopped",
        action="store_true",
        help="wait for the run and read while it runs, until a signal; a playbook uses it",
    )


def run(options: Namespace) -> int:
    """Read the sensors of the BMCs of a run every minute until the run ends; return 0.

    A BMC that fails is only counted. With ``--until-stopped``, a partition without Redfish BMCs and
    missing credentials are no errors: a line is printed.

    Raises:
        BadInput: the partition has no Redfish BMCs, or the credentials cannot be used.
    """
    opened = open_run(options.folder)
    # The addresses of the BMCs get a password. The inventory has those of today, and not the run.
    site = site_of_run(options, opened)
    firmware = firmware_of(site)
    given = credentials_of(options)
    if firmware.back_end != "redfish":
        found = f"back_end {firmware.back_end}"
        if options.until_stopped:
            say(f"BMCs: no figures of power and temperature: {found}")
            return 0
        raise bad_input(site.facts, "partition.firmware.back_end", found, "redfish")
    if options.until_stopped and not given.user:
        say("BMCs: no figures of power and temperature: no user of the BMCs is given")
        return 0
    settings = ConnectionSettings(
        tls_context(firmware.ca, verify=firmware.verify_tls),
        firmware.port,
        given,
        firmware.timeout_s,
        1,
        firmware.auth == "session",
    )
    sensors = BmcSensors(ConnectionPool(settings))
    nodes = set(opened.plan.nodes())
    hosts = [host for node, host in hosts_of(site, firmware).items() if node in nodes]
    answered = -1
    for begin in _times(opened, EVERY_S * -(-len(hosts) // NODES_OF_A_LOOK), options):
        good, bad = split(fan_out(hosts, sensors.read, firmware.max_parallel))
        failed = Counter(str(failure.outcome.name) for failure in bad.values())
        values = {host.node: value for host, value in good.items()}
        whole = append_look(opened.files, begin, values, dict(failed))
        if len(good) != answered or not whole:
            answered = len(good)
            note = "" if whole else "; the file is full"
            say(f"BMCs: {answered} of {len(hosts)} answered{note}")
        if not whole:
            break
    return 0


def _times(run: Run, pause: float, options: Namespace) -> Iterator[float]:
    """Yield the time of each look."""
    if options.once:
        yield time.time()
        return
    due = 0.0
    while (runs := is_locked(run)) or options.until_stopped:
        if runs and time.time() >= due:
            due = time.time() + pause
            yield due - pause
        time.sleep(WAIT_S)


COMMANDS = {
    "telemetry": Command(
        run,
        "telemetry runs/latest-nurion -i inventory/nurion --credentials -",
        arguments,
    )
}
