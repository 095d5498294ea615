"""Collects what a scheduler, nodes and BMCs report, for the inventory of a site. It only reads."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files

from proofmark.common.errors import BadInput, ProofmarkError, bad_input, nearest
from proofmark.common.host_names import same_host, short_name
from proofmark.common.input_limits import MAX_OUTPUT_BYTES, MAX_PROBE_BYTES
from proofmark.common.nodesets import ACCEPTED, folded, is_name
from proofmark.common.text import one_line, size
from proofmark.machine.bmc.client import follow
from proofmark.machine.bmc.https import Answer, HttpsConnection, parse, tls_context
from proofmark.machine.node_commands import NodeCommand, host_command, node_command, run_script
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import SCHEDULERS, Ask, QueueLimits
from proofmark.machine.scheduler_commands import EVERY, ask_scheduler
from proofmark.packages.survey.answers import (
    FABRIC,
    RATES,
    SECTIONS,
    Bmc,
    ListedNode,
    NodeKind,
    NodeReport,
    Survey,
    bmc_address,
    bmc_manufacturer,
    kinds_of,
    nodes_of_bmc,
    pattern_of,
    read_tools,
)
from proofmark.packages.survey.findings import scratch_folder
from proofmark.packages.survey.inventory_files import site_of_node
from proofmark.packages.survey.listings import LISTINGS, NodeListing
from proofmark.site.access import HostAccess
from proofmark.site.inventory import Site
from proofmark.site.node.facts import parse_probe
from proofmark.site.node.probe_text import unread_lines

TIMEOUT_S = 120.0
"""The time limit of one script on a node, and of one command of a scheduler."""
ROOT = "/redfish/v1/"
BMC_TIMEOUT_S = 20.0
"""The time limit of the service root of a BMC."""
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
    """Return what runs a script on a node: by sh on this machine, by ssh on others.

    Sudo runs it if `become` is set: some facts need root.
    """
    user = "root" if become else ""

    def command(node: str) -> NodeCommand:
        return host_command(node, HostAccess(local=is_this_machine(node), become_user=user))

    return lambda node, text: run_script(node, command(node), text, TIMEOUT_S)


def site_runner(sites: Sequence[Site], *, become: bool = False) -> RunScript:
    """Return what runs a script on a node of `sites`, as their inventory reaches it.

    Sudo runs it if `become` is set, also on nodes where the inventory has no ``become``.
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
        printed = _script(node, "packages.survey", "node-tools.sh", section, run_script)
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


SHOWN = 100
"""Limit of a name in characters."""


def vendor_of(address: str, port: int) -> str:
    """Return vendor and product of the BMC at `address`; empty if the service root has neither.

    The certificate is not verified: no secret is sent, and the site has not named its authority
    yet. `Vendor` is a property of the service root since its version 1.5; before, only the keys of
    `Oem` name the vendor.

    Raises:
        NodeError: the BMC does not answer, or the answer is no service root.
    """

    def send(path: str) -> Answer:
        connection = HttpsConnection(address, port, tls_context(None, verify=False), BMC_TIMEOUT_S)
        try:
            return connection.request("GET", path, {"Accept": "application/json"}, None)
        finally:
            connection.close()

    try:
        status, _, raw = follow(send, "GET", ROOT, address, port)
        body = parse(raw)
    except (OSError, ProofmarkError) as error:
        found = one_line(f"{type(error).__name__}: {error}")[: 2 * SHOWN]
        raise NodeError(Outcome.NO_ANSWER, f"https://{address}:{port}{ROOT}: {found}") from None
    if status != 200:
        found = f"https://{address}:{port}{ROOT}: status {status}"
        raise NodeError(Outcome.UNEXPECTED, found)
    oem = body.get("Oem")
    names = [body.get("Vendor"), next(iter(oem), "") if isinstance(oem, dict) else ""]
    vendor = next((name for name in names if isinstance(name, str) and name), "")
    product = body.get("Product")
    openbmc = isinstance(oem, dict) and "openbmc" in map(str.lower, oem)
    words = [vendor, product if isinstance(product, str) else "", "OpenBMC" if openbmc else ""]
    return one_line(" ".join(filter(None, words)))[:SHOWN]


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


NONE = "none"
"""The scheduler of a site without one."""


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

    Raises:
        BadInput: a node has no host name as name or is not a node of the scheduler, or there is no
            such scheduler.
    """
    for node in nodes:
        if not is_name(node):
            raise bad_input("--from-node", "", repr(node), ACCEPTED)
    ask = _asker(nodes[0], run_script)
    listed = _list_nodes(scheduler, ask, say)
    if listed.listing is None:
        return _of_nodes_only(nodes, listed, run_script, say, bmc_port)
    listing, kinds = listed.listing, listed.kinds
    names = _inventory_names(nodes, kinds)
    reports = {each: node_report(each, run_script, say, bmc_port) for each in names}
    for kind in kinds:
        for each in set(kind.names).intersection(names):
            bmc = with_pattern(reports[each].bmc, each, kind.names, run_script, say)
            reports[each] = replace(reports[each], bmc=bmc)
    fabric, source = _fabric(listing, ask, names[0], run_script, say)
    return Survey(
        scheduler=listed.scheduler,
        kinds=tuple(kinds),
        reports=reports,
        listing_source=listing.source,
        limits=listed.limits,
        groups_are_queues=listing.groups_are_queues,
        fabric=fabric,
        fabric_source=source,
    )


def _of_nodes_only(
    nodes: Sequence[str],
    listed: _Listed,
    run_script: RunScript,
    say: Callable[[str], None],
    bmc_port: int,
) -> Survey:
    """Return what was found of `nodes`, because no scheduler lists its nodes."""
    reports = {each: node_report(each, run_script, say, bmc_port) for each in nodes}
    return Survey(
        scheduler=listed.scheduler,
        kinds=tuple(kinds_of(_of_report(report) for report in reports.values())),
        reports=reports,
        listing_source="--from-node",
        listing_problem=listed.problem,
        fabric_source="no scheduler describes the switches",
        local=listed.scheduler == NONE and len(nodes) == 1 and is_this_machine(nodes[0]),
    )


def _of_report(report: NodeReport) -> ListedNode:
    facts = report.facts
    if facts is None:
        return ListedNode(report.node)
    kind = (facts.cpu_model, f"sockets={facts.sockets}", f"cores={facts.cores}")
    return ListedNode(report.node, kind, facts.memory_total_bytes)


@dataclass(frozen=True)
class _Listed:
    """What a scheduler lists.

    Attributes:
        listing: None if no scheduler lists its nodes.
    """

    scheduler: str
    listing: NodeListing | None = None
    kinds: Sequence[NodeKind] = ()
    limits: Mapping[str, QueueLimits] = field(default_factory=dict)
    problem: str = ""


def _list_nodes(scheduler: str, ask: Ask, say: Callable[[str], None]) -> _Listed:
    """Return what a scheduler lists. An empty name is the first one that is here and answers."""
    if scheduler == NONE:
        return _Listed(NONE)
    problems: list[str] = []
    for name in [scheduler] if scheduler else LISTINGS.names():
        listing = LISTINGS.get(name)()
        if not scheduler and not shutil.which(listing.program):
            continue
        say(f"proofmark: {name}: {listing.source}")
        try:
            nodes = listing.nodes(ask)
        except NodeError as error:
            say(f"proofmark: {name}: {error.text}")
            problems.append(error.text)
            continue
        limits: Mapping[str, QueueLimits] = {}
        try:
            limits = SCHEDULERS.get(name)().queue_limits(ask)
        except NodeError as error:
            say(f"proofmark: {name}: {error.text}")
        kinds = kinds_of(nodes, limits, queues=listing.groups_are_queues)
        return _Listed(name, listing, kinds, limits)
    return _Listed(scheduler or NONE, problem="; ".join(problems))


def _asker(node: str, run_script: RunScript) -> Ask:
    """Return a function that runs commands on this machine, or on `node` if only it has them."""

    def ask(*command: str) -> str:
        if shutil.which(command[0]):
            printed = ask_scheduler(*command, final=EVERY)
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


def _inventory_names(nodes: Sequence[str], kinds: Sequence[NodeKind]) -> list[str]:
    """Return the names of `nodes` in the scheduler.

    Raises:
        BadInput: the scheduler does not list one of them.
    """
    names: list[str] = []
    for node in nodes:
        found = next((each for kind in kinds if (each := kind.find(node))), None)
        if found is None:
            listed = []
            for kind in kinds:
                listed += kind.names
            accepted = f"a node of the scheduler: {folded(listed)}"
            raise bad_input("--from-node", "", f"{node!r}{nearest(node, listed)}", accepted)
        names.append(found.name)
    return names


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
