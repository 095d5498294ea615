"""What one node and its BMC report: the scripts that run on a node, and their outputs."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files

from proofmark.common.errors import BadInput
from proofmark.common.host_names import same_host, short_name
from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.common.text import size
from proofmark.machine.bmc.service_root import vendor_of
from proofmark.machine.node_shell import NodeCommand, host_command, node_command
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.remote_shell import run_script
from proofmark.site.access import HostAccess
from proofmark.site.inventory import Site
from proofmark.site.node.facts import parse_probe
from proofmark.site.node.unread import unread_lines
from proofmark.site.survey.bmc_pattern import nodes_of_bmc, pattern_of
from proofmark.site.survey.differences import site_of_node
from proofmark.site.survey.node_answers import Bmc, NodeReport
from proofmark.site.survey.node_tools import (
    RATES,
    SECTIONS,
    bmc_address,
    bmc_manufacturer,
    read_tools,
)
from proofmark.site.survey.scratch_findings import scratch_folder

TIMEOUT_S = 120.0
"""The time limit of one script on a node, and of one command of a scheduler."""
BMC_NAMES = ("{node}-bmc", "{node}-ipmi", "{node}-mgmt", "{node}-idrac", "{node}-ilo", "bmc-{node}")
"""Usual names of BMCs. One is used if it has the address that the node reports; or, if the node
reports none, if a Redfish service root answers there."""
RunScript = Callable[[str, str], str]
"""Runs a POSIX sh script (the second argument) on a node, and returns what it prints.

Raises:
    NodeError: the node is not reached, gives no answer in time, or the exit code is not 0.
"""


def node_name(given: str) -> str:
    """Return the name of a node; ``localhost`` is this machine."""
    return os.uname().nodename if given == "localhost" else given


def is_this_machine(node: str) -> bool:
    """Return whether `node` is the name of this machine."""
    return same_host(node, os.uname().nodename)


def node_runner(*, become: bool = False) -> RunScript:
    """Return a function that runs a script on a node: by sh on this machine, by ssh on others.

    Args:
        become: whether sudo runs the script, for the facts that need root.
    """
    user = "root" if become else ""

    def command(node: str) -> NodeCommand:
        return host_command(node, HostAccess(local=is_this_machine(node), become_user=user))

    return lambda node, text: run_script(node, command(node), text, TIMEOUT_S)


def site_runner(sites: Sequence[Site], *, become: bool = False) -> RunScript:
    """Return a function that runs a script on a node of `sites`, as their inventory reaches it.

    Args:
        sites: the partitions of an inventory.
        become: whether sudo runs the script, also on nodes where the inventory has no ``become``.
    """

    def command(node: str) -> NodeCommand:
        site = site_of_node(sites, node)
        host = site.host_of(node) or node
        if site.ssh is None or not become:
            return node_command(site, host)
        access = site.ssh.of(host)
        return host_command(
            host, access.model_copy(update={"become_user": access.become_user or "root"})
        )

    return lambda node, text: run_script(node, command(node), text, TIMEOUT_S)


def node_report(
    node: str, run_script: RunScript, say: Callable[[str], None], bmc_port: int
) -> NodeReport:
    """Return what `node` reports. A part that fails is a problem of this part only."""
    problems: dict[str, str] = {}
    tools: dict[str, tuple[str, ...]] = {}
    facts = None
    say(f"proofmark: {node}: probe.sh")
    try:
        probe = _script(node, "site.node", "probe.sh", "facts", run_script)
        facts = parse_probe(probe, f"probe of {node}")
        for line in unread_lines(facts.unread):
            say(f"proofmark: {node}: not known: {line}")
    except (NodeError, BadInput) as error:
        problems["probe"] = str(error)
        say(f"proofmark: {node}: probe.sh: {error}")
    for section in SECTIONS:
        say(f"proofmark: {node}: node-tools.sh {section}")
        lines, problem = read_section(node, section, run_script)
        if problem:
            problems[section] = problem
        else:
            tools[section] = lines
    bmc = _bmc(node, tools.get("bmc", ()), bmc_port, problems, say)
    return NodeReport(node, facts, tools, bmc, problems)


def with_rates(report: NodeReport, run_script: RunScript, say: Callable[[str], None]) -> NodeReport:
    """Return `report` with the rates that its node measures in seconds, if it can."""
    folder = scratch_folder(report.facts)
    say(f"proofmark: {report.node}: node-tools.sh {RATES}, writes 256 MiB into {folder}")
    section = f"{RATES} {shlex.quote(folder)}"
    lines, _ = read_section(report.node, section, run_script)
    return replace(report, tools={**report.tools, RATES: lines})


def _script(node: str, package: str, name: str, argument: str, run_script: RunScript) -> str:
    """Run a script of the package on `node` and return its output."""
    text = (files(f"proofmark.{package}") / name).read_text(encoding="utf-8")
    printed = run_script(node, f"set -- {argument}\n{text}")
    if len(printed) > MAX_PROBE_BYTES:
        found = f"{name}: {size(len(printed))}, more than {size(MAX_PROBE_BYTES)}"
        raise NodeError(Outcome.UNEXPECTED, found)
    return printed


def read_section(node: str, section: str, run_script: RunScript) -> tuple[tuple[str, ...], str]:
    """Return the lines of a section of ``node-tools.sh``, and why they are missing."""
    try:
        printed = _script(node, "site.survey", "node-tools.sh", section, run_script)
        return read_tools(printed, section.split()[0], f"node-tools.sh of {node}")
    except (NodeError, BadInput) as error:
        return (), str(error)


def _bmc(
    node: str,
    lines: Sequence[str],
    port: int,
    problems: dict[str, str],
    say: Callable[[str], None],
) -> Bmc:
    """Return the BMC of `node`; a failure is added to `problems`."""
    reported, vendor = bmc_address(lines), bmc_manufacturer(lines)
    source = "ipmitool mc info" if vendor else ""
    pattern, named = _named_bmc(node, reported)
    address = reported or named
    if not address:
        problems.setdefault("bmc", "ipmitool lan print has no address")
        return Bmc(vendor=vendor, vendor_source=source)
    say(f"proofmark: {node}: Redfish service root of {address}")
    try:
        if found := vendor_of(address, port):
            vendor, source = found, "its Redfish service root, certificate not verified"
    except NodeError as error:
        problems["redfish"] = error.text
        say(f"proofmark: {node}: {error.text}")
        if not reported:  # a name alone does not prove a BMC
            return Bmc(vendor=vendor, vendor_source=source)
    if not reported:
        problems.pop("bmc", None)
    return Bmc(
        address=address,
        address_source="ipmitool lan print" if reported else "the name service",
        pattern=pattern,
        vendor=vendor,
        vendor_source=source,
    )


def _named_bmc(node: str, reported: str) -> tuple[str, str]:
    """Return a usual name of the BMC of `node` and its address; empty texts if there is none.

    The address is `reported`, if the node reports one.
    """
    for pattern in BMC_NAMES:
        with suppress(OSError, UnicodeError):
            found = socket.getaddrinfo(pattern.replace("{node}", short_name(node)), None)
            addresses = [str(each[4][0]) for each in found]
            if reported in addresses or (addresses and not reported):
                return pattern, reported or addresses[0]
    return "", ""


def with_pattern(
    bmc: Bmc,
    node: str,
    names: Sequence[str],
    run_script: RunScript,
    say: Callable[[str], None],
) -> Bmc:
    """Return `bmc` of `node` with the pattern of consecutive addresses, if there is one.

    Two more nodes of the partition, whose nodes are `names`, have to confirm it.
    """
    if bmc.pattern or not bmc.address:
        return bmc
    addresses = {names.index(node): bmc.address}
    for number in {len(names) // 2, len(names) - 1} - {names.index(node)}:
        say(f"proofmark: {names[number]}: node-tools.sh bmc")
        lines, problem = read_section(names[number], "bmc", run_script)
        if problem:
            say(f"proofmark: {names[number]}: {problem}")
        addresses[number] = bmc_address(lines)
    return replace(bmc, pattern=pattern_of(addresses), nodes=max(1, nodes_of_bmc(addresses)))
