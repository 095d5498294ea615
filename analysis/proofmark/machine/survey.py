"""Collects what a scheduler, nodes and BMCs report, for the inventory of a site. It only reads."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from proofmark.common.errors import bad_input, nearest
from proofmark.common.input_limits import MAX_OUTPUT_BYTES
from proofmark.common.nodesets import ACCEPTED, folded, is_name
from proofmark.common.text import size
from proofmark.machine.controller_tools import ask_tool
from proofmark.machine.node_report import (
    TIMEOUT_S,
    RunScript,
    is_this_machine,
    node_report,
    read_section,
    with_pattern,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import SCHEDULERS, Ask, NodeListing
from proofmark.site.survey.listed import GroupLimits, ListedNode, NodeKind, kinds_of
from proofmark.site.survey.node_answers import NodeReport, Survey
from proofmark.site.survey.node_tools import FABRIC

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
        scheduler: its name.
        listing: None if no scheduler lists its nodes.
        problem: why it does not list them.
    """

    scheduler: str
    listing: NodeListing | None = None
    kinds: Sequence[NodeKind] = ()
    limits: Mapping[str, GroupLimits] = field(default_factory=dict)
    problem: str = ""


def listed_schedulers() -> list[str]:
    """Return the schedulers whose nodes can be listed."""
    return [name for name in SCHEDULERS.names() if SCHEDULERS.get(name).listing]


def listing_of(scheduler: str) -> NodeListing:
    """Return the listing of the nodes of `scheduler`.

    Raises:
        BadInput: there is no such scheduler, or its nodes cannot be listed.
    """
    known = listed_schedulers()
    listing = SCHEDULERS.get(scheduler).listing if scheduler in known else None
    if listing is None:
        found = f"{scheduler!r}{nearest(scheduler, known)}"
        raise bad_input("--scheduler", "", found, ", ".join(known))
    return listing()


def _list_nodes(scheduler: str, ask: Ask, say: Callable[[str], None]) -> _Listed:
    """Return what a scheduler lists.

    Args:
        scheduler: its name; empty: the first one whose commands are installed and which answers.
        ask: runs a command.
        say: prints progress.

    Raises:
        BadInput: there is no such scheduler.
    """
    if scheduler == NONE:
        return _Listed(NONE)
    problems: list[str] = []
    for name in [scheduler] if scheduler else listed_schedulers():
        listing = listing_of(name)
        if not scheduler and not shutil.which(listing.program):
            continue
        say(f"proofmark: {name}: {listing.source}")
        try:
            nodes = listing.nodes(ask)
        except NodeError as error:
            say(f"proofmark: {name}: {error.text}")
            problems.append(error.text)
            continue
        limits: Mapping[str, GroupLimits] = {}
        try:
            limits = listing.limits(ask)
        except NodeError as error:
            say(f"proofmark: {name}: {error.text}")
        return _Listed(name, listing, kinds_of(nodes, limits), limits)
    return _Listed(scheduler or NONE, problem="; ".join(problems))


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
