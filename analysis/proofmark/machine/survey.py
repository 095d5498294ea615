"""Collects what a scheduler, nodes and BMCs report, for the inventory of a site. It only reads."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files

from proofmark.common.errors import BadInput, bad_input, nearest
from proofmark.common.limits import MAX_OUTPUT_BYTES, MAX_PROBE_BYTES
from proofmark.common.nodesets import ACCEPTED, folded, is_name, short_name
from proofmark.common.text import size
from proofmark.machine.bmc.service_root import vendor_of
from proofmark.machine.controller_tools import ask_tool
from proofmark.machine.listing import LISTINGS, Ask, NodeListing
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.remote_shell import RemoteShell
from proofmark.site.firmware import SSH
from proofmark.site.node.facts import parse_probe
from proofmark.site.survey.bmc_pattern import pattern_of
from proofmark.site.survey.listed import Kind, ListedNode, kinds_of
from proofmark.site.survey.node_tools import (
    FABRIC,
    SECTIONS,
    bmc_address,
    bmc_manufacturer,
    read_tools,
)
from proofmark.site.survey.report import Bmc, NodeReport, Survey

NONE = "none"
"""The scheduler of a site without one."""
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
    return short_name(node) == short_name(os.uname().nodename)


def node_runner(*, become: bool = False) -> RunScript:
    """Return a function that runs a script on a node: by sh on this machine, by ssh on others.

    Args:
        become: whether sudo runs the script, for the facts that need root.
    """
    shell = ["sudo", "-n", "sh", "-s"] if become else ["sh", "-s"]

    def run_script(node: str, text: str) -> str:
        command = shell if is_this_machine(node) else [*SSH[:-1], shlex.join(shell)]
        return RemoteShell(command, TIMEOUT_S)(node, text)

    return run_script


def survey(
    nodes: Sequence[str],
    scheduler: str,
    run_script: RunScript,
    say: Callable[[str], None],
    *,
    bmc_port: int = 443,
) -> Survey:
    """Return what was found of a site.

    Args:
        nodes: the nodes to read, one of each kind (`node_name`).
        scheduler: the name of the scheduler, or empty: the first whose commands are installed.
        run_script: runs a script on a node.
        say: prints progress.
        bmc_port: of the BMCs.

    Raises:
        BadInput: a node has no host name as name or is not a node of the scheduler, or there is no
            such scheduler.
    """
    for node in nodes:
        if not is_name(node):
            raise bad_input("--from-node", "", repr(node), ACCEPTED)
    ask = _asker(nodes[0], run_script)
    name, listing, kinds, problem = _list_nodes(scheduler, ask, say)
    if listing is None:
        return _of_nodes_only(nodes, name, problem, run_script, say, bmc_port)
    names = _inventory_names(nodes, kinds)
    reports = {each: _report(each, run_script, say, bmc_port) for each in names}
    for kind in kinds:
        for each in set(kind.names).intersection(names):
            bmc = _with_pattern(reports[each].bmc, each, kind, run_script, say)
            reports[each] = replace(reports[each], bmc=bmc)
    fabric, source = _fabric(listing, ask, names[0], run_script, say)
    return Survey(
        scheduler=name,
        kinds=tuple(kinds),
        reports=reports,
        listing_source=listing.source,
        groups_are_queues=listing.groups_are_queues,
        fabric=fabric,
        fabric_source=source,
    )


def _of_nodes_only(
    nodes: Sequence[str],
    scheduler: str,
    problem: str,
    run_script: RunScript,
    say: Callable[[str], None],
    bmc_port: int,
) -> Survey:
    """Return what was found of `nodes`; `problem` is why the scheduler lists no others."""
    listed = [ListedNode(node) for node in nodes]
    reports = {each.name: _report(each.name, run_script, say, bmc_port) for each in listed}
    return Survey(
        scheduler=scheduler,
        kinds=tuple(kinds_of(_of_report(each, reports[each.name]) for each in listed)),
        reports=reports,
        listing_source="--from-node",
        listing_problem=problem,
        fabric_source="no scheduler describes the switches",
        local=len(nodes) == 1 and is_this_machine(nodes[0]),
    )


def _of_report(node: ListedNode, report: NodeReport) -> ListedNode:
    facts = report.facts
    if facts is None:
        return node
    kind = (facts.cpu_model, f"sockets={facts.sockets}", f"cores={facts.cores}")
    return replace(node, kind=kind, memory_bytes=facts.memory_total_bytes)


def _list_nodes(
    scheduler: str, ask: Ask, say: Callable[[str], None]
) -> tuple[str, NodeListing | None, list[Kind], str]:
    """Return the name of the scheduler, its listing, its nodes, and why they are not listed.

    Args:
        scheduler: its name; empty: the first one whose commands are installed and which answers.
        ask: runs a command.
        say: prints progress.

    Raises:
        BadInput: there is no such scheduler.
    """
    if scheduler == NONE:
        return NONE, None, [], ""
    problems: list[str] = []
    for name in [scheduler] if scheduler else LISTINGS.names():
        listing = LISTINGS.get(name)()
        if not scheduler and not shutil.which(listing.program):
            continue
        say(f"proofmark: {name}: {listing.source}")
        try:
            return name, listing, kinds_of(listing.nodes(ask)), ""
        except NodeError as error:
            say(f"proofmark: {name}: {error.text}")
            problems.append(error.text)
    return scheduler or NONE, None, [], "; ".join(problems)


def _asker(node: str, run_script: RunScript) -> Ask:
    """Return a function that runs commands on this machine, or on `node` if only it has them."""

    def ask(*command: str) -> str:
        if shutil.which(command[0]):
            printed = ask_tool(*command, timeout_s=TIMEOUT_S)
        else:
            try:
                printed = run_script(node, f"{shlex.join(command)} </dev/null\n")
            except NodeError as error:
                here = f"{command[0]} is not installed on this machine; on node"
                raise NodeError(error.outcome, f"{here} {error.text}") from None
        if len(printed) > MAX_OUTPUT_BYTES:
            found = f"{command[0]}: {size(len(printed))}, more than {size(MAX_OUTPUT_BYTES)}"
            raise NodeError(Outcome.UNEXPECTED, found)
        return printed

    return ask


def _inventory_names(nodes: Sequence[str], kinds: Sequence[Kind]) -> list[str]:
    """Return the names of `nodes` in the scheduler.

    Raises:
        BadInput: the scheduler does not list one of them.
    """
    names: list[str] = []
    for node in nodes:
        found = next((each for kind in kinds if (each := kind.find(node))), None)
        if found is None:
            listed = [name for kind in kinds for name in kind.names]
            accepted = f"a node of the scheduler: {folded(listed)}"
            raise bad_input("--from-node", "", f"{node!r}{nearest(node, listed)}", accepted)
        names.append(found.name)
    return names


def _report(
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
        return read_tools(printed, section, f"node-tools.sh of {node}")
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


def _with_pattern(
    bmc: Bmc, node: str, kind: Kind, run_script: RunScript, say: Callable[[str], None]
) -> Bmc:
    """Return `bmc` with the pattern of consecutive addresses, if two more nodes confirm one."""
    if bmc.pattern or not bmc.address:
        return bmc
    names = kind.names
    addresses = {names.index(node): bmc.address}
    for number in {len(names) // 2, len(names) - 1} - {names.index(node)}:
        say(f"proofmark: {names[number]}: node-tools.sh bmc")
        lines, problem = read_section(names[number], "bmc", run_script)
        if problem:
            say(f"proofmark: {names[number]}: {problem}")
        addresses[number] = bmc_address(lines)
    return replace(bmc, pattern=pattern_of(addresses))


def _fabric(
    listing: NodeListing, ask: Ask, node: str, run_script: RunScript, say: Callable[[str], None]
) -> tuple[str, str]:
    """Return the text with the switches and its source; or an empty text and the reason."""
    reasons: list[str] = []
    try:
        say("proofmark: the switches of the scheduler")
        if text := listing.fabric(ask):
            return text, f"{listing.program} show topology"
    except NodeError as error:
        reasons.append(error.text)
    say(f"proofmark: {node}: node-tools.sh {FABRIC}")
    lines, problem = read_section(node, FABRIC, run_script)
    if not problem:
        return "\n".join(lines), f"ibnetdiscover on {node}"
    return "", "; ".join([*reasons, "the scheduler describes no switches", problem])
